"""The log of a service's requests: what it holds, its table, and reading it from outside.

It is everything that such a service durably knows. What it did, and how often it was asked what,
follows from the requests and what became of them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from harness.model.canonical_json import canonical
from harness.model.errors import HarnessError
from harness.world.sqlite import reading

if TYPE_CHECKING:
    from pathlib import Path

    from harness.model.canonical_json import JsonObject

REFUSED: Final = "refused"
"""Outcome of a request that a fault refused before the service acted."""

TABLES: Final = """
CREATE TABLE IF NOT EXISTS requests (
    position INTEGER PRIMARY KEY, request TEXT NOT NULL, key TEXT NOT NULL, nth INTEGER NOT NULL,
    fault TEXT NOT NULL, outcome TEXT NOT NULL, body TEXT NOT NULL
);
"""
"""Creates the table if it is missing."""

INSERT: Final = (
    "INSERT INTO requests (position, request, key, nth, fault, outcome, body)"
    " VALUES (?, ?, ?, ?, ?, ?, ?)"
)

_SELECT: Final = (
    "SELECT position, request, key, nth, fault, outcome, body FROM requests ORDER BY position"
)


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """A request and what became of it.

    Attributes:
        position: Place in the service's log, from 1.
        request: Which kind of request, as the service names it.
        key: Which one, as the service says for each kind.
        nth: Which of the requests of this kind with this key, from 1.
        fault: What happened to it on purpose, one of `harness.world.wire_faults.FaultKind`, or
            nothing.
        outcome: What became of it; `REFUSED` if the service never acted.
        body: What else the service has to remember of it.
    """

    position: int
    request: str
    key: str
    nth: int
    fault: str
    outcome: str
    body: JsonObject

    def row(self) -> tuple[str | int, ...]:
        """Return the values that `INSERT` takes."""
        return (
            *(self.position, self.request, self.key, self.nth, self.fault, self.outcome),
            canonical(self.body),
        )


def read_requests(path: Path) -> tuple[LoggedRequest, ...]:
    """Read the log of a service, which may be open in another process, closed, or a copy.

    Args:
        path: The service's database, in a workspace's ``world/`` or a copy of it.

    Returns:
        The requests in the order in which they were served.

    Raises:
        HarnessError: There is no such database, or it cannot be read.
    """
    if not path.is_file():
        raise HarnessError(f"there is no {path.name} in {path.parent}, so no log of that service")
    with reading(path) as db:
        return tuple(
            LoggedRequest(
                position, request, key, nth, fault, outcome, cast("JsonObject", json.loads(body))
            )
            for position, request, key, nth, fault, outcome, body in db.execute(_SELECT)
        )
