"""The tutorial, followed by the letter."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
DEADLINE_S = 120


def _command(folder: Path, *arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "harness", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_tutorial_does_what_it_says(tmp_path: Path) -> None:
    """Docs: the code runs, the outputs are those shown, and mending it makes it hold."""
    (code,) = re.findall(r"```python\n(from harness\.oracles.+?)```", TEXT, re.DOTALL)
    file = tmp_path / "orders.py"
    file.write_text(code, encoding="utf-8")

    exit_code, out = _command(tmp_path, "points", "orders")
    assert exit_code == 0
    assert out in TEXT

    exit_code, out = _command(tmp_path, "run", "--scenarios", "orders.py")
    assert exit_code == 1, out
    shown = TEXT.split("The run is red")[1].split("```")[1].strip().splitlines()
    for line in shown[:3]:
        assert line.strip() in out
    (failure,) = (tmp_path / "reports" / "runs" / "latest").resolve().joinpath("failures").iterdir()
    exit_code, out = _command(tmp_path, "repro", str(failure))
    assert exit_code == 1, out

    careless = '        ledger.record("charge", order.command_id)\n'
    mended = TEXT.split("Mend it")[1].split("```python\n")[1].split("```")[0]
    assert careless in code
    file.write_text(code.replace(careless, mended), encoding="utf-8")
    exit_code, out = _command(tmp_path, "run", "--scenarios", "orders.py", "--tier", "full")
    assert exit_code == 0, out
    exit_code, out = _command(tmp_path, "repro", str(failure))
    assert exit_code == 0, out
    assert "holds now" in out
