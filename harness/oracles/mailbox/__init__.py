"""Promises of workers with inbox, attempts and outbox."""
