"""Names that the hooks and the items share; cheap to import."""

from __future__ import annotations

FOLDER_INI = "crash_harness_scenarios"
"""The ini setting that names the folder with scenarios."""

OUT_INI = "crash_harness_out"
"""The ini setting that names the directory of all records."""

NO_RECORD = "none"
"""The value of `OUT_INI` and of ``--crash-out`` for no record at all."""
