"""Names that the hooks and the items share; cheap to import."""

from __future__ import annotations

import pytest

FOLDER_INI = "crash_harness_scenarios"
"""The ini setting that names the folder with scenarios."""

OUT_INI = "crash_harness_out"
"""The ini setting that names the directory of all records."""

NO_RECORD = "none"
"""The value of `OUT_INI` and of ``--crash-out`` for no record at all."""

OUTPUT_KEY = "crash_harness_notes"
"""Under which a process of pytest-xdist sends `NOTES` to the one that started it."""

NOTES = pytest.StashKey[list[str]]()
"""What is to be told at the end of pytest, a line each."""
