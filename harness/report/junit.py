"""JUnit XML, as GitLab, GitHub actions and Jenkins read it: a suite per scenario.

An experiment is a test case. One that came out as its scenario is pinned passes, a known-bad worker
that is caught as well; a broken one is a failure, an inconclusive one an error. A scenario's pin is
a test case of its own. A run that was interrupted has one more suite, with an error in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from harness.report.escaping import block, plain
from harness.report.output import Output, Surroundings, write_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.record.run_schema import ExperimentRow, RunRecord, ScenarioRow, TimingRow
    from harness.report.recorded_run import RecordedRun

_VIOLATIONS = 20


class JUnitFile(Output):
    """Writes ``junit.xml``.

    Args:
        _surroundings: Not used.
    """

    def __init__(self, _surroundings: Surroundings) -> None:
        pass

    def close(self, run: RecordedRun | None) -> None:
        """Write the file."""
        if run is not None:
            write_text(run.folder.junit, junit(run.record))


def junit(record: RunRecord) -> str:
    """Render a run as JUnit XML."""
    by_scenario: dict[str, list[ExperimentRow]] = {}
    for row in record["experiments"]:
        by_scenario.setdefault(row["scenario"], []).append(row)
    each = zip(record["experiments"], record["timing"]["each"], strict=False)
    seconds = {row["id"]: taken for row, taken in each}
    suites = [
        _suite(scenario, by_scenario.get(scenario["name"], []), seconds, record["timing"])
        for scenario in record["scenarios"]
    ]
    if record["interrupted"]:
        suites.append(_interrupted_suite(record))
    total = [sum(numbers) for numbers in zip(*(counts for _, counts in suites), strict=True)]
    tests, failures, errors = total or [0, 0, 0]
    head = (
        f'<testsuites name="crash-harness" tests="{tests}" failures="{failures}" '
        f'errors="{errors}" time="{record["timing"]["seconds"]:.3f}">'
    )
    body = "".join(text for text, _ in suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}\n{body}</testsuites>\n'


def _suite(
    scenario: ScenarioRow, rows: list[ExperimentRow], seconds: dict[str, float], timing: TimingRow
) -> tuple[str, tuple[int, int, int]]:
    name = plain(scenario["name"])
    cases = [_case(row, seconds.get(row["id"], 0.0)) for row in rows]
    cases.append(_pin_case(scenario, len(rows)))
    text = "".join(case for case, _ in cases)
    kinds = [kind for _, kind in cases]
    counts = (len(cases), kinds.count("failure"), kinds.count("error"))
    taken = sum(seconds.get(row["id"], 0.0) for row in rows)
    head = (
        f'<testsuite name={quoteattr(name)} tests="{counts[0]}" failures="{counts[1]}" '
        f'errors="{counts[2]}" skipped="0" time="{taken:.3f}" '
        f"timestamp={quoteattr(plain(timing['started']))}>\n"
    )
    return f"{head}{text}</testsuite>\n", counts


def _interrupted_suite(record: RunRecord) -> tuple[str, tuple[int, int, int]]:
    why = quoteattr("the run was " + plain(record["interrupted"], 300))
    started = quoteattr(plain(record["timing"]["started"]))
    return (
        '<testsuite name="crash-harness" tests="1" failures="0" errors="1" skipped="0" '
        f'time="0.000" timestamp={started}>\n'
        '<testcase classname="crash-harness" name="run to its end" time="0.000">'
        f'<error type="interrupted" message={why}></error></testcase>\n</testsuite>\n'
    ), (1, 0, 1)


def _case(row: ExperimentRow, seconds: float) -> tuple[str, str]:
    schedule = plain(row["schedule"]) or "control"
    caught = row["verdict"] == "broken" and row["schedule"] and row["pin"] != "holds"
    head = (
        f"<testcase classname={quoteattr(plain(row['scenario']))} name={quoteattr(schedule)} "
        f'time="{seconds:.3f}"'
    )
    if row["verdict"] == "held":
        return f"{head}/>\n", ""
    body = escape("\n".join(_facts(row)))
    if caught or row["known"]:
        return f"{head}><system-out>{body}</system-out></testcase>\n", ""
    kind = "failure" if row["verdict"] == "broken" else "error"
    first = row["violations"][0]["message"] if row["violations"] else row["note"]
    about = f"<{kind} type={quoteattr(row['verdict'])} message={quoteattr(plain(first, 300))}>"
    return f"{head}>{about}{body}</{kind}></testcase>\n", kind


def _facts(row: ExperimentRow) -> Iterator[str]:
    for violation in row["violations"][:_VIOLATIONS]:
        yield plain(f"{violation['oracle']}: {violation['message']}")
    if len(row["violations"]) > _VIOLATIONS:
        yield f"and {len(row['violations']) - _VIOLATIONS} more"
    if row["note"]:
        yield from block(row["note"])
    if row["fingerprint"]:
        yield plain(f"failures/{row['fingerprint']}")


def _pin_case(scenario: ScenarioRow, experiments: int) -> tuple[str, str]:
    name = plain(scenario["name"])
    pin = quoteattr("pin: " + plain(scenario["pin"]))
    head = f"<testcase classname={quoteattr(name)} name={pin}"
    if scenario["as_pinned"]:
        return f'{head} time="0.000"/>\n', ""
    kind = "failure" if scenario["mismatch"] else "error"
    facts = [scenario["mismatch"], *scenario["inconclusive"][:_VIOLATIONS]]
    if not scenario["finished"]:
        facts.append(f"it was not finished, only {experiments} of its experiments were run")
    body = "\n".join(plain(fact) for fact in facts if fact)
    about = f'<{kind} type="pin" message={quoteattr(body.split(chr(10), 1)[0][:300])}>'
    return f'{head} time="0.000">{about}{escape(body)}</{kind}></testcase>\n', kind
