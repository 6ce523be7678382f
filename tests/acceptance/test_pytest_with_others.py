"""``pytest scenarios/`` beside other plugins of pytest, and where pytest may not write.

The plugins are those of ``tox -e plugins``; where one is not installed, its test is skipped.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from pytest_projects import DEADLINE_S, orders, project

if TYPE_CHECKING:
    from pathlib import Path


def run(root: Path, words: str, before: str = "") -> str:
    """Run pytest on a project's scenarios in a shell; return what it has printed."""
    done = subprocess.run(
        ["/bin/bash", "-c", f"{before} {sys.executable} -m pytest {words} scenarios"],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("plugin", "words"),
    [
        ("pytest", "-p no:cacheprovider"),
        ("pytest_timeout", "--timeout 100"),
        ("pytest_timeout", "--timeout 100 --timeout-method thread"),
        ("pytest_randomly", "-p randomly"),
        ("pytest_randomly", "-p randomly -n 2"),
        ("pytest_rerunfailures", "--reruns 2"),
        ("pytest_asyncio", "--asyncio-mode auto"),
        ("pytest_cov", "--cov harness --cov-report="),
        ("pytest_cov", "--cov harness --cov-report= -n 2"),
    ],
)
def test_other_plugins_change_nothing(tmp_path: Path, plugin: str, words: str) -> None:
    """Items may come in any order, in other processes, and with a timer or a tracer running."""
    if importlib.util.find_spec(plugin) is None:
        pytest.skip(f"{plugin} is not installed")
    out = run(project(tmp_path, orders=orders()), words)
    assert re.search(r"\b6 passed\b", out), out


def test_items_in_forks_are_refused(tmp_path: Path) -> None:
    """What the items of a scenario share is not in a fork; the failure says so."""
    if importlib.util.find_spec("pytest_forked") is None:
        pytest.skip("pytest_forked is not installed")
    if int(pytest.__version__.partition(".")[0]) > 8:
        pytest.skip("pytest-forked cannot report any test item of this pytest that is not its own")
    out = run(project(tmp_path, orders=orders()), "--forked")
    assert re.search(r"\b6 failed\b", out), out
    assert "this one runs in a fork of its own (pytest --forked)" in out


def test_a_project_that_may_not_be_written_to(tmp_path: Path) -> None:
    """Everything is run, and one line says that there is no record, and why."""
    root = project(tmp_path, orders=orders())
    mount = "mount --bind . . && mount -o remount,ro,bind . && cd $PWD"
    tried = subprocess.run(
        ["unshare", "-m", "bash", "-c", mount], cwd=root, capture_output=True, check=False
    )
    if tried.returncode:
        pytest.skip("may not mount in a namespace")
    out = run(root, "", f'exec unshare -m bash -c \'{mount} && exec "$0" "$@"\'')
    assert re.search(r"\b6 passed\b", out), out
    assert "no record is written: no folder for the run can be made" in out
