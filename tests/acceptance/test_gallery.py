"""The committed gallery is what the command makes today."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conftest import Command


def test_gallery_is_as_committed(command: Command) -> None:
    """Issue 6: a change in reports is seen in review; `crash-harness gallery` makes them anew."""
    ran = command("gallery", "--check")
    assert ran.code == 0, ran.out + ran.err
