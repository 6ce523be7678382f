"""What a lane leaves of a control leg for the record: where it is put, and where it is found."""

from __future__ import annotations

import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

CONTROLS = "control"


def control_image(keep: Path, scenario: str) -> Path:
    """Return where the image is that the control leg of a scenario left when it was quiet.

    Args:
        keep: Directory of everything that is kept.
        scenario: Name of the scenario.
    """
    return keep / CONTROLS / scenario


def forget_controls(keep: Path) -> None:
    """Delete what control legs left; the records of the failures have what is shown of it.

    Args:
        keep: Directory of everything that is kept; it is removed when nothing is left in it.
    """
    shutil.rmtree(keep / CONTROLS, ignore_errors=True)
    with suppress(OSError):  # there are failures in it, or it was never made
        keep.rmdir()
