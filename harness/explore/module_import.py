"""Imports a file of the user, whose code may do anything while it is imported."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import traceback
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from harness.experiment.time_limit import time_limit
from harness.model.errors import DeadlineError, UsageError
from harness.model.regular_file import kind, shown_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType, ModuleType

IMPORT_S = 300.0
"""How long the import of a file may take, in seconds."""


class _ExitError(BaseException):
    """The module called `os._exit`, which no ``except`` of it is to catch."""


def import_file(file: Path, limit_s: float = IMPORT_S) -> ModuleType:
    """Import a Python file under its natural name.

    Args:
        file: The file.
        limit_s: How long that may take, in seconds.

    Raises:
        UsageError: It cannot be imported, or its name is that of another module.
    """
    file = file.resolve()
    if file.exists() and not file.is_file():  # a pipe would be waited for
        raise UsageError(f"{shown_path(file)} cannot be imported: it is {_kind(file)}, not a file")
    parts = [] if file.stem == "__init__" else [file.stem]
    folder = file.parent
    while (folder / "__init__.py").exists():
        parts.insert(0, folder.name)
        folder = folder.parent
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    name = ".".join(parts)
    module = _imported(name, file, limit_s)
    origin = getattr(module, "__file__", None)
    if not isinstance(origin, str) or Path(origin).resolve() != file:
        raise UsageError(
            f"{file} would be imported as {name!r}, and that is {origin or 'built in'}; "
            "rename it, or make its folder a package"
        )
    return module


def _imported(name: str, file: Path, limit_s: float) -> ModuleType:
    interrupted = False

    def note() -> None:
        nonlocal interrupted
        interrupted = True

    try:
        with _exit_raises(), _interrupt_noted(note), time_limit(limit_s, "its import to end"):
            return importlib.import_module(name)
    except BaseException as error:
        if interrupted and isinstance(error, KeyboardInterrupt):
            raise
        raise UsageError(f"{file} cannot be imported: {_reason(error, file)}") from error


def _reason(error: BaseException, file: Path) -> str:
    """Say why a file could not be imported, and where in it, as far as its code got."""
    if isinstance(error, DeadlineError):
        reason = str(error)
    elif isinstance(error, _ExitError):
        reason = f"it ends the process, {error}"
    else:
        reason = f"{type(error).__name__}: {_said(error)}".rstrip(": ")
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(file)]
    return f"{reason} (line {lines[-1]})" if lines else reason


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as other:  # noqa: BLE001 - an error of the user, whose text fails, too
        return f"(its text cannot be made: {type(other).__name__})"


@contextmanager
def _exit_raises() -> Iterator[None]:
    """Have `os._exit` of a module raise: it would end the command with any code, 0 among them."""
    real, ours = os._exit, os.getpid()

    def leave(status: int) -> NoReturn:
        if os.getpid() != ours:  # of a child that the module has forked
            real(status)
        raise _ExitError(f"os._exit({status!r})")

    os._exit = leave
    try:
        yield
    finally:
        os._exit = real


@contextmanager
def _interrupt_noted(note: Callable[[], None]) -> Iterator[None]:
    """Have Ctrl-C noted: a module may raise KeyboardInterrupt by itself."""
    before = signal.getsignal(signal.SIGINT)
    if not callable(before):  # ignored, or not ours
        yield
        return

    def note_and_go_on(number: int, frame: FrameType | None) -> None:
        note()
        before(number, frame)

    try:
        signal.signal(signal.SIGINT, note_and_go_on)
    except ValueError:  # not in the main thread, where no Ctrl-C arrives
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _kind(file: Path) -> str:
    return kind(file.stat().st_mode)
