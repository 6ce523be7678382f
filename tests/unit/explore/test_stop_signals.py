"""Signals that ask a run to stop: heard between two experiments, and nowhere else."""

from __future__ import annotations

import select
import signal

import pytest

from harness.explore.stop_signals import StopRequestedError, StopSignals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_noted_and_raises_nothing_by_itself(number: signal.Signals) -> None:
    """What raised anywhere could lose a result between where it comes from and where it is kept."""
    with StopSignals() as stop:
        stop.check()
        assert not select.select([stop], [], [], 0)[0]
        signal.raise_signal(number)
        assert select.select([stop], [], [], 0)[0] == [stop]
        with pytest.raises(StopRequestedError, match=number.name) as raised:
            stop.check()
    assert raised.value.number == number


def test_a_second_ctrl_c_does_not_wait_and_a_second_sigterm_is_passed_over() -> None:
    """A person may have had enough; a CI system sends SIGTERM after SIGINT in any case."""
    with StopSignals() as stop:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(StopRequestedError, match="SIGINT"):
            stop.check()


def test_ctrl_c_is_ignored_on_the_way_out() -> None:
    """A third one would leave lanes behind; a program that goes on hears it again."""
    before = signal.getsignal(signal.SIGINT)
    try:
        for ends in (False, True):
            with StopSignals(ends_program=ends):
                signal.raise_signal(signal.SIGINT)
                with pytest.raises(KeyboardInterrupt):
                    signal.raise_signal(signal.SIGINT)
                signal.raise_signal(signal.SIGINT)
            assert signal.getsignal(signal.SIGINT) is (signal.SIG_IGN if ends else before)
    finally:
        signal.signal(signal.SIGINT, before)


def test_handlers_are_as_before_in_the_end() -> None:
    """Whoever calls a session keeps handlers of their own; what is ignored stays ignored."""
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with StopSignals() as stop:
            signal.raise_signal(signal.SIGTERM)
            assert not stop.received
            assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGTERM, before)
