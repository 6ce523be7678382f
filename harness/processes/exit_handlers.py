"""Which exit handlers of the process that forks run at the end of a life (`atexit`).

A life is a fork of a process that has imported the worker and run its warm-up. What a module
registers while it is imported belongs to the program, and runs at the end of each life. What the
warm-up itself has registered belongs to the warm-up, and what is finalized with an object that was
there before the fork is shared by all lives: neither is for one of them to clear away.
"""

from __future__ import annotations

import atexit
import sys
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

P = ParamSpec("P")
T = TypeVar("T")


@contextmanager
def imports_alone_register() -> Iterator[None]:
    """Have `atexit.register` do nothing meanwhile, unless a module calls it at its import.

    `weakref` registers one handler for all finalizers, when it makes the first: it may, too.
    """
    register = atexit.register

    def watched(handler: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Callable[P, T]:
        caller = sys._getframe(1)
        if caller.f_code.co_name == "<module>" or caller.f_globals is weakref.__dict__:
            return register(handler, *args, **kwargs)
        return handler

    atexit.register = watched
    try:
        yield
    finally:
        atexit.register = register


def keep_finalizers_from_exit() -> None:
    """Let no finalizer that there is now run when a forked process ends."""
    registry: dict[weakref.finalize[..., object], object] = getattr(
        weakref.finalize, "_registry", {}
    )
    for finalizer in list(registry):
        finalizer.atexit = False
