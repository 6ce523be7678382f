"""How many malformed archives, replies and children there are."""

from __future__ import annotations

from test_worker_malformed_archives import ARCHIVES
from test_worker_malformed_children import BAD_ARGV, CHILDREN, CODES, OUTPUTS, STRANGE
from test_worker_malformed_services import BAD_PARTS, LOOK_UPS, MALFORMED, POLLS


def test_there_are_more_than_a_hundred() -> None:
    """F-INPUT: counted by what is malformed, so that none is lost from the lists."""
    replies = len(MALFORMED) + len(LOOK_UPS) + len(POLLS) + len(BAD_PARTS)
    children = len(BAD_ARGV) + len(CHILDREN) + len(CODES) + len(STRANGE) + len(OUTPUTS)
    assert (len(ARCHIVES), replies, children) == (50, 95, 96)
