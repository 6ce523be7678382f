"""The environment of a run: versions, and the few variables that can matter."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, packages_distributions, requires, version
from typing import TYPE_CHECKING

from harness.model.hash_seed import VARIABLE, hash_seed_of_forks
from harness.record.masking import MASK, looks_secret

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.record.failure_schema import EnvironmentRow

_VARIABLES = (
    "CI",
    "GITHUB_SHA",
    "GITHUB_REF",
    "GITLAB_CI",
    "LANG",
    "LC_ALL",
    "PYTHONHASHSEED",
    "TZ",
)
_PREFIXES = ("CRASH_HARNESS_",)
_MOST = 60

NOWHERE: EnvironmentRow = {"python": "", "platform": "", "packages": {}, "variables": {}}
"""For records that must be the same everywhere."""


def environment(modules: Iterable[str], seed: int) -> EnvironmentRow:
    """Describe where we run.

    Args:
        modules: Import names of the worker's packages; their distributions are listed with ours.
        seed: The seed of the run, from which the hash seed of its workers comes.
    """
    provided = packages_distributions()
    variables = {**os.environ, VARIABLE: hash_seed_of_forks(seed, os.environ)}
    wanted = {"crash-harness", *_required("crash-harness")}
    for name in modules:
        wanted.update(provided.get(name.split(".")[0], ()))
    return {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": f"{platform.system()} {platform.release()} {platform.machine()}",
        "packages": {name: found for name in sorted(wanted)[:_MOST] if (found := _version(name))},
        "variables": {
            name: MASK if looks_secret(name) else value
            for name, value in sorted(variables.items())
            if name in _VARIABLES or name.startswith(_PREFIXES)
        },
    }


def _required(name: str) -> list[str]:
    try:
        lines = requires(name) or []
    except PackageNotFoundError:
        return []
    ends = str.maketrans(dict.fromkeys("[<>=!~; (", " "))
    return [line.translate(ends).split()[0].lower() for line in lines]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
