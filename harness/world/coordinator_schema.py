"""The tables of the coordinator's database, for the one who writes and the one who reads."""

from __future__ import annotations

from typing import Final

FILE_NAME: Final = "coordinator.db"
"""Name of the database in the world's directory."""

SCHEMA: Final = """
-- The world is not subject to power loss: its facts have to outlive processes only, and a page that
-- was written outlives those without fsync.
PRAGMA synchronous = OFF;
PRAGMA journal_mode = WAL;
-- The main file does not change while the coordinator is open, so a copy of it and then of its log
-- is consistent at any moment, whoever makes it.
PRAGMA wal_autocheckpoint = 0;
BEGIN;
CREATE TABLE IF NOT EXISTS commands (
    position INTEGER PRIMARY KEY, command_id TEXT NOT NULL UNIQUE, body TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS sessions (
    position INTEGER PRIMARY KEY, session_id TEXT NOT NULL, instance_id TEXT NOT NULL,
    name TEXT NOT NULL, node_id TEXT NOT NULL, inventory TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS deliveries (
    position INTEGER PRIMARY KEY, number INTEGER NOT NULL, command_id TEXT NOT NULL,
    session_id TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS acks (
    position INTEGER PRIMARY KEY, command_id TEXT NOT NULL, session_id TEXT NOT NULL,
    repeated INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS receipts (
    position INTEGER PRIMARY KEY, outcome TEXT NOT NULL, event_id TEXT NOT NULL,
    session_id TEXT NOT NULL, command_id TEXT NOT NULL, attempt_id TEXT NOT NULL,
    kind TEXT NOT NULL, body TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS heartbeats (
    position INTEGER PRIMARY KEY, attempt_id TEXT NOT NULL, command_id TEXT NOT NULL,
    session_id TEXT NOT NULL, progress TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS refusals (
    position INTEGER PRIMARY KEY, command_id TEXT NOT NULL, session_id TEXT NOT NULL,
    reason TEXT NOT NULL
);
COMMIT;
"""
"""Opens a new database or one that was copied. ``position`` counts the facts of all tables."""
