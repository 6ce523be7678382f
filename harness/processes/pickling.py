"""Pickling for processes of our own: with pickle where it will do, with dill where it will not.

``dill`` sends closures and what belongs to the main module, but its pickler is written in Python,
takes twenty times as long, and must be imported where its work is loaded.
"""

from __future__ import annotations

import pickle

from multiprocess.reduction import ForkingPickler


def plainly(value: object) -> bytes | None:
    """Pickle what any interpreter with the same modules can load.

    Args:
        value: The value.

    Returns:
        None if it takes more: a closure, say, or something of the main module, which a spawned
        process has under another name.
    """
    try:
        plain = pickle.dumps(value)
    except Exception:  # noqa: BLE001 - pickle raises many kinds for what it cannot do
        return None
    return None if b"__main__" in plain or b"__mp_main__" in plain else plain


def portable(value: object) -> bytes:
    """Pickle a value such that ``recv`` of a connection of ``multiprocess`` gives it.

    Args:
        value: The value.

    Raises:
        Exception: It cannot be pickled; ``dill`` raises many kinds.
    """
    plain = plainly(value)
    return bytes(ForkingPickler.dumps(value)) if plain is None else plain
