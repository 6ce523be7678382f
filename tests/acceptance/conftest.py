"""Fixtures of the acceptance tests; not type checked, because another conftest has its name."""

from acceptance_command import command

__all__ = ["command"]
