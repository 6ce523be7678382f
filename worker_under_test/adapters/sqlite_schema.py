"""The schema of the local database, as the steps that lead from each version to the next."""

from worker_under_test.checkpoint.stores.sqlite_table import CREATE_TABLE

_FIRST = """
CREATE TABLE identity (
    one         INTEGER PRIMARY KEY CHECK (one = 1),
    instance_id TEXT    NOT NULL,
    boot        INTEGER NOT NULL
) STRICT;
CREATE TABLE inbox (
    position   INTEGER PRIMARY KEY AUTOINCREMENT,
    command_id TEXT    NOT NULL UNIQUE,
    capability TEXT    NOT NULL,
    version    INTEGER NOT NULL,
    payload    TEXT    NOT NULL,
    digest     TEXT    NOT NULL,
    state      TEXT    NOT NULL CHECK (state IN ('received', 'acknowledged', 'processed'))
) STRICT;
CREATE TABLE attempts (
    attempt_id TEXT NOT NULL PRIMARY KEY,
    command_id TEXT NOT NULL UNIQUE REFERENCES inbox (command_id),
    state      TEXT NOT NULL CHECK (state IN ('PENDING', 'RUNNING', 'RECOVERING', 'SUCCEEDED',
                                              'FAILED', 'CANCELLED', 'UNKNOWN'))
) STRICT;
CREATE TABLE checkpoints (
    attempt_id TEXT    NOT NULL PRIMARY KEY REFERENCES attempts (attempt_id),
    seq        INTEGER NOT NULL CHECK (seq > 0),
    data       TEXT    NOT NULL
) STRICT;
CREATE TABLE results (
    attempt_id TEXT NOT NULL PRIMARY KEY REFERENCES attempts (attempt_id),
    kind       TEXT NOT NULL,
    body       TEXT NOT NULL
) STRICT;
CREATE TABLE artifacts (
    command_id TEXT    NOT NULL REFERENCES inbox (command_id),
    name       TEXT    NOT NULL,
    attempt_id TEXT    NOT NULL REFERENCES attempts (attempt_id),
    path       TEXT    NOT NULL,
    size       INTEGER NOT NULL,
    sha256     TEXT    NOT NULL,
    PRIMARY KEY (command_id, name)
) STRICT;
CREATE TABLE events (
    position   INTEGER PRIMARY KEY AUTOINCREMENT,
    event_id   TEXT    NOT NULL UNIQUE,
    command_id TEXT    NOT NULL REFERENCES inbox (command_id),
    attempt_id TEXT    NOT NULL UNIQUE REFERENCES attempts (attempt_id),
    kind       TEXT    NOT NULL,
    body       TEXT    NOT NULL,
    reported   INTEGER NOT NULL DEFAULT 0 CHECK (reported IN (0, 1))
) STRICT;
CREATE INDEX events_unreported ON events (position) WHERE reported = 0;
CREATE TABLE recovery_decisions (
    id                   INTEGER PRIMARY KEY AUTOINCREMENT,
    boot                 INTEGER NOT NULL,
    attempt_id           TEXT    NOT NULL REFERENCES attempts (attempt_id),
    command_id           TEXT    NOT NULL REFERENCES inbox (command_id),
    found_state          TEXT    NOT NULL,
    found_checkpoint_seq INTEGER,
    decision             TEXT    NOT NULL,
    reason               TEXT    NOT NULL
) STRICT;
"""

_WITH_ORDERS = """
CREATE TABLE directives (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    draining INTEGER NOT NULL CHECK (draining IN (0, 1)),
    capacity INTEGER CHECK (capacity >= 0)
) STRICT;
INSERT INTO directives (one, draining, capacity) VALUES (1, 0, NULL);
CREATE TABLE withdrawn (
    capability TEXT    NOT NULL,
    version    INTEGER NOT NULL,
    PRIMARY KEY (capability, version)
) STRICT;
CREATE TABLE cancels (
    command_id TEXT NOT NULL PRIMARY KEY REFERENCES inbox (command_id),
    ordered_by TEXT NOT NULL REFERENCES inbox (command_id)
) STRICT;
CREATE INDEX attempts_by_state ON attempts (state);
"""

_WITH_RECONCILIATION = """
CREATE TABLE reconciliations (
    command_id TEXT NOT NULL PRIMARY KEY REFERENCES inbox (command_id),
    answer     TEXT NOT NULL CHECK (answer IN ('confirmed_done', 'confirmed_not_done', 'abandon')),
    ordered_by TEXT NOT NULL REFERENCES inbox (command_id)
) STRICT;
CREATE TABLE late_answers (
    ordered_by TEXT NOT NULL PRIMARY KEY REFERENCES inbox (command_id),
    command_id TEXT NOT NULL REFERENCES inbox (command_id),
    said       TEXT NOT NULL
) STRICT;
"""

_WITH_STEPS = f"""
{CREATE_TABLE.strip()};
CREATE TABLE step_results (
    run_id  TEXT    NOT NULL,
    step_id TEXT    NOT NULL,
    seq     INTEGER NOT NULL CHECK (seq > 0),
    output  TEXT    NOT NULL,
    PRIMARY KEY (run_id, step_id)
) STRICT;
"""

STEPS = (_FIRST, _WITH_ORDERS, _WITH_STEPS, _WITH_RECONCILIATION)
"""The n-th step leads from version n to version n + 1; an empty database has version 0."""

SCHEMA_VERSION = len(STEPS)
