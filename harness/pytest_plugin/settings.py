"""Names that the hooks and the items share; cheap to import."""

from __future__ import annotations

FOLDER_INI = "crash_harness_scenarios"
"""The ini setting that names the folder with scenarios."""
