"""A worker whose writes are drawn, and whose restart stumbles over one thing that it can see.

Its writes use every kind of entry and of metadata that a file system has. When it starts again it
looks at one property of what is there; for half of what it can see it does nothing for ever. So two
states that differ in that property alone can have different verdicts, and to take one for the other
is to say `held` where it does not hold.
"""

from __future__ import annotations

import os
import socket
import sqlite3
import time
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

from harness.model.workload import Command, Workload
from harness.oracles.effects import EveryCommandHasEffect
from harness.points import crash_point
from harness.scenario import Scenario
from harness.world.ledger import EffectLedger

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.model.site import Site

SET_NS = 1_000_000_000
_COARSE = 5
"""CLOCK_REALTIME_COARSE (clock_gettime(2)), which the `time` module does not name."""


def _database(place: Path, statement: str) -> None:
    with closing(sqlite3.connect(place / "x.db", isolation_level=None)) as database:
        database.execute("CREATE TABLE IF NOT EXISTS t (word TEXT)")
        database.execute(statement)


def _bind(place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(place / "socket"))


def _holes(place: Path) -> None:
    with (place / "file").open("r+b") as file:
        file.truncate(0)
        file.truncate(1 << 16)


def _swap(place: Path) -> None:
    """Make a file anew: the content is as before, and it is the newest."""
    (place / "file").unlink(missing_ok=True)
    (place / "file").write_bytes(bytes(1 << 16))


WRITES: dict[str, Callable[[Path], object]] = {
    "file": lambda place: (place / "file").write_bytes(bytes(1 << 16)),
    "other": lambda place: (place / "other").write_text("x"),
    "touch": lambda place: os.utime(place / "file"),
    "swap": _swap,
    "stamp": lambda place: os.utime(place / "file", ns=(SET_NS, SET_NS)),
    "mode": lambda place: (place / "file").chmod(0o400),
    "directory mode": lambda place: place.chmod(0o711),
    "owner": lambda place: os.chown(place / "file", 12, 34),
    "attribute": lambda place: os.setxattr(place / "file", "user.mark", b"done"),
    "holes": _holes,
    "hard link": lambda place: (place / "second").hardlink_to(place / "file"),
    "link": lambda place: (place / "link").symlink_to("file"),
    "absolute link": lambda place: (place / "link").symlink_to(place / "file"),
    "pipe": lambda place: os.mkfifo(place / "pipe"),
    "socket": _bind,
    "directory": lambda place: (place / "inner").mkdir(),
    "version": lambda place: _database(place, "PRAGMA user_version = 7"),
    "row": lambda place: _database(place, "INSERT INTO t VALUES ('x')"),
    "no row": lambda place: _database(place, "DELETE FROM t"),
    "wal": lambda place: _database(place, "PRAGMA journal_mode = WAL"),
    "home": lambda place: (Path.home() / ".lock").touch(),
    "temporary": lambda place: Path(os.environ["TMPDIR"], "lock").touch(),
    "working directory": lambda place: Path("lock").touch(),
}
"""What it can do to its directory; what is not possible in the state that it finds, it leaves."""


def _pragma(place: Path, name: str) -> object:
    with closing(sqlite3.connect(f"file:{place / 'x.db'}?mode=ro", uri=True)) as database:
        return database.execute(name).fetchone()


LOOKS: dict[str, Callable[[Path], object]] = {
    "names": lambda place: sorted(path.name for path in place.iterdir()),
    "listing": lambda place: os.listdir(place)[:1],  # noqa: PTH208 - in its own order
    "newest": lambda place: max(place.iterdir(), key=lambda p: p.lstat().st_mtime_ns).name,
    "time": lambda place: (place / "file").stat().st_mtime_ns == SET_NS,
    "mode": lambda place: (place / "file").stat().st_mode,
    "directory mode": lambda place: place.stat().st_mode,
    "owner": lambda place: (place / "file").stat().st_uid,
    "attribute": lambda place: os.listxattr(place / "file"),
    "room": lambda place: (place / "file").stat().st_blocks == 0,
    "names of the file": lambda place: (place / "file").stat().st_nlink,
    "link": lambda place: str((place / "link").readlink()).startswith("/"),
    "pipe": lambda place: (place / "pipe").is_fifo(),
    "socket": lambda place: (place / "socket").is_socket(),
    "version": lambda place: _pragma(place, "PRAGMA user_version"),
    "rows": lambda place: _pragma(place, "SELECT count(*) FROM t"),
    "journal": lambda place: _pragma(place, "PRAGMA journal_mode"),
    "home": lambda place: (Path.home() / ".lock").exists(),
    "temporary": lambda place: Path(os.environ["TMPDIR"], "lock").exists(),
    "working directory": lambda place: Path("lock").exists(),
}
"""What it can look at when it starts again."""


SEEN_BY: dict[str, tuple[str, ...]] = {
    "file": ("names", "listing", "newest"),
    "other": ("names", "listing", "newest"),
    "touch": ("newest", "time"),
    "swap": ("newest", "mode", "owner", "attribute", "room", "names of the file"),
    "stamp": ("time", "newest"),
    "mode": ("mode",),
    "directory mode": ("directory mode",),
    "owner": ("owner",),
    "attribute": ("attribute",),
    "holes": ("room",),
    "hard link": ("names of the file",),
    "link": ("link", "names"),
    "absolute link": ("link", "names"),
    "pipe": ("pipe", "newest"),
    "socket": ("socket", "newest"),
    "directory": ("names", "newest"),
    "version": ("version",),
    "row": ("rows", "newest"),
    "no row": ("rows", "newest"),
    "wal": ("journal",),
    "home": ("home",),
    "temporary": ("temporary",),
    "working directory": ("working directory",),
}
"""By what it can see that it has done something."""


def look(name: str, place: Path) -> str:
    """Return what a look sees, as text; that there is nothing to look at is something, too."""
    try:
        return repr(LOOKS[name](place))
    except (OSError, ValueError, sqlite3.Error) as error:
        return type(error).__name__


def _let_time_pass(place: Path) -> None:
    """Wait until whatever is written next is newer than all that is there.

    Files are stamped by a clock that goes on in steps; what a program reads of it may lag behind.
    """
    newest = max((path.lstat().st_mtime_ns for path in (place, *place.iterdir())), default=0)
    while time.clock_gettime_ns(_COARSE) <= newest:
        pass


def work(writes: tuple[str, ...], stumbles_over: str, odd: int, site: Site) -> None:
    """Live one life.

    Args:
        writes: What to do, in order.
        stumbles_over: What to look at on a restart.
        odd: What is left when the sum of what it sees is halved, where it stumbles.
        site: What a worker is given.
    """
    ledger = EffectLedger(site.world_dir)
    place = site.worker_dir / "place"
    done = {effect.key for effect in ledger.effects()}
    again = site.incarnation > 1 and place.is_dir() and not done
    if again and crc32(look(stumbles_over, place).encode()) % 2 == odd:
        return
    place.mkdir(exist_ok=True)
    crash_point("place.make.after")
    for name in writes:
        _let_time_pass(place)
        with suppress(OSError, sqlite3.Error):
            WRITES[name](place)
        crash_point("state.write.after", name=name)
    for command in site.offered:
        if command.command_id not in done:
            ledger.record("do", command.command_id)


def _workload(_seed: int) -> Workload:
    return Workload((Command("o1"),), Command("o2"))


def drawn_scenario(number: int, writes: tuple[str, ...], stumbles_over: str, odd: int) -> Scenario:
    """Return the scenario of a drawn worker; see `work`."""
    return Scenario(
        f"drawn-{number}",
        partial(work, writes, stumbles_over, odd),
        _workload,
        (EveryCommandHasEffect("do"),),
    )
