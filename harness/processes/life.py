"""One life of a worker, inside its own process: from the fork to the end of the process.

A forked process lives it, and so does an interpreter of its own
(`harness.processes.fresh_interpreter`); it is the same life.

It ends as Python ends a program, but for the clearing of modules: the kernel does that faster. And
it ends here, whatever is raised: a child that returned into the code of its supervisor would act as
a second one, and kill its siblings.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING

from harness import points
from harness.model.site import Site
from harness.points.armed import Armed, StopOrder
from harness.processes.linux import begin_life

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import NoReturn

    from harness.model.site import PlainSite
    from harness.points.armed import PlainStop
    from harness.processes.linux import PlainLimits
    from harness.processes.loading import Worker

EXIT_ERROR = 1
_EXIT_NOT_FLUSHED = 120
_INTERRUPTED = -1
"""In place of an exit code: a program that Ctrl-C ends dies of SIGINT, and its shell sees that."""

# A worker may have changed or cleared what is looked up later.
_exit = os._exit


def live(  # noqa: PLR0917 - in plain values, as they come through the channel
    load: Callable[[], Worker],
    site: PlainSite,
    stops: list[PlainStop],
    stem: str,
    parent: int,
    limits: PlainLimits,
    watched: bool,
) -> NoReturn:
    """Run a worker as an incarnation, and end the process.

    Args:
        load: Gives the worker.
        site: What it is given.
        stops: Where it is to stop.
        stem: What the paths of its orders, trace and output begin with.
        parent: Pid of the supervisor's process, which this one is not to outlive.
        limits: What the kernel is to refuse it (`harness.processes.limits.limits_of`).
        watched: Whether it notes what it does outside of its workspace.
    """
    code = EXIT_ERROR
    begun = False
    while True:
        try:
            if not begun:
                begun = True
                begin_life(parent, limits)
                os.setpgid(0, 0)  # a signal to the worker's process group is its own affair
                code = _ended(_code_of(lambda: _run(load, site, stops, stem, watched=watched)))
            if code == _INTERRUPTED:
                code = 128 + signal.SIGINT
                signal.signal(signal.SIGINT, signal.SIG_DFL)
                os.kill(os.getpid(), signal.SIGINT)
            _exit(code)
        except BaseException:  # noqa: BLE001, S112 - a handler of the worker may raise anywhere
            continue


def _run(
    load: Callable[[], Worker],
    site: PlainSite,
    stops: list[PlainStop],
    stem: str,
    *,
    watched: bool,
) -> None:
    enter(site, stem)
    worker = load()
    _seed(site)
    orders = [StopOrder(*stop) for stop in stops]
    points.arm(Armed(f"{stem}.trace.ndjson", orders, f"{stem}.orders.json").hit)
    gc.enable()
    if watched:
        from harness.processes.watch_outside import watch_outside  # noqa: PLC0415 - seldom needed

        watch_outside(site[0].rpartition("/")[0], f"{stem}.outside.txt")
    worker(Site.from_plain(site))


def enter(site: PlainSite, stem: str) -> None:
    """Send the output where it belongs, and go to the working directory.

    Args:
        site: What the worker is given.
        stem: What the path of the output begins with.

    Raises:
        OSError: One of the two is not there any more.
    """
    output = os.open(f"{stem}.output.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(output, 1)
    os.dup2(output, 2)
    # Beside the worker's directory: see `harness.images.workspace.Workspace`.
    os.chdir(f"{site[0].rpartition('/')[0]}/cwd")


def _seed(site: PlainSite) -> None:
    """Seed generators anew: one that was seeded at import would draw the same in every life."""
    text = seed_text(site)
    if (random := sys.modules.get("random")) is not None:
        random.seed(text)
    if (numpy_random := sys.modules.get("numpy.random")) is not None:
        from zlib import crc32  # noqa: PLC0415 - a library more makes every fork dearer

        numpy_random.seed(crc32(text.encode()))


def seed_text(site: PlainSite) -> str:
    """Return what generators of a life are seeded with.

    Args:
        site: What the worker is given.
    """
    *_, identity, incarnation, seed, _ = site
    return f"{seed}/{identity}/{incarnation}"


def _code_of(main: Callable[[], None]) -> int:
    """Call something, say what Python would say of how it ended, and return the exit code."""
    try:
        main()
    except SystemExit as end:
        return _code_of_exit(end.code)
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is shown in the output
        _show(error)
        return _INTERRUPTED if isinstance(error, KeyboardInterrupt) else EXIT_ERROR
    return 0


def _code_of_exit(code: object) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        # What C makes of it (exit(3)); one that is no C long counts as -1.
        return code & 0xFF if -(1 << 63) <= code < 1 << 63 else 0xFF
    with suppress(BaseException):
        print(code, file=sys.stderr)  # noqa: T201 - as Python does
    return EXIT_ERROR


def _show(error: BaseException) -> None:
    shown: TracebackType | None = error.__traceback__
    while shown is not None and shown.tb_frame.f_code.co_filename == __file__:
        shown = shown.tb_next  # what called the worker is not its own
    try:
        sys.excepthook(type(error), error.with_traceback(shown), shown)
    except BaseException:  # noqa: BLE001 - the worker's own hook
        _show_ignored()


def _show_ignored() -> None:
    with suppress(BaseException):
        traceback.print_exc()


def _ended(code: int) -> int:
    """Wait for threads that are not daemons, run what is to run at exit, and flush the output.

    What fails here changes nothing but, as in Python, the code of a program whose last output
    could not be written.
    """
    threading = sys.modules.get("threading")
    try:
        if threading is not None:
            threading._shutdown()  # as `multiprocessing` does
    except BaseException:  # noqa: BLE001 - shown, and not minded
        _show_ignored()
    try:
        atexit._run_exitfuncs()  # as `multiprocessing` does
    except BaseException:  # noqa: BLE001 - shown, and not minded
        _show_ignored()
    for stream in (sys.stdout, sys.stderr):
        if stream is None or getattr(stream, "closed", False):
            continue
        try:
            stream.flush()
        except BaseException:  # noqa: BLE001 - shown, where there is something left to show it
            code = _EXIT_NOT_FLUSHED
            _show_ignored()
    return code
