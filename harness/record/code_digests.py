"""Digests of the code that a run rests on: a journal has them, so that a change is noticed."""

from __future__ import annotations

import hashlib
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

from harness.moments.catalogue import files_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

GONE = "gone"

_INSTALLED = ("site-packages", "dist-packages")


def digests_of_code(packages: Iterable[str], others: Iterable[Path] = ()) -> dict[str, str]:
    """Return the SHA-256 of each file of code, by its absolute path.

    That is every module that is imported now and belongs neither to Python nor to an installed
    package, and every module of some packages.

    Args:
        packages: Import names of the workers' packages.
        others: Files that count as well.
    """
    library = Path(sysconfig.get_path("stdlib")).resolve()
    imported = {
        Path(file).resolve()
        for module in tuple(sys.modules.values())
        if (file := getattr(module, "__file__", None)) and file.endswith(".py")
    }
    own = {
        path
        for path in imported
        if not path.is_relative_to(library) and not any(part in _INSTALLED for part in path.parts)
    }
    for name in packages:
        own.update(path.resolve() for path in files_of(name))
    own.update(path.resolve() for path in others)
    return {str(path): _digest(path) for path in sorted(own)}


def changed_files(digests: Mapping[str, str]) -> list[str]:
    """Return the files that are not what they were, in their order.

    Args:
        digests: As `digests_of_code` returned them.
    """
    return [path for path, digest in digests.items() if _digest(Path(path)) != digest]


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return GONE
