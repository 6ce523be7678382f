"""Stores of snapshots: in memory, in SQLite, in files. Each offers both protocols of `store`."""
