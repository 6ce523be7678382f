"""Choosing and reaching the coordinator's database: errors that say what to do, in time."""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import TYPE_CHECKING

import pytest

from harness.model.errors import DeadlineError, HarnessError, UsageError
from harness.model.workload import Command, Workload
from harness.world.coordinator.facts import CoordinatorFacts
from harness.world.coordinator.store import open_store
from harness.world.ledger import EffectLedger
from harness.world.service import ServiceContext

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")

from harness.world.coordinator import postgres_connection as postgres_link  # noqa: E402 - needs psycopg
from harness.world.coordinator.postgres_connection import PostgresLink  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "geheim"
DEADLINE_S = 30.0


async def _open(database: str, world_dir: Path) -> None:
    context = ServiceContext(world_dir, Workload((), Command("f")), EffectLedger(world_dir))
    try:
        store = await open_store(database, context, CoordinatorFacts())
        await store.close()
    finally:
        await context.shared.close()


@pytest.mark.parametrize(
    ("database", "said"),
    [
        ("mysql://host/db", "unknown kind of database .*; known: 'postgresql', 'sqlite'"),
        ("postgres://host/db", "did you mean 'postgresql'"),
        ("sqlite:/tmp/other.db", "always in the world's directory"),
        (f"postgresql://u:{SECRET}@host/db?nonsense=1", "not well formed"),
        (f"postgresql://u:{SECRET}@[::1/db", "not well formed"),
    ],
)
def test_a_database_that_cannot_be_meant_is_a_usage_error(
    tmp_path: Path, database: str, said: str
) -> None:
    """The message says what would be right, and never repeats a password."""
    with pytest.raises(UsageError, match=said) as caught:
        asyncio.run(_open(database, tmp_path))
    assert SECRET not in str(caught.value)


def test_without_psycopg_the_error_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL that is chosen and not installed is a usage error with the command to run."""
    for name in (
        "harness.world.coordinator.postgres_store",
        "harness.world.coordinator.postgres_connection",
    ):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(UsageError, match=r"pip install crash-harness\[postgres\]"):
        asyncio.run(_open("postgresql:///db", tmp_path))


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    """The error says which server cannot be reached and why, without the password."""
    database = f"postgresql://u:{SECRET}@/db?host={tmp_path}"
    with pytest.raises(HarnessError, match="cannot connect to PostgreSQL database 'db'") as caught:
        asyncio.run(_open(database, tmp_path))
    assert str(tmp_path) in str(caught.value)
    assert SECRET not in str(caught.value)


def test_a_server_that_does_not_greet_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connecting has a deadline, also when somebody accepts and says nothing."""
    monkeypatch.setattr(postgres_link, "_CONNECT_S", 0.3)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as mute:
        mute.bind(str(tmp_path / ".s.PGSQL.5432"))
        mute.listen()
        opening = _open(f"postgresql://u@/db?host={tmp_path}", tmp_path)
        with pytest.raises(HarnessError, match=r"no answer within 0\.3 s"):
            asyncio.run(asyncio.wait_for(opening, DEADLINE_S))


def test_a_server_that_does_not_answer_is_given_up(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every statement has a deadline; after it the connection is gone and a new one is made."""

    async def run() -> None:
        link = PostgresLink(postgres_url)
        await link.begin()
        try:
            schema = str(link).split("'")[1]
            async with await psycopg.AsyncConnection.connect(postgres_url) as other:
                await other.execute(f"LOCK TABLE {schema}.acks")
                monkeypatch.setattr(postgres_link, "_ANSWER_S", 0.3)
                async with asyncio.timeout(DEADLINE_S):
                    with pytest.raises(DeadlineError, match="an answer of PostgreSQL"):
                        await link.execute("INSERT INTO acks VALUES (1, 'c', 's', 0)")
                monkeypatch.undo()
                await link.begin()
                await link.execute("INSERT INTO acks VALUES (1, 'c', 's', 0)")
            assert (await link.read())["acks"] == [(1, "c", "s", 0)]
        finally:
            await link.close()

    asyncio.run(run())
