"""The bounds of an incarnation as limits of the kernel; `begin_life` sets them in its process."""

from __future__ import annotations

import resource
import struct
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.model.bounds import Bounds
    from harness.processes.linux import PlainLimits


@lru_cache
def limits_of(bounds: Bounds) -> PlainLimits:
    """Return the limits that the kernel is to set a process, each as it takes it (getrlimit(2)).

    None is wider than what this process has. Address space is not limited: much of what is mapped
    is never used. Nor are processes: the kernel counts all of a user, whoever started them.

    Args:
        bounds: The bounds.
    """
    wanted = (
        (resource.RLIMIT_DATA, bounds.memory_mib << 20),
        (resource.RLIMIT_NOFILE, bounds.open_files),
        (resource.RLIMIT_FSIZE, bounds.file_mib << 20),
        (resource.RLIMIT_CORE, 0),  # what a crash dumps is none of the worker's state
    )
    limits = []
    for which, value in wanted:
        given, _ = resource.getrlimit(which)
        least = value if given == resource.RLIM_INFINITY else min(value, given)
        limits.append((which, struct.pack("=QQ", least, least)))
    return tuple(limits)
