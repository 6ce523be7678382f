"""Known-bad workers are caught, and their failures can be run again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from acceptance_command import Command


@pytest.mark.requirement("HAR-04")
@pytest.mark.parametrize(
    ("scenario", "oracle", "schedule"),
    [
        ("ack-before-save", "boxes-agree", "ack.send.after=kill"),
        ("reported-before-sent", "boxes-agree", "event.mark.after=kill"),
        ("written-in-place", "artifacts-whole", "artifact.write.mid=kill"),
        ("running-is-the-only-guard", "one-effect-per-command", "render.create.after=kill"),
        ("not-ours-so-not-running", "one-effect-per-command", "process.wait.before=kill"),
        ("gone-child-taken-for-done", "child-ends-once", "process.spawn.after=kill"),
        ("lock-left-behind", "starts-again", "parcel.send.after=kill"),
        ("left-for-next-start", "every-command-has-effect", "letter.take.after=kill"),
        ("pid-taken-for-identity", "strangers-left-alone", "process.wait.before=kill"),
    ],
)
def test_known_bad_worker_is_broken_by_its_oracle_and_reproduces(
    command: Command, scenario: str, oracle: str, schedule: str
) -> None:
    """The oracle that the docstring names breaks it, with one fingerprint each time."""
    ran = command.run(scenario, "--at", schedule)
    assert ran.code == 0, ran.out + ran.err
    (control, struck) = command.record()["experiments"]
    assert control["verdict"] == "held"
    assert struck["verdict"] == "broken"
    assert struck["pin"] == f"broken:{oracle}"
    assert oracle in {violation["oracle"] for violation in struck["violations"]}
    folder = command.out / "latest" / "failures" / struck["fingerprint"]
    assert list((folder / "images" / "1-end" / "worker").iterdir())
    repro = command("repro", str(folder), "--times", "3")
    assert repro.code == 1, repro.out + repro.err
    assert f"3 of 3 runs gave fingerprint {struck['fingerprint']}" in repro.out
    recheck = command("recheck", str(folder))
    assert recheck.code == 1, recheck.out + recheck.err
    broken_now = recheck.out.partition("broken now: ")[2].splitlines()[0]
    assert sorted(broken_now.split(", ")) == sorted({v["oracle"] for v in struck["violations"]})


def test_pin_that_no_longer_matches_exits_1(command: Command) -> None:
    """A mismatch fails in both directions."""
    folder = command.out.parent / "wrong_pins"
    folder.mkdir()
    (folder / "pins.py").write_text(
        "from dataclasses import replace\n"
        "from harness.scenario import HOLDS, broken_by\n"
        "from scenarios.known_bad.ack_before_save import ACK_BEFORE_SAVE\n"
        "from scenarios.reference import REFERENCE\n"
        "FIXED = replace(ACK_BEFORE_SAVE, name='said-to-hold', pin=HOLDS)\n"
        "WORSE = replace(REFERENCE, name='said-to-break', pin=broken_by('boxes-agree'),\n"
        "    strike=('ack.send.before',))\n",
        encoding="utf-8",
    )
    pins = str(folder / "pins.py")
    assert command.run("--scenarios", pins, "said-to-hold", "--at", "ack.send.after=kill").code == 1
    better = command.run("--scenarios", pins, "said-to-break")
    assert better.code == 1, better.out + better.err
    assert "pinned broken by boxes-agree, but none did" in better.out
