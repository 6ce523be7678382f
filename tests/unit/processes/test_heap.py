"""The heap of the process that forks: filled where it is glibc's, left alone where it is not."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import count
from typing import TYPE_CHECKING

import pytest

from harness.processes import heap

if TYPE_CHECKING:
    from pathlib import Path

_HOLES = """
import ctypes
from harness.processes.heap import fill_holes
libc = ctypes.CDLL(None)
libc.malloc.argtypes = [ctypes.c_size_t]
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
blocks = [libc.malloc(2000) for _ in range(400)]
for block in blocks[::2]:
    libc.free(block)
{fill}
later = [libc.malloc(2000) for _ in range(5)]
print(sum(after - before == 2016 for before, after in zip(later, later[1:])))
"""


@pytest.mark.parametrize(("fill", "beside"), [("", False), ("fill_holes()", True)])
def test_filled_heap_gives_blocks_that_lie_side_by_side(fill: str, *, beside: bool) -> None:
    """A child that takes its memory from holes has a page copied for each block."""
    program = _HOLES.format(fill=fill)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert (int(ran.stdout) == 4) is beside


_TAKEN = """
import resource
from harness.processes.heap import fill_holes
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
taken = fill_holes()
print(taken, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def taken_with(**environment: str) -> tuple[int, int]:
    """Fill the heap of a new interpreter; return the bytes taken and the growth in KiB."""
    ran = subprocess.run(
        [sys.executable, "-c", _TAKEN],
        capture_output=True,
        check=True,
        env={**os.environ, **environment},
        text=True,
    )
    if "cannot be preloaded" in ran.stderr:
        pytest.skip(ran.stderr.strip())
    taken, grown = ran.stdout.split()
    return int(taken), int(grown)


@pytest.mark.parametrize("python_malloc", ["", "default", "pymalloc"])
def test_the_heap_of_glibc_is_filled(python_malloc: str) -> None:
    """Python as it is started mostly; a few megabytes."""
    taken, grown = taken_with(PYTHONMALLOC=python_malloc)
    assert 0 < taken < 8 * 1024 * 1024
    assert grown < 16 * 1024


@pytest.mark.parametrize("python_malloc", ["malloc", "debug", "malloc_debug"])
def test_the_heap_is_left_alone_when_python_uses_it_otherwise(python_malloc: str) -> None:
    """What is a hole for the default allocator of Python need not be one for another."""
    assert taken_with(PYTHONMALLOC=python_malloc)[0] == 0


@pytest.mark.parametrize("name", ["libjemalloc.so.2", "libmimalloc.so.2", "libtcmalloc.so.4"])
def test_the_heap_of_another_allocator_is_left_alone(name: str) -> None:
    """With mimalloc preloaded the search never found an end, and took 10 GB."""
    taken, grown = taken_with(LD_PRELOAD=name)
    assert taken == 0
    assert grown < 16 * 1024


def test_a_malloc_that_is_not_in_libc_is_left_alone(tmp_path: Path) -> None:
    """Any allocator that is loaded in front of libc, whatever its name."""
    source, library = tmp_path / "other.c", tmp_path / "other.so"
    source.write_text(
        "#include <stddef.h>\n"
        "extern void *__libc_malloc(size_t);\n"
        "void *malloc(size_t size) { return __libc_malloc(size); }\n"
    )
    try:
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no C compiler")
    assert taken_with(LD_PRELOAD=str(library))[0] == 0


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that does not say that it is glibc, or does not know the question."""

    def unknown(_name: str) -> str | None:
        raise ValueError("unrecognized configuration name")

    for confstr in (lambda _name: None, lambda _name: "musl 1.2", unknown):
        monkeypatch.setattr(os, "confstr", confstr)
        assert heap.fill_holes() == 0


def test_what_is_taken_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """An allocator that never puts one block beside another ends the search at its limit."""
    addresses = count(4096, 1_000_000)
    asked: list[int] = []

    def scattered(size: int) -> int:
        asked.append(size)
        return next(addresses)

    monkeypatch.setattr(heap, "_is_glibc_heap", lambda: True)
    monkeypatch.setattr(heap, "_MALLOC", scattered)
    taken = heap.fill_holes()
    assert sum(asked) <= taken <= 32 * 1024 * 1024
