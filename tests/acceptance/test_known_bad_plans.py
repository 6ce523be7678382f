"""Known-bad gates, stores, planners and hosts are caught, and the right ones are not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from acceptance_command import Command

RIGHT = ("plan-host", "plan-host-plain", "plan-host-changed", "workflow")

CAUGHT = {
    "saved-before-accepted": "snapshots-advance",  # M-01
    "number-never-released": "runs-end",  # M-02
    "gate-cleared-by-release": "snapshots-advance",  # M-03
    "released-after-success": "snapshots-advance",  # M-04
    "failure-is-absence": "plan-right",  # M-05
    "read-then-write": "snapshots-advance",  # M-06
    "keeps-the-object": "snapshots-advance",  # M-07
    "gate-never-seeded": "plan-right",  # M-08
    "empty-dependencies-are-none": "plan-right",  # M-09
    "isolated-frees-followers": "plan-right",  # M-10
    "dangling-is-satisfied": "plan-right",  # M-11
    "blocked-still-runs": "plan-right",  # M-12
    "run-named-by-process": "landed-runs-once",  # M-21
    "holes-ignored": "plan-right",  # M-28
    "released-on-refusal": "snapshots-advance",  # M-29
    "stale-base": "snapshots-advance",  # M-30
    "untrusted-completion-kept": "plan-right",  # M-33
    "step-recorded-first": "plan-right",
}


@pytest.mark.requirement("HAR-04", "M-01..M-12", "M-21", "M-28..M-30", "M-33")
def test_each_is_broken_by_its_oracle_and_the_right_ones_hold(command: Command) -> None:
    """Every pin matches, every control holds."""
    ran = command.run(*RIGHT, *CAUGHT)
    assert ran.code == 0, ran.out + ran.err
    experiments = command.record()["experiments"]
    for name, oracle in CAUGHT.items():
        mine = [each for each in experiments if each["scenario"] == name]
        broken = [each for each in mine if each["verdict"] == "broken"]
        assert mine[0]["verdict"] == "held", name
        assert {each["pin"] for each in mine} == {f"broken:{oracle}"}
        assert any(
            oracle in {violation["oracle"] for violation in each["violations"]} for each in broken
        ), name


@pytest.mark.requirement("HAR-04")
def test_the_record_of_a_caught_one_runs_again(command: Command) -> None:
    """Run again from its record, it breaks at the same moment with the same fingerprint."""
    assert command.run("stale-base", "--at", "late.commit.after=kill").code == 0
    broken = command.record()["experiments"][1]
    folder = command.out / "latest" / "failures" / broken["fingerprint"]
    repro = command("repro", str(folder), "--times", "2")
    assert f"2 of 2 runs gave fingerprint {broken['fingerprint']}" in repro.out, repro.out
