"""What to change: every oracle that comes with the harness says what restores its promise."""

from __future__ import annotations

from pathlib import Path

from harness.explore.scenario_files import load

ROOT = Path(__file__).parents[2]
MOST_CHARS = 170


def test_every_oracle_of_the_harness_has_a_remedy() -> None:
    """The third question of a reader is answered by the oracle, in a sentence or two."""
    oracles = {
        oracle.name: oracle
        for scenario in load(str(ROOT / "scenarios")).values()
        for oracle in scenario.oracles
        if type(oracle).__module__.startswith("harness.")
    }
    assert len(oracles) > 20
    for name, oracle in oracles.items():
        remedy = getattr(oracle, "remedy", "")
        assert remedy.endswith("."), name
        assert len(remedy) <= MOST_CHARS, name
