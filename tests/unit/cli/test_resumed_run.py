"""``run --resume``: which run is meant, and why it cannot be gone on with."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness import __version__
from harness.cli.resume import LATEST, command_of, unfinished_run
from harness.images.run_folder import RunFolder
from harness.model.errors import UnknownNameError, UsageError
from harness.model.hash_seed import hash_seed_of_forks
from harness.record.journal import Journal
from harness.record.journal_content import read_journal
from harness.record.journal_format import SCHEMA, CommandRow

if TYPE_CHECKING:
    from collections.abc import Iterator

RUN = "20310203T040506Z"


@pytest.fixture
def command() -> CommandRow:
    """Give what was said to begin a run, here and now."""
    return {
        "scenarios": [],
        "tier": "smoke",
        "at": None,
        "oracles": [],
        "seeds": None,
        "before": {},
        "jobs": 1,
        "pins": None,
        "report": None,
        "root": None,
        "scenarios_from": "scenarios",
        "folder": str(Path.cwd()),
        "version": __version__,
        "python": platform.python_version(),
        "hash_seed": hash_seed_of_forks(0, os.environ),
        "files": {},
    }


def begin(out: Path, command: CommandRow | None, name: str = RUN) -> Journal:
    """Begin a run."""
    (out / name).mkdir()
    return Journal.begin(
        out / name,
        {
            "journal": SCHEMA,
            "started": "2031-02-03T04:05:06+00:00",
            "tier": "smoke",
            "seed": 0,
            "scenarios": [],
            "command": command,
        },
    )


@pytest.fixture
def opened(tmp_path: Path, command: CommandRow) -> Iterator[Journal]:
    """Give the journal of a run that is gone on with."""
    begin(tmp_path, command).close(over=False)
    journal = Journal.go_on(tmp_path / RUN)
    yield journal
    journal.close(over=False)


def test_a_run_is_found_by_name_by_path_and_as_the_latest(
    tmp_path: Path, command: CommandRow
) -> None:
    """Whoever copies the name, or the path that the command said, or gives neither, means one."""
    begin(tmp_path, command).close(over=False)
    begin(tmp_path, None, "20310203T040507Z").close(over=False)
    (tmp_path / "20310203T040508Z").mkdir()
    RunFolder(tmp_path / "20310203T040508Z").journal.touch()
    for named in (RUN, str(tmp_path / RUN), LATEST):
        assert unfinished_run(tmp_path, named) == tmp_path / RUN


@pytest.mark.parametrize("name", ["x" * 5000, "/dev/null", "../../etc", "~nouser/x", "20310203"])
def test_what_is_not_a_run_is_told_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A name that is too long for a file was a fault of the harness."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnknownNameError, match="unknown run that was cut short"):
        unfinished_run(tmp_path, name)


def test_a_run_that_pytest_began_is_not_gone_on_with(tmp_path: Path) -> None:
    """The command does not know how pytest was called."""
    journal = begin(tmp_path, None)
    with pytest.raises(UsageError, match=r"was not begun by .*run again what began it"):
        command_of(journal)
    journal.close(over=False)


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ("folder", "was begun in other: go on with it there"),
        ("version", "was begun with crash-harness other, and this is"),
        ("python", "was begun with Python other, and this is"),
        ("hash_seed", "was begun with the hash seed other, and this is"),
    ],
)
def test_what_another_environment_began_is_refused(
    tmp_path: Path, command: CommandRow, key: str, says: str
) -> None:
    """Half of its record would be of the one, and half of the other."""
    other: dict[str, object] = {**command, key: "other"}
    journal = begin(tmp_path, other)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=says):
        command_of(journal)
    journal.close(over=False)


def test_what_other_code_began_is_refused(tmp_path: Path, command: CommandRow) -> None:
    """What had finished came of code that is no longer there; six files are not all listed."""
    files = {str(tmp_path / f"{n}.py"): "digest" for n in range(6)}
    journal = begin(tmp_path, {**command, "files": files})
    with pytest.raises(UsageError, match=r"came of other code: .*0\.py.* and 1 more changed since"):
        command_of(journal)
    journal.close(over=False)


def test_what_is_as_it_was_is_gone_on_with(opened: Journal, command: CommandRow) -> None:
    """The same folder, versions and code."""
    assert command_of(opened) == command
    assert read_journal(opened.directory).finished == ()
