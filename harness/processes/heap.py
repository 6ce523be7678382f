"""The C heap of a process that is about to fork many children."""

from __future__ import annotations

import ctypes
import os
from pathlib import PurePath

_LARGEST = 4096
_STEP = 16
_HEADER = 8
_IN_A_ROW = 4
_LIMIT_BYTES = 32 * 1024 * 1024
"""The most to take; a worker that has 48 MiB of memory takes 3 MB, most of it for the search."""

_PYTHON_DEFAULT = ("", "default", "pymalloc")
"""Values of PYTHONMALLOC that leave small objects to Python's own allocator."""

_LIBC = ctypes.CDLL(None)
_MALLOC = _LIBC.malloc
_MALLOC.argtypes = [ctypes.c_size_t]
_MALLOC.restype = ctypes.c_void_p


class _DlInfo(ctypes.Structure):
    """What dladdr(3) says of an address."""

    _fields_ = (
        ("dli_fname", ctypes.c_char_p),
        ("dli_fbase", ctypes.c_void_p),
        ("dli_sname", ctypes.c_char_p),
        ("dli_saddr", ctypes.c_void_p),
    )


def fill_holes() -> int:
    """Allocate the holes in the heap and keep them, so that later allocations lie side by side.

    Imports and a warm-up leave thousands of small free blocks behind, scattered over hundreds of
    pages. Each block that a forked child takes from there costs a page fault and a copied page, and
    so do the neighbours in its list: together a fifth of all that a small worker causes. Large
    holes are filled before small ones, which would split them.

    This knows how glibc lays out its blocks. With any other allocator nothing is done: it is not
    known there what a hole is, and looking for one could take all memory.

    Returns:
        How much was taken, in bytes.
    """
    if not _is_glibc_heap():
        return 0
    taken_bytes = 0
    for size in range(_LARGEST, 0, -_STEP):
        # A block has a header and is rounded up; beyond the holes, one lies beside the other.
        distance = (size + _HEADER + _STEP - 1) // _STEP * _STEP
        last = row = 0
        while row < _IN_A_ROW:
            if taken_bytes + distance > _LIMIT_BYTES:
                return taken_bytes
            block = _MALLOC(size) or 0
            row = row + 1 if block == last + distance else 0
            last = block
            taken_bytes += distance
    return taken_bytes


def _is_glibc_heap() -> bool:
    """Tell whether the C heap is glibc's, used by Python as it does by default."""
    try:
        libc = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (OSError, ValueError):  # another C library
        return False
    return (
        libc.startswith("glibc")
        and os.environ.get("PYTHONMALLOC", "") in _PYTHON_DEFAULT
        and PurePath(_file_of(_MALLOC)).name.startswith(("libc.so", "libc-"))
    )


def _file_of(function: object) -> str:
    """Return the library that a C function is in: not libc for an allocator that is preloaded."""
    info = _DlInfo()
    address = ctypes.cast(function, ctypes.c_void_p)  # type: ignore[arg-type]
    try:
        found = _LIBC.dladdr(address, ctypes.byref(info))
    except AttributeError:  # a libc without dladdr
        return ""
    return os.fsdecode(info.dli_fname) if found and info.dli_fname else ""
