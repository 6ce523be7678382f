"""Whose doing an error is that the harness meets in its own files."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from harness.experiment import unjudged
from harness.experiment.unjudged import doing_of_worker

SCRATCH = Path("/scratch/lane")
WORKSPACE = SCRATCH / "now"


def test_a_file_of_ours_that_is_gone_was_removed_by_the_worker() -> None:
    """Nobody else touches what lies beside its directory; the run goes on."""
    error = FileNotFoundError(errno.ENOENT, "No such file", f"{WORKSPACE}/images/1-end")
    assert "No such file: '/scratch/lane/now/images/1-end'" in doing_of_worker(
        error, SCRATCH, WORKSPACE
    )


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.EIO, "Input/output error", f"{WORKSPACE}/control/1.orders.json"),
        OSError(errno.EMFILE, "Too many open files", f"{WORKSPACE}/control"),
        FileNotFoundError(errno.ENOENT, "No such file", "/usr/lib/python3/os.py"),
        FileNotFoundError(errno.ENOENT, "No such file", "/scratch/lane-of-another/now"),
        FileNotFoundError(errno.ENOENT, "No such file"),
    ],
)
def test_what_no_worker_can_do_is_a_fault_of_the_machine(error: OSError) -> None:
    """It ends the run, and is not put on a worker."""
    assert not doing_of_worker(error, SCRATCH, WORKSPACE)


@pytest.mark.parametrize(("size", "its_doing"), [(0, False), (3 << 20, True)])
def test_a_full_disk_is_the_doing_of_who_has_filled_it(
    size: int, its_doing: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that has written much has filled it; one that has written nothing has not."""
    monkeypatch.setattr(unjudged, "_MUCH_MIB", 1)
    (tmp_path / "written").write_bytes(b"x" * size)
    error = OSError(errno.ENOSPC, "No space left on device", f"{tmp_path}/copy")
    assert bool(doing_of_worker(error, tmp_path, tmp_path)) is its_doing
