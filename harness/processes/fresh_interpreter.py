"""An interpreter of its own for an incarnation, in place of the copy that a fork is.

The process is forked as ever and then replaced (execve(2)), so its pid, its parent and with them
stops, kills and wait statuses are the same. The new interpreter imports what the worker needs, as
a program does that is started: what a module makes at import is made anew. No warm-up is run in it.

What it has to know comes in a file without a name (memfd_create(2)), not in the environment or in
the arguments, which the worker would see.
"""

from __future__ import annotations

import io
import marshal
import os
import sys
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from harness.processes.life import EXIT_ERROR, enter, live, seed_text
from harness.processes.linux import begin_life
from harness.processes.loading import loaded

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn, TypeAlias

    from harness.model.site import PlainSite
    from harness.points.armed import PlainStop
    from harness.processes.linux import PlainLimits
    from harness.processes.loading import Main, Worker

    PlainInterpreter: TypeAlias = tuple[list[str], list[str], str, bytes, Main]
    """Its options, its `sys.path`, its hash seed, the worker pickled, and what loads that."""


def interpreter_command(options: Sequence[str], path: Sequence[str], statement: str) -> list[str]:
    """Return the command of an interpreter that runs one statement and has a given `sys.path`.

    Args:
        options: Its options.
        path: What it imports from.
        statement: What it runs.
    """
    program = f"import sys; sys.path[:] = {list(path)!r}; {statement}"
    return [sys.executable, *options, "-c", program]


def become_interpreter(  # noqa: PLR0917 - as `live`
    interpreter: PlainInterpreter,
    environment: dict[str, str],
    site: PlainSite,
    stops: list[PlainStop],
    stem: str,
    parent: int,
    limits: PlainLimits,
    watched: bool,
) -> NoReturn:
    """Replace this forked process by an interpreter of its own, which lives the worker's life.

    Args:
        interpreter: What it takes.
        environment: Environment variables of a program that is started here.
        site: As for `harness.processes.life.live`, like the rest.
        stops: Where it is to stop.
        stem: What the paths of its orders, trace and output begin with.
        parent: Pid of the supervisor's process.
        limits: What the kernel is to refuse it.
        watched: Whether it notes what it does outside of its workspace.
    """
    try:
        begin_life(parent, limits)
        enter(site, stem)
        options, path, hash_seed, worker, main = interpreter
        fd = os.memfd_create("incarnation", 0)
        body = marshal.dumps((worker, main, site, stops, stem, parent, limits, watched))
        with open(fd, "wb", closefd=False) as file:
            file.write(body)
        os.lseek(fd, 0, os.SEEK_SET)
        begin = f"from harness.processes.fresh_interpreter import begin; begin({fd})"
        os.execve(  # noqa: S606 - this interpreter, our own program
            sys.executable,
            interpreter_command(options, path, begin),
            {**environment, "PYTHONHASHSEED": hash_seed},
        )
    except BaseException:  # noqa: BLE001 - nothing returns into the supervisor
        with suppress(BaseException):
            traceback.print_exc()
    finally:
        os._exit(EXIT_ERROR)


def begin(fd: int) -> NoReturn:
    """Begin the life that `become_interpreter` has written down.

    Args:
        fd: The file in which it stands.
    """
    with open(fd, "rb") as file:
        body = file.read()
    worker, main, site, stops, stem, parent, limits, watched = cast(
        "tuple[bytes, Main, PlainSite, list[PlainStop], str, int, PlainLimits, bool]",
        marshal.loads(body),  # noqa: S302 - from a process of our own
    )
    import random  # noqa: PLC0415 - not in the process that forks

    if isinstance(sys.stdout, io.TextIOWrapper):
        # As in a fork: what was printed before a strike is evidence.
        sys.stdout.reconfigure(line_buffering=True)
    # What modules draw at import is another in each life, and the same in another run.
    random.seed(f"import/{seed_text(site)}")
    live(lambda: cast("Worker", loaded(worker, main)), site, stops, stem, parent, limits, watched)
