"""Crash points: disarmed, refused, and the grammar of labels."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import harness
from harness import points
from harness.points.armed import Armed

ROOT = Path(harness.__file__).parent.parent


@pytest.fixture
def disarmed(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Have this process be disarmed, and be so again afterwards."""
    monkeypatch.setattr(points, "_hook", None)
    monkeypatch.delenv(points.SWITCH, raising=False)
    return monkeypatch


def orders_file(folder: Path) -> Path:
    """Write orders without a stop."""
    path = folder / "orders.json"
    path.write_text(json.dumps({"trace": str(folder / "trace.ndjson"), "stops": []}))
    return path


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in an interpreter of its own that has loaded as little as possible."""
    start = f"import os, sys; sys.path.insert(0, {str(ROOT)!r})\n"
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", start + code],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )


def leads_to(fd: Path, path: Path) -> bool:
    """Tell whether a descriptor of this process is an open file."""
    try:
        return fd.readlink() == path
    except FileNotFoundError:  # it was open for the listing alone
        return False


@pytest.mark.requirement("HAR-01")
@pytest.mark.usefixtures("disarmed")
def test_a_disarmed_point_does_nothing() -> None:
    """Disarmed, a point does not even look at its arguments."""

    class Untouchable:
        def __str__(self) -> str:
            raise AssertionError

    points.crash_point("no label at all", command=Untouchable())
    assert not points.is_armed()


@pytest.mark.parametrize("value", [None, "", "0", "true", "1 "])
def test_arming_without_the_switch_is_refused(
    disarmed: pytest.MonkeyPatch, value: str | None
) -> None:
    """Points refuse to arm unless told to, and stay disarmed."""
    if value is not None:
        disarmed.setenv(points.SWITCH, value)
    with pytest.raises(points.ArmingRefusedError, match="CRASH_HARNESS_ARM=1"):
        points.arm(lambda _label, _context: None)
    assert not points.is_armed()


def test_arming_twice_is_refused(disarmed: pytest.MonkeyPatch) -> None:
    """One process has one arming, and the first one stays: two counts could not be told apart."""
    disarmed.setenv(points.SWITCH, "1")
    seen: list[tuple[str, dict[str, object]]] = []
    points.arm(lambda label, context: seen.append((label, context)))
    assert points.is_armed()
    with pytest.raises(points.ArmingRefusedError, match="armed already"):
        points.arm(lambda _label, _context: seen.clear())
    points.crash_point("a.b.before", command="c1", part=2)
    points.crash_point("a.b.after")
    assert seen == [("a.b.before", {"command": "c1", "part": 2}), ("a.b.after", {})]


def test_orders_in_the_environment_arm_at_the_import(tmp_path: Path) -> None:
    """A program started with ``exec`` is armed by its environment alone."""
    done = run_python(
        "from harness.points import crash_point, is_armed\n"
        "crash_point('a.b.before'); print(is_armed())",
        **{points.SWITCH: "1", points.ORDERS: str(orders_file(tmp_path))},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")
    assert len((tmp_path / "trace.ndjson").read_text().splitlines()) == 1


def test_orders_without_the_switch_are_not_looked_at(tmp_path: Path) -> None:
    """A variable that was left over neither stops a program in production nor writes anything."""
    code = "from harness import points; points.crash_point('a.b.mid'); print('went on')"
    done = run_python(code, **{points.ORDERS: str(orders_file(tmp_path))})
    assert (done.returncode, done.stdout, done.stderr) == (0, "went on\n", "")
    assert not (tmp_path / "trace.ndjson").exists()


def test_the_points_import_nothing_but_themselves() -> None:
    """Points are safe to import in production: a little of the standard library."""
    done = run_python(
        "before = set(sys.modules)\n"
        "from harness.points import crash_point\n"
        "crash_point('a.b.before', command='c1')\n"
        "print(*sorted(set(sys.modules) - before - {'__future__'}))"
    )
    assert (done.stdout, done.stderr) == ("harness harness.points\n", "")


def test_no_third_party_module_is_loaded_when_armed(tmp_path: Path) -> None:
    """The core has no dependency, armed or not."""
    done = run_python(
        "import harness.points\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}"
        " - sys.stdlib_module_names - {'__main__'}))",
        **{points.SWITCH: "1", points.ORDERS: str(orders_file(tmp_path))},
    )
    assert (done.stdout, done.stderr) == ("harness\n", "")


@pytest.mark.parametrize(
    "label",
    ["ack.send.before", "a.b.after", "outbox.mark_sent.mid", "s3.put2.before", "_a.b_.after"],
)
def test_labels_that_read_well(label: str) -> None:
    """A label is two lower-case words and a side."""
    assert points.well_formed(label)


@pytest.mark.parametrize(
    "label",
    [
        "",
        "before",
        "send.before",
        "ack.send",
        "ack.send.later",
        "ack.send.Before",
        "Ack.send.before",
        "ack.SEND.before",
        "ack.send.now.before",
        ".send.before",
        "ack..before",
        "ack.send.before ",
        " ack.send.before",
        "ack.send.before\n",
        "ack-out.send.before",
        "ack.se nd.before",
        "ack.2.before",
        "_._.before",
        "äck.send.before",
        "ack.ſend.before",
        "*",
    ],
)
def test_labels_that_do_not(label: str) -> None:
    """Anything else is not a label."""
    assert not points.well_formed(label)


def test_the_trace_is_not_inherited_by_programs(tmp_path: Path) -> None:
    """A program that the worker starts does not hold the trace open."""
    Armed.from_file(str(orders_file(tmp_path)))
    trace = tmp_path / "trace.ndjson"
    (held,) = (fd for fd in Path("/proc/self/fd").iterdir() if leads_to(fd, trace))
    assert not os.get_inheritable(int(held.name))
    os.close(int(held.name))
