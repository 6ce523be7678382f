"""The C heap of a process that is about to fork many children."""

from __future__ import annotations

import ctypes

_LARGEST = 4096
_STEP = 16
_HEADER = 8
_IN_A_ROW = 4
_MOST = 20_000
"""More holes of one size than any heap here has; an allocator that never puts one block beside
another ends the search too."""

_MALLOC = ctypes.CDLL(None).malloc
_MALLOC.argtypes = [ctypes.c_size_t]
_MALLOC.restype = ctypes.c_void_p


def fill_holes() -> None:
    """Fill the holes in the heap for good, so that later allocations lie side by side.

    Imports and a warm-up leave thousands of small free blocks behind, scattered over hundreds of
    pages. Each block that a forked child takes from there costs a page fault and a copied page, and
    so do the neighbours in its list: together a fifth of all that a small worker causes. Large
    holes are filled before small ones, which would split them.
    """
    for size in range(_LARGEST, 0, -_STEP):
        # A block has a header and is rounded up; beyond the holes, one lies beside the other.
        distance = (size + _HEADER + _STEP - 1) // _STEP * _STEP
        last = row = taken = 0
        while row < _IN_A_ROW and taken < _MOST:
            block = _MALLOC(size) or 0
            row = row + 1 if block == last + distance else 0
            last = block
            taken += 1
