"""A connection to PostgreSQL and the schema that it owns, for as long as a world's process lives.

The schema is named by a number that the connection holds an advisory lock on. The lock ends with
the connection, whatever ends it, so a schema whose lock is free was left by a world that was
killed, and whoever connects next drops it.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final, cast

import psycopg
from psycopg.conninfo import conninfo_to_dict

from harness.model.errors import DeadlineError, HarnessError, UsageError
from harness.world.coordinator.schema import COLUMNS, TABLES, select

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    from harness.world.coordinator.schema import Row, Value

_CONNECT_S = 5
_ANSWER_S = 5.0

_LOCKS: Final = 0x63726173
"""First key of our advisory locks; the second is the number of the schema."""

_SWEEP: Final = f"""
DO $$
DECLARE
    dead text;
BEGIN
    -- Somebody may be looking into it; then it stays until the next time.
    SET LOCAL lock_timeout = '200ms';
    FOR dead IN
        SELECT nspname FROM pg_namespace
        WHERE nspname ~ '^crash_harness_[0-9]+$' AND pg_has_role(nspowner, 'USAGE')
        AND pg_try_advisory_xact_lock({_LOCKS}, split_part(nspname, '_', 3)::int)
        LIMIT 20
    LOOP
        BEGIN
            EXECUTE format('DROP SCHEMA IF EXISTS %I CASCADE', dead);
        EXCEPTION WHEN lock_not_available THEN
            NULL;
        END;
    END LOOP;
END
$$
"""  # noqa: S608 - the number is ours

_PREPARE: Final = f"""
-- As for SQLite: the facts have to outlive processes, and for that no commit has to reach the disk.
SET synchronous_commit = off;
SET client_min_messages = warning;
SET search_path = {{schema}};
SELECT pg_advisory_lock({_LOCKS}, {{number}});
CREATE SCHEMA {{schema}};
{TABLES}
"""

_EMPTY: Final = "; ".join(f"DELETE FROM {table}" for table in COLUMNS)  # noqa: S608 - ours
"""For so few rows that is several times faster than TRUNCATE, and than a new schema."""

_READ: Final = "; ".join(select(table) for table in COLUMNS)


class PostgresLink:
    """One connection to one database; it connects when it is needed.

    Args:
        url: URL of the database, ``postgresql://...``.

    Raises:
        UsageError: The URL is not well formed.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._place = _place(url)
        self._schema = ""
        self._connection: psycopg.AsyncConnection | None = None

    def __str__(self) -> str:
        """Return where the tables are, for the reader; without a password."""
        return f"schema {self._schema!r} of {self._place}"

    async def begin(self) -> None:
        """Connect if need be, and have all tables there and empty.

        Raises:
            HarnessError: The database cannot be reached or used.
        """
        if self._connection is not None:
            # The server may have been restarted since the last experiment.
            with suppress(HarnessError):
                await self.execute(_EMPTY)
                return
            await self._connection.close()
        self._connection = await self._connect()
        number = secrets.randbelow(2**31)
        self._schema = f"crash_harness_{number}"
        await self.execute(_SWEEP)
        await self.execute(_PREPARE.format(schema=self._schema, number=number))

    async def execute(self, statement: str, values: Sequence[Value] = ()) -> None:
        """Execute a statement; it is committed when this returns.

        Args:
            statement: What to do. Several statements, which take no values, are one transaction.
            values: For its marks.

        Raises:
            HarnessError: It failed.
        """
        async with self._bounded() as connection:
            await connection.execute(statement, values or None)

    async def load(self, table: str, rows: Iterable[Row]) -> None:
        """Add any number of rows to a table.

        Args:
            table: One of `COLUMNS`.
            rows: The rows.

        Raises:
            HarnessError: It failed.
        """
        columns = ", ".join(COLUMNS[table])
        async with (
            self._bounded() as connection,
            connection.cursor() as cursor,
            cursor.copy(f"COPY {table} ({columns}) FROM STDIN") as copy,
        ):
            for row in rows:
                await copy.write_row(row)

    async def read(self) -> dict[str, list[Row]]:
        """Return the rows of all tables, each in its order.

        Raises:
            HarnessError: It failed.
        """
        tables: dict[str, list[Row]] = {}
        async with self._bounded() as connection:
            cursor = await connection.execute(_READ)
            for table in COLUMNS:
                tables[table] = cast("list[Row]", await cursor.fetchall())
                cursor.nextset()
        return tables

    async def close(self) -> None:
        """Drop the schema and disconnect.

        The facts are in the world's directory by now. A schema that cannot be dropped, because the
        server has gone or somebody looks into it, is dropped by whoever connects next.
        """
        if self._connection is None:
            return
        with suppress(HarnessError):
            await self.execute(f"DROP SCHEMA {self._schema} CASCADE")
        await self._connection.close()
        self._connection = None

    async def _connect(self) -> psycopg.AsyncConnection:
        try:
            async with asyncio.timeout(_CONNECT_S):
                return await psycopg.AsyncConnection.connect(
                    self._url, autocommit=True, application_name="crash-harness"
                )
        except (psycopg.OperationalError, TimeoutError) as error:
            why = str(error).strip() or f"no answer within {_CONNECT_S} s"
            raise HarnessError(f"cannot connect to {self._place}: {why}") from None

    @asynccontextmanager
    async def _bounded(self) -> AsyncIterator[psycopg.AsyncConnection]:
        """Give the connection, and hang up when the server does not answer in time.

        Cancelling would not be enough: psycopg then waits for the server to confirm it.
        """
        connection = self._connection
        if connection is None or connection.closed:
            raise HarnessError(f"the connection to {self._place} is closed")
        hung_up = False

        def hang_up() -> None:
            nonlocal hung_up
            hung_up = True
            with socket.socket(fileno=os.dup(connection.fileno())) as end, suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

        timer = asyncio.get_running_loop().call_later(_ANSWER_S, hang_up)
        try:
            yield connection
        except psycopg.Error as error:
            if hung_up:
                raise DeadlineError(f"an answer of {self._place}", _ANSWER_S) from None
            raise HarnessError(f"{self._place}: {str(error).strip()}") from error
        finally:
            timer.cancel()


def _place(url: str) -> str:
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        # The message may repeat the URL, and with it a password.
        raise UsageError(
            f"the URL of the coordinator's PostgreSQL database is not well formed:"
            f" {str(error).strip().partition(':')[0]}"
        ) from None
    host, port = parts.get("host", "the default host"), parts.get("port", 5432)
    return f"PostgreSQL database {parts.get('dbname', 'of the user')!r} at {host}, port {port}"
