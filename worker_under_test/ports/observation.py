"""What an operator sees. Nothing depends on it."""

from __future__ import annotations

from typing import Protocol


class Observation(Protocol):
    """Receives notable events of the worker."""

    def event(self, name: str, error: BaseException | None = None, **about: str) -> None:
        """Tell that something notable happened.

        Args:
            name: What happened, in fixed words.
            error: The error, if there was one.
            **about: What it was about, for example ``command="c2"``.
        """
