"""Whether what a scenario is made of can be what it is said to be, in words for its author."""

from __future__ import annotations

import re
import reprlib
from typing import TYPE_CHECKING

from harness.model.canonical_json import canonical
from harness.model.errors import LeaveError, UnknownNameError, UsageError
from harness.model.schedule import MalformedLabelError
from harness.model.workload import Command, ReplyLost, Workload
from harness.points import well_formed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

NAME = re.compile(r"[a-z0-9]+(?:[-_.][a-z0-9]+)*")

MOST_NAME_CHARS = 100
"""How long the name of a scenario may be; files and folders are named after it."""

LONGEST_DEADLINE_S = 86_400.0
"""A day; a longer wait would be waited for by nobody."""

TRANSPORTS = ("unix", "tcp")


def _is(kind: type) -> Callable[[object], bool]:
    """Return what tells whether a value is of a type."""
    return lambda value: isinstance(value, kind)


_FIELDS: dict[str, tuple[Callable[[object], bool], str]] = {
    **dict.fromkeys(("worker", "workload", "warm"), (callable, "a function")),
    **dict.fromkeys(("must_reach_all", "fresh"), (_is(bool), "True or False")),
    **dict.fromkeys(("together", "quiet_at", "transport"), (_is(str), "a text")),
    "oracles": (_is(tuple), "a tuple: (NoEffectTwice(),)"),
    "points": (_is(tuple), "a tuple: ('my_package',)"),
    "services": (_is(tuple), "a tuple: (Coordinator,)"),
    "strike": (_is(tuple), "a tuple: ('ack.send.before',)"),
}
"""What a field must be, and that in words."""

_ITEMS: dict[str, tuple[Callable[[object], bool], str]] = {
    "points": (_is(str), "a text"),
    "strike": (_is(str), "a text"),
    "services": (callable, "a function that makes a service"),
}
"""What everything in a field must be."""


class WorkloadError(UsageError):
    """A scenario gives no workload."""


def check_name(name: object, kind: str = "scenario") -> None:
    """See that a name is one.

    Args:
        name: The name.
        kind: What it names.

    Raises:
        UsageError: It is not well formed, or too long.
    """
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise UsageError(
            f"{kind} name {_shown(name)} is not lower-case words joined by '-', '_' or '.'"
        )
    if len(name) > MOST_NAME_CHARS:
        raise UsageError(
            f"{kind} name {_shown(name)} has {len(name):,} characters, "
            f"and at most {MOST_NAME_CHARS} are allowed"
        )


def check_fields(where: str, fields: Mapping[str, object]) -> None:
    """See that the fields of a scenario are of their types.

    Args:
        where: The scenario, to begin a message with.
        fields: The fields by name.

    Raises:
        UsageError: One is not.
        UnknownNameError: The transport is not known.
        MalformedLabelError: A label is not well formed.
    """
    for name, (right, what) in _FIELDS.items():
        if not right(fields[name]):
            raise UsageError(f"{where}: {name} is {_typed(fields[name])}, not {what}")
    for name, (right, what) in _ITEMS.items():
        _check_each(where, name, fields[name], right, what)
    transport, quiet_at = str(fields["transport"]), str(fields["quiet_at"])
    if transport not in TRANSPORTS:
        raise UnknownNameError(f"transport of {where}:", transport, TRANSPORTS)
    if quiet_at and not well_formed(quiet_at):
        raise MalformedLabelError(quiet_at, place=f"{where}: quiet_at: ")
    _check_deadline(where, fields["deadline_s"])


def check_oracle(where: str, oracle: object) -> None:
    """See that something can judge.

    Args:
        where: The scenario, to begin a message with.
        oracle: What should be an oracle.

    Raises:
        UsageError: It lacks a name, a promise or the method `check`.
    """
    said = f"{where}: the oracle {_shown(oracle)}"
    if isinstance(oracle, type):
        raise UsageError(f"{said} is a class; call it: {oracle.__name__}()")
    check_name(getattr(oracle, "name", None), f"{where}: oracle")
    if not isinstance(getattr(oracle, "promise", None), str):
        raise UsageError(f"{said} has no promise, a sentence that says what must hold")
    if not callable(getattr(oracle, "check", None)):
        raise UsageError(f"{said} has no method check(evidence)")


def drawn_workload(name: str, draw: Callable[[int], Workload], seed: int) -> Workload:
    """Draw the workload of a scenario, and see that it is one.

    Args:
        name: Name of the scenario.
        draw: Its `Scenario.workload`.
        seed: The seed.

    Raises:
        WorkloadError: It raises an error, or gives something else.
    """
    try:
        return _drawn_workload(f"scenario {name!r}: its workload for seed {seed}", draw, seed)
    except UsageError as error:
        raise WorkloadError(str(error)) from error


def _drawn_workload(where: str, draw: Callable[[int], Workload], seed: int) -> Workload:
    try:
        workload = draw(seed)
    except (KeyboardInterrupt, LeaveError):
        raise
    except BaseException as error:  # whatever it is, it is the scenario's
        place = _last_line(error)
        raise UsageError(f"{where} raised {type(error).__name__}: {error}{place}") from error
    if not isinstance(workload, Workload):
        raise UsageError(f"{where} is {_typed(workload)}, not a Workload")
    if not isinstance(workload.commands, tuple):
        raise UsageError(f"{where}: commands is {_typed(workload.commands)}, not a tuple")
    for command in (*workload.commands, workload.fresh):
        _check_command(where, command)
    _check_each(where, "lost", workload.lost, lambda item: isinstance(item, ReplyLost), "ReplyLost")
    return workload


def _check_command(where: str, command: object) -> None:
    if not isinstance(command, Command):
        raise UsageError(f"{where} has {_typed(command)} where a Command should be")
    if not isinstance(command.command_id, str) or not command.command_id:
        raise UsageError(f"{where}: the command id {_shown(command.command_id)} is not a text")
    try:
        canonical(command.body)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(
            f"{where}: the body of command {_shown(command.command_id)} is not JSON: {error}"
        ) from error


def _check_each(
    where: str, name: str, items: object, right: Callable[[object], bool], what: str
) -> None:
    if not isinstance(items, tuple):
        raise UsageError(f"{where}: {name} is {_typed(items)}, not a tuple")
    for item in items:
        if not right(item):
            raise UsageError(f"{where}: {name} has {_typed(item)}, which is not {what}")


def _check_deadline(where: str, deadline_s: object) -> None:
    number = isinstance(deadline_s, int | float) and not isinstance(deadline_s, bool)
    if not number:
        raise UsageError(f"{where}: deadline_s is {_typed(deadline_s)}, not a number of seconds")
    assert isinstance(deadline_s, int | float)
    if not 0 < deadline_s <= LONGEST_DEADLINE_S:
        raise UsageError(
            f"{where}: deadline_s is {_shown(deadline_s)}; it is more than 0 seconds and at most "
            f"{LONGEST_DEADLINE_S:,.0f}"
        )


def _last_line(error: BaseException) -> str:
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    return "" if frame is None else f" ({frame.tb_frame.f_code.co_filename}:{frame.tb_lineno})"


def _shown(value: object) -> str:
    try:
        return reprlib.repr(value)
    except Exception:  # noqa: BLE001 - a value of the user, whose repr fails, too
        return f"a {type(value).__name__}"


def _typed(value: object) -> str:
    return f"{_shown(value)} ({type(value).__name__})"
