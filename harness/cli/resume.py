"""``crash-harness run --resume``: which run is meant, and whether it can be gone on with."""

from __future__ import annotations

import os
import platform
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness import __version__
from harness.cli.run_options import RunOptions, options_in
from harness.images.run_folder import RunFolder
from harness.model.errors import UnknownNameError, UsageError
from harness.model.hash_seed import hash_seed_of_forks
from harness.record.code_digests import changed_files
from harness.record.journal_content import NotBegunError, read_journal, runs_with_a_journal

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from harness.record.journal import Journal
    from harness.record.journal_format import CommandRow

LATEST = ""
"""What ``--resume`` says without the name of a run."""

_FILES = 5

_FREE = {"jobs": "jobs", "reports": "report", "root": "root"}
"""Options that may differ from what the run was begun with: its record does not depend on them."""

_FIXED = {
    "names": ("the scenarios", "names"),
    "tier": ("--tier", "tier"),
    "at": ("--at", "at"),
    "oracles": ("--oracle", "oracles"),
    "seed": ("--seed", "seed"),
    "seed_list": ("--seeds", "seeds"),
    "pins_file": ("--pins", "pins"),
    "source": ("--scenarios", "source"),
}
"""Options by the parameter of the command: how they are called, and the attribute that has them."""


def unfinished_run(out: Path, named: str) -> Path:
    """Return the folder of the run to go on with.

    Args:
        out: Directory of all runs.
        named: Its name there, or its path; `LATEST` for the latest that is not over.

    Raises:
        UsageError: There is none, or it is over.
    """
    if named == LATEST:
        for path in runs_with_a_journal(out):
            try:
                begun_by_command = read_journal(path).header["command"] is not None
            except NotBegunError:
                continue
            if begun_by_command:
                return path
        raise UsageError(f"no run in {out} was cut short; leave --resume out to begin one")
    path = Path(named) if _is_dir(Path(named)) else out / named
    if not _is_dir(path):
        known = [each.name for each in runs_with_a_journal(out)]
        raise UnknownNameError("run that was cut short", named, known)
    path = path.resolve() if path.is_symlink() else path
    folder = RunFolder(path)
    if not folder.journal.exists():
        if not folder.record.exists():
            raise UsageError(f"{path} is not the folder of a run: it has no {folder.journal.name}")
        raise UsageError(
            f"{path} is over, so there is nothing to go on with; its record is {folder.record.name}"
        )
    return path


def command_of(journal: Journal) -> CommandRow:
    """Return what the command said that began a run.

    Raises:
        UsageError: It was not begun by the command, or not here, or not with what is here now.
    """
    path, header = journal.directory, journal.content.header
    command = header["command"]
    if command is None:
        raise UsageError(
            f"{path} was not begun by `crash-harness run`, so nobody can go on with it; "
            "run again what began it, pytest for example"
        )
    here = str(Path.cwd())
    if command["folder"] != here:
        raise UsageError(f"{path} was begun in {command['folder']}: go on with it there")
    now = {
        "crash-harness": (command["version"], __version__),
        "Python": (command["python"], platform.python_version()),
        "the hash seed": (command["hash_seed"], hash_seed_of_forks(0, os.environ)),
    }
    for what, (before, after) in now.items():
        if before != after:
            raise UsageError(
                f"{path} was begun with {what} {before}, and this is {after}: "
                "go on with what it was begun with, or begin the run anew"
            )
    if changed := changed_files(command["files"]):
        shown = [os.path.relpath(file) for file in changed[:_FILES]]
        more = f" and {len(changed) - _FILES} more" if len(changed) > _FILES else ""
        raise UsageError(
            f"{path} cannot be gone on with, as what had finished came of other code: "
            f"{', '.join(shown)}{more} changed since; put that back, or begin the run anew"
        )
    return command


def resumed_options(journal: Journal, given: RunOptions, said: Collection[str]) -> RunOptions:
    """Return the options of a run that is gone on with.

    Args:
        journal: Its journal.
        given: The options of this call.
        said: Parameters of the command that were said, and are no defaults.

    Raises:
        UsageError: One contradicts what the run was begun with, or see `command_of`.
    """
    begun = options_in(command_of(journal), journal.content.header["seed"])
    if "seed" in said and begun.seeds is not None:
        raise UsageError(
            f"--seed contradicts {journal.directory}, begun with --seeds; leave it out"
        )
    for parameter, (name, attribute) in _FIXED.items():
        before, now = getattr(begun, attribute), getattr(given, attribute)
        if parameter in said and _comparable(parameter, before) != _comparable(parameter, now):
            raise UsageError(
                f"{name} {_shown(now)} contradicts {journal.directory}, which was begun with "
                f"{_shown(before)}; leave it out, or begin another run without --resume"
            )
    free = {attribute for parameter, attribute in _FREE.items() if parameter in said}
    return replace(begun, **{attribute: getattr(given, attribute) for attribute in free})


def check_scenarios(journal: Journal, names: Iterable[str]) -> None:
    """See that the scenarios are those that the run was begun with.

    Args:
        journal: The journal of the run.
        names: Names of the scenarios, as they are selected now.

    Raises:
        UsageError: They are others: a file has come.
    """
    begun, now = journal.content.header["scenarios"], list(names)
    if begun != now:
        new = [name for name in now if name not in begun]
        raise UsageError(
            f"{journal.directory} was begun with other scenarios; "
            f"new are: {', '.join(new[:_FILES]) or 'none, but they are in another order'}"
        )


def _is_dir(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # its name is too long, say
        return False


def _comparable(parameter: str, value: object) -> object:
    if parameter in ("source", "pins_file") and value is not None:
        return Path(str(value)).resolve()
    return value


def _shown(value: object) -> str:
    if value is None or value == ():
        return "none"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
