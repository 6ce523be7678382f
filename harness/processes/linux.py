"""Relations between processes, as the kernel has them: prctl(2), proc(5)."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import NoReturn, TypeAlias

    PlainLimits: TypeAlias = tuple[tuple[int, bytes], ...]
    """Limits of the kernel, each with its value as setrlimit(2) takes it."""


_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LOOK_S = 0.0005
_MANY = 1_000
_ONE_BY_ONE = 50
_SIG_SETMASK = int(signal.SIG_SETMASK)
_NO_SIGNALS = bytes(128)  # a sigset_t
_LIBC = ctypes.CDLL(None, use_errno=True)
# Looked up now, or each forked process would do it again.
_PRCTL = _LIBC.prctl
_SIGPROCMASK = _LIBC.sigprocmask
# Where it is another function, this is the one with limits of 64 bits.
_SETRLIMIT = _LIBC.setrlimit64 if hasattr(_LIBC, "setrlimit64") else _LIBC.setrlimit


def die_with_parent(parent: int, number: int = signal.SIGKILL) -> None:
    """Have the kernel signal this process when the thread that started it ends.

    Args:
        parent: Pid of the parent; if it is gone already, this process ends at once.
        number: The signal.

    Raises:
        OSError: The kernel refused.
    """
    _prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os._exit(1)


def begin_life(parent: int, limits: PlainLimits) -> None:
    """Die with the parent, take every signal, and be bounded: what a forked process does first.

    Not `signal.pthread_sigmask`: it makes enumerations of the old mask, which nobody wants here,
    and so touches dozens of pages that the kernel has to copy. Nor the module `resource`: each
    library that is loaded makes every fork dearer.

    Args:
        parent: As for `die_with_parent`.
        limits: What `harness.processes.limits.limits_of` says.

    Raises:
        OSError: The kernel refused.
    """
    die_with_parent(parent)
    _SIGPROCMASK(_SIG_SETMASK, _NO_SIGNALS, None)
    for which, limit in limits:
        _checked(_SETRLIMIT(which, limit), "setrlimit", which)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends.

    Raises:
        OSError: The kernel refused.
    """
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def children(pid: int) -> set[int]:
    """Return the children of a process with one thread, among them those that are not reaped.

    The kernel's own list is read (proc(5)); without it, the process table is searched.

    Args:
        pid: The process.
    """
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:  # noqa: PTH123
            return {int(child) for child in file.read().split()}
    except ProcessLookupError:
        return set()
    except FileNotFoundError:  # a kernel without CONFIG_PROC_CHILDREN, or it is gone
        if not os.path.exists(f"/proc/{pid}"):  # noqa: PTH110 - as above
            return set()
        import psutil  # noqa: PLC0415 - heavy, and seldom needed

        return {process.pid for process in psutil.Process(pid).children()}


def descendants(pid: int, most: int = _MANY) -> set[int]:
    """Return everything that lives below a process, its children's children too.

    Args:
        pid: The process.
        most: How many are enough: then it is not looked any further. Without an end, one that forks
            and ends again and again would be followed for ever.
    """
    found: set[int] = set()
    waiting = {pid}
    while waiting and len(found) < most:
        above = waiting.pop()
        new = (children(above) | _children_of_threads(above)) - found
        found |= new
        waiting |= new
    return found


def _children_of_threads(pid: int) -> set[int]:
    """Return what the threads of a process have started; nothing if the kernel keeps no lists."""
    found: set[int] = set()
    with suppress(OSError):  # it has ended meanwhile
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - texts will do
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:  # noqa: PTH123
                found.update(map(int, file.read().split()))
    return found


def described(pids: Iterable[int]) -> list[str]:
    """Say the name and the command of each process that has not ended.

    Args:
        pids: The processes.
    """
    import psutil  # noqa: PLC0415 - heavy, and seldom needed

    found = []
    for pid in pids:
        with suppress(psutil.Error):  # it has ended, or only its wait status is left
            process = psutil.Process(pid)
            found.append(f"{process.name()!r}: {' '.join(process.cmdline())[:200]}")
    return found


def end_children(spared: Collection[int] = ()) -> dict[int, int]:
    """Kill and reap what is below this process, which adopts orphans and has one thread.

    An orphan's own children come up as orphans of ours, so it takes another look. From the top,
    one by one, nobody is left who could reap a child that dies with it, and take its wait status.
    Processes that fork for ever would never come to an end so: after some looks, whole groups die.

    Args:
        spared: Children that are left alone.

    Returns:
        The wait status of each.
    """
    ends: dict[int, int] = {}
    looks = 0
    while found := children(os.getpid()).difference(spared):
        looks += 1
        if looks > _ONE_BY_ONE and not spared:
            for group in {os.getpgid(pid) for pid in found} - {os.getpgrp()}:
                os.killpg(group, signal.SIGKILL)
        for pid in found:
            os.kill(pid, signal.SIGKILL)
            _, ends[pid] = os.waitpid(pid, 0)
    return ends


def die_of(number: int) -> NoReturn:
    """End this process by a signal that it had taken in, so that its wait status tells of it.

    Args:
        number: The signal; by default, it ends a process.
    """
    signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    os._exit(128 + number)  # not reached: an unblocked signal comes before `kill` returns


def wait_until_stopped(pid: int, deadline_s: float) -> bool:
    """Wait until a process that is about to stop itself, and is not our child, stands still.

    Nothing tells when that is; it takes less than the kernel's shortest turn (proc(5)).

    Args:
        pid: The process.
        deadline_s: Longest wait, in seconds.

    Returns:
        Whether it stands still; False if it is gone, or goes on for too long.
    """
    end = time.monotonic() + deadline_s
    while time.monotonic() < end:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - called often
                state = file.read().rpartition(b")")[2].split()[0]
        except OSError:
            return False
        if state in (b"T", b"t"):
            return True
        time.sleep(_LOOK_S)
    return False


def _prctl(option: int, value: int) -> None:
    _checked(_PRCTL(option, value, 0, 0, 0), "prctl", option)


def _checked(result: int, call: str, about: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), f"{call} {about}")
