"""What the README says is what CI does."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_ci_calls_the_readme_test_command() -> None:
    """`.ci/run` calls the README's test command and nothing else."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (command,) = [c for c in re.findall(r"```sh\n(.+?)\n```", readme) if c.endswith("/tox")]
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    calls = [line for line in lines if line and not line.startswith(("#", "set ", "cd "))]
    assert calls == [command]
