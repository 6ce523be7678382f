"""Promises of step graphs."""
