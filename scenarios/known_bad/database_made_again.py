"""Known bad (M-27): a database that is gone is silently made again, under the old identity.

The file is deleted while the worker is down and has work that is not over. The reference worker
stops and says so; this one goes on as if nothing had been. Caught by ``boxes-agree``: what was
acknowledged is not in the inbox (INV-1, IDN-01).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.oracles.mailbox.worker_state import ENDED
from harness.scenario import broken_by
from scenarios.reference import variant
from scenarios.reference_books import DATABASE, read_books
from scenarios.reference_worker import reference_worker
from worker_under_test.adapters.ids import SeededIds
from worker_under_test.adapters.sqlite_store import SqliteStore
from worker_under_test.main import Parts

if TYPE_CHECKING:
    from pathlib import Path

    from harness.model.site import Site
    from worker_under_test.settings import Settings


def always_made(settings: Settings) -> SqliteStore:
    """Make a store that takes every start for a first one."""
    return SqliteStore(settings.root / "worker.db", init=True)


def lose_database(worker_dir: Path) -> None:
    """Delete the database if something in it is not over."""
    books = read_books(worker_dir)
    open_attempts = any(row.state not in ENDED for row in books.attempts)
    if open_attempts or any(not row.reported for row in books.outbox):
        for path in worker_dir.glob(f"{DATABASE}*"):
            path.unlink()


def made_again(site: Site) -> None:
    """Live as a worker whose database may be gone at its second start."""
    if site.incarnation == 2:  # noqa: PLR2004 - the life after the first death
        lose_database(site.worker_dir)

    def ids(settings: Settings) -> SeededIds:
        # Starts are counted in the database; made again, it would give the same identities again.
        return SeededIds(f"{settings.id_seed}/{site.incarnation}")

    reference_worker(site, Parts(store=always_made, ids=ids))


DATABASE_MADE_AGAIN = variant(
    "database-made-again",
    Parts(),
    broken_by("boxes-agree"),
    worker=made_again,
    strike=(
        "ack.send.before",
        "ack.send.after",
        "attempt.start.after",
        "checkpoint.save.before",
    ),
)
