"""Hash seeds: what decides the order of a set of texts, as PYTHONHASHSEED has it.

All processes that are forked from one interpreter have the hash seed of that one; each interpreter
of its own has another, as programs do that are started. Both come from the seed of the run, so that
a worker that goes through a set does the same in two runs. A user who has set one gets that one
everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE = "PYTHONHASHSEED"
_DRAWN_BY_PYTHON = ("", "random")


def hash_seed_of_forks(seed: int, environment: Mapping[str, str]) -> str:
    """Return the hash seed of the process that forks incarnations.

    Args:
        seed: The seed of the run.
        environment: Environment variables of the user.
    """
    return _set_by_user(environment) or _drawn(f"forks/{seed}")


def hash_seed_of_interpreter(seed: int, incarnation: int, environment: Mapping[str, str]) -> str:
    """Return the hash seed of an incarnation that has an interpreter of its own.

    Args:
        seed: The seed of the run.
        incarnation: Number of the incarnation.
        environment: Environment variables of the user.
    """
    return _set_by_user(environment) or _drawn(f"interpreter/{seed}/{incarnation}")


def _set_by_user(environment: Mapping[str, str]) -> str:
    value = environment.get(VARIABLE, "")
    return "" if value in _DRAWN_BY_PYTHON else value


def _drawn(text: str) -> str:
    # From 1: with 0 nothing is hashed by chance, which no program expects.
    return str(crc32(text.encode()) % ((1 << 32) - 1) + 1)
