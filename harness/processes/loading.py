"""Workers on their way out of a pickle: in the process that forks, and in a new interpreter."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from harness.model.site import Site

    Main: TypeAlias = dict[str, object] | None
    Worker: TypeAlias = Callable[[Site], None]


def loaded(prepared: bytes, main: Main) -> object:
    """Unpickle what the owner of the supervisor's process has pickled.

    Args:
        prepared: The pickle.
        main: None for what ``pickle`` can load. Otherwise it takes ``dill`` and perhaps the main
            module of the program, and this says how a spawned process gets that.
    """
    if main is None:
        return pickle.loads(prepared)  # noqa: S301 - our owner's
    from multiprocess import spawn  # noqa: PLC0415 - heavy, and seldom needed
    from multiprocess.reduction import ForkingPickler  # noqa: PLC0415

    spawn.prepare(main)
    return ForkingPickler.loads(prepared)
