"""Asks the oracles: code of the user, which may fail in any way and is no verdict on the worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.experiment.time_limit import TimeIsUp, time_limit
from harness.model.errors import DeadlineError, LeaveError
from harness.model.oracle import Finding, OracleStatus
from harness.model.result import Verdict, Violation

if TYPE_CHECKING:
    from harness.model.oracle import Evidence, Oracle

JUDGING_S = 60.0
"""How long the oracles of an experiment may take together, in seconds."""


def judge(
    oracles: tuple[Oracle, ...], evidence: Evidence, limit_s: float = JUDGING_S
) -> tuple[Verdict, tuple[Violation, ...], str]:
    """Ask every oracle.

    Args:
        oracles: The oracles.
        evidence: What they judge by.
        limit_s: How long they may take together, in seconds.

    Returns:
        The verdict, the violations, and for `UNKNOWN` a note. Broken is stronger than unknown,
        unknown stronger than held; an oracle that fails, or does not answer in time, is unknown.
    """
    violations: list[Violation] = []
    doubts: list[str] = []
    try:
        # One limit for all: to set it takes as long as many an oracle.
        with time_limit(limit_s, "the answers of the oracles") as late:
            for oracle in oracles:
                try:
                    finding = oracle.check(evidence)
                    facts = _facts(finding)
                except (KeyboardInterrupt, LeaveError):
                    raise
                except TimeIsUp:
                    doubts.append(f"oracle {oracle.name} failed: {late}")
                except BaseException as error:  # noqa: BLE001 - a fault of the oracle
                    doubts.append(f"oracle {oracle.name} failed: {type(error).__name__}: {error}")
                else:
                    _add(oracle, finding.answer, facts, violations, doubts)
    except DeadlineError as error:  # between two of them
        doubts.append(str(error))
    if violations:
        return Verdict.BROKEN, tuple(violations), "\n".join(doubts)
    if doubts:
        return Verdict.UNKNOWN, (), "\n".join(doubts)
    return Verdict.HELD, (), ""


def _add(
    oracle: Oracle,
    answer: OracleStatus,
    facts: tuple[str, ...],
    violations: list[Violation],
    doubts: list[str],
) -> None:
    if answer is OracleStatus.BROKEN:
        said = facts or (f"broken, without evidence: {oracle.promise}",)
        violations.extend(Violation(oracle.name, fact) for fact in said)
    elif answer is OracleStatus.UNKNOWN:
        said = facts or ("it gives no reason",)
        doubts.extend(f"oracle {oracle.name} cannot tell: {fact}" for fact in said)


def _facts(finding: object) -> tuple[str, ...]:
    """Return the evidence of a finding.

    Raises:
        TypeError: It is not a finding.
    """
    if not isinstance(finding, Finding) or not isinstance(finding.answer, OracleStatus):
        raise TypeError(f"it answered {finding!r}, not a Finding")
    facts = finding.evidence
    if not isinstance(facts, tuple) or not all(isinstance(fact, str) for fact in facts):
        raise TypeError(f"its evidence is {facts!r}, not a tuple of texts")
    return facts
