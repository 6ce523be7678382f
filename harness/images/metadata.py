"""What a program can see of a directory tree beside its content: the other half of equality.

Two trees with equal content may still lead a program elsewhere: by a mode, an owner, a time, the
order of a listing, a second name of a file, a hole, an extended attribute. Times of equal runs are
never equal. So a time within the run counts by its rank among the others, which says what is newer
than what; a time outside of it was set on purpose and counts as it is.
"""

from __future__ import annotations

import hashlib
import os
import stat
from typing import TYPE_CHECKING

from harness.images.tree import data_segments, has_holes

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def metadata_digest(
    root: Path, parts: Iterable[str], since_ns: int, links_into: Path | None = None
) -> str:
    """Return the digest of what can be seen of directories beside their content.

    Args:
        root: Directory that holds them.
        parts: Names of the directories; those that are not there do not count.
        since_ns: When the experiment began, in nanoseconds since the epoch.
        links_into: Directory into which links count by where they lead below it; by default `root`.

    Returns:
        The digest. Equal for trees that no program can tell apart by what `os.stat`, `os.listdir`
        and the like say, but for inode numbers, change times and sizes of databases.
    """
    home = os.fspath(root)
    linked = os.fspath(links_into or root)
    lines: list[str] = []
    times: list[int] = []
    names: dict[tuple[int, int], int] = {}
    waiting = [part for part in parts if os.path.isdir(f"{home}/{part}")]
    while waiting:
        below = waiting.pop()
        path = f"{home}/{below}"
        try:
            status = os.stat(path)
            with os.scandir(path) as entries:
                listing = [(e.name, e.stat(follow_symlinks=False)) for e in entries]
        except OSError as error:  # no leave to look: then a program has none either
            lines.append(f"{below}/ {error.errno}")
            continue
        lines.append(f"{below}/ {_summary(status)} {_attributes(path)}")
        times.append(status.st_mtime_ns)
        for name, entry in listing:
            inner = f"{below}/{name}"
            if stat.S_ISDIR(entry.st_mode):
                lines.append(f"{inner} /")
                waiting.append(inner)
                continue
            extra = _attributes(f"{home}/{inner}")
            if stat.S_ISLNK(entry.st_mode):
                extra += os.readlink(f"{home}/{inner}").replace(linked, "")
            elif has_holes(entry) and stat.S_ISREG(entry.st_mode):
                extra += _segments(f"{home}/{inner}", entry.st_size)
            if entry.st_nlink > 1:
                key = entry.st_dev, entry.st_ino
                extra += f" same as {names.setdefault(key, len(names))}"
            lines.append(f"{inner} {_summary(entry)} {extra}")
            times.append(entry.st_mtime_ns)
    lines.append(_ranked(times, since_ns))
    text = "\n".join(lines)
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()


def _summary(status: os.stat_result) -> str:
    return f"{status.st_mode:o} {status.st_uid} {status.st_gid} {status.st_rdev}"


def _attributes(path: str) -> str:
    try:
        names = os.listxattr(path, follow_symlinks=False)
    except OSError:
        return ""
    return "".join(
        f"{name}={os.getxattr(path, name, follow_symlinks=False).hex()}" for name in sorted(names)
    )


def _segments(path: str, size: int) -> str:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return ""
    try:
        return str(list(data_segments(fd, size)))
    finally:
        os.close(fd)


def _ranked(times: list[int], since_ns: int) -> str:
    within = sorted({time for time in times if time >= since_ns})
    ranks = {time: f"+{rank}" for rank, time in enumerate(within)}
    return " ".join(ranks.get(time, str(time)) for time in times)
