"""The way between a lane and its supervisor's process."""

from __future__ import annotations

import os
import socket
import threading
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.site import Site
from harness.model.workload import Command
from harness.processes.channel import Channel

if TYPE_CHECKING:
    from pathlib import Path

    from harness.processes.channel import Plain

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


def _pair() -> tuple[Channel, Channel]:
    ours, theirs = socket.socketpair()
    return Channel(ours.detach()), Channel(theirs.detach())


@given(st.lists(PLAIN, max_size=4))
def test_values_arrive_whole_and_in_order(values: list[Plain]) -> None:
    """A request without an answer may lie in the socket with the next one; each stays itself."""
    ours, theirs = _pair()
    for value in values:
        ours.send(value)
    assert [theirs.receive() for _ in values] == values
    ours.close()
    with pytest.raises(EOFError):
        theirs.receive()
    theirs.close()


def test_value_larger_than_the_socket_arrives_whole() -> None:
    """A workload may be larger than what a socket takes at once."""
    ours, theirs = _pair()
    value = b"x" * 3_000_000
    sender = threading.Thread(target=ours.send, args=(value,))
    sender.start()
    assert theirs.receive() == value
    sender.join()
    ours.close()
    theirs.close()


def test_end_in_the_middle_of_a_value_is_an_end() -> None:
    """A peer that was killed while it sent leaves half a message, and never a wrong one."""
    ours, theirs = _pair()
    os.write(ours.fd, b"\x00\x00\x00\x09half")
    ours.close()
    with pytest.raises(EOFError):
        theirs.receive()
    theirs.close()


def test_site_is_the_same_on_the_other_side(tmp_path: Path) -> None:
    """What a worker is given does not depend on the way that it came."""
    site = Site(
        worker_dir=tmp_path / "worker",
        world_dir=tmp_path / "wörld",
        endpoint="unix:/x",
        identity="worker-1",
        incarnation=2,
        seed=7,
        offered=(Command("a", {"sum": [1, 2.5, None]}), Command("b")),
    )
    ours, theirs = _pair()
    ours.send(site.plain)
    assert Site.from_plain(theirs.receive()) == site  # type: ignore[arg-type]
    ours.close()
    theirs.close()
