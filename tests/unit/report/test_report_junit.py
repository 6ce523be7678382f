"""JUnit XML: as pytest writes it, so that what reads pytest's reads ours."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from benchmarks.sample_records import run_record
from harness.report.junit import junit

if TYPE_CHECKING:
    from pathlib import Path

SAMPLE = """
import pytest

def test_good():
    pass

def test_bad():
    print("said")
    assert False, "reason"

@pytest.fixture
def broken():
    raise ValueError("setup")

def test_error(broken):
    pass
"""

# What JUnit's schema has and pytest does not write: totals of all suites, the type of a failure.
# The name of all suites it writes since 8.4.
MORE = {
    "testsuites": {"name", "tests", "failures", "errors", "time"},
    "failure": {"type"},
    "error": {"type"},
}


def _used(root: ET.Element) -> tuple[dict[str, set[str]], set[tuple[str, str]]]:
    """Return the attributes of each element, and which stands in which."""
    attributes: dict[str, set[str]] = {}
    inside: set[tuple[str, str]] = set()
    for element in root.iter():
        attributes.setdefault(element.tag, set()).update(element.attrib)
        inside |= {(element.tag, child.tag) for child in element}
    return attributes, inside


def test_nothing_is_written_that_pytest_does_not_write(tmp_path: Path) -> None:
    """Common readers of JUnit XML read it; every element and attribute is pytest's.

    What pytest gives a suite and a case is there, but for the host, which is nobody's business.
    """
    (tmp_path / "test_sample.py").write_text(SAMPLE, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    subprocess.run(
        [*command, "-o", "junit_logging=all", "--junitxml=theirs.xml", "test_sample.py"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    theirs, nested = _used(ET.parse(tmp_path / "theirs.xml").getroot())
    ours, inside = _used(ET.fromstring(junit(run_record())))
    for tag, attributes in ours.items():
        assert attributes <= theirs[tag] | MORE.get(tag, set()), tag
    assert inside <= nested
    assert ours["testsuite"] >= theirs["testsuite"] - {"hostname"}
    assert ours["testcase"] >= theirs["testcase"]


def test_every_experiment_has_its_duration() -> None:
    """Durations are those of all experiments, and a suite has their sum."""
    record = run_record()
    root = ET.fromstring(junit(record))
    cases = {
        f"{case.get('classname')}[{case.get('name')}]": float(case.get("time", "nan"))
        for case in root.iter("testcase")
    }
    for row, seconds in zip(record["experiments"], record["timing"]["each"], strict=True):
        assert cases[row["id"]] == seconds
    sums = [float(suite.get("time", "nan")) for suite in root.iter("testsuite")]
    assert sums == [1.375, 0.125]


def test_counts_are_those_of_the_cases() -> None:
    """Readers show the counts, not the cases: both must say the same."""
    root = ET.fromstring(junit(run_record()))
    for suite in root.iter("testsuite"):
        cases = list(suite.iter("testcase"))
        assert int(suite.get("tests", "0")) == len(cases)
        for kind in ("failure", "error"):
            assert int(suite.get(f"{kind}s", "0")) == sum(c.find(kind) is not None for c in cases)
    for kind in ("tests", "failures", "errors"):
        total = sum(int(suite.get(kind, "0")) for suite in root.iter("testsuite"))
        assert int(root.get(kind, "0")) == total
