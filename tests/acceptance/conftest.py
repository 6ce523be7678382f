"""Fixtures of the acceptance tests; not type checked, because another conftest has its name."""

from acceptance_command import command
from made_gallery import made_gallery

__all__ = ["command", "made_gallery"]
