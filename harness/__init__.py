"""Crash-injection test harness: strike a worker at labelled moments and check what must hold.

Every public name is imported from here (`docs/api.md` lists them)::

    from harness import Command, NoEffectTwice, Scenario, Workload

A name's module is loaded when the name is first used. Importing this package loads nothing else,
so `harness.points` stays cheap in production.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harness.experiment.handle import Experiment, run_schedule
    from harness.explore.scenario_files import load as load_scenarios
    from harness.model.bounds import Bounds
    from harness.model.errors import HarnessError, UsageError
    from harness.model.oracle import Evidence, Finding, Oracle, OracleStatus, broken_if
    from harness.model.result import ExperimentResult, NotHeldError, Verdict
    from harness.model.schedule import Moment, Schedule
    from harness.model.schedule import parse as parse_schedule
    from harness.model.site import Site
    from harness.model.workload import Command, Workload
    from harness.oracles.effects import EveryCommandHasEffect, NoEffectTwice
    from harness.oracles.processes import NoSurvivors
    from harness.points import crash_point
    from harness.scenario import Scenario, broken_by
    from harness.world.coordinator.service import Coordinator
    from harness.world.ledger import EffectLedger
    from harness.world.services.file_server import FileServer
    from harness.world.services.file_versions import SourceFile
    from harness.world.services.receiver import Receiver
    from harness.world.services.render_service import RenderService

__version__ = "0.1.0"

__all__ = [
    "Bounds",
    "Command",
    "Coordinator",
    "EffectLedger",
    "EveryCommandHasEffect",
    "Evidence",
    "Experiment",
    "ExperimentResult",
    "FileServer",
    "Finding",
    "HarnessError",
    "Moment",
    "NoEffectTwice",
    "NoSurvivors",
    "NotHeldError",
    "Oracle",
    "OracleStatus",
    "Receiver",
    "RenderService",
    "Scenario",
    "Schedule",
    "Site",
    "SourceFile",
    "UsageError",
    "Verdict",
    "Workload",
    "broken_by",
    "broken_if",
    "crash_point",
    "load_scenarios",
    "parse_schedule",
    "run_schedule",
]

_HOMES = {
    "Bounds": "harness.model.bounds.Bounds",
    "Command": "harness.model.workload.Command",
    "Coordinator": "harness.world.coordinator.service.Coordinator",
    "EffectLedger": "harness.world.ledger.EffectLedger",
    "EveryCommandHasEffect": "harness.oracles.effects.EveryCommandHasEffect",
    "Evidence": "harness.model.oracle.Evidence",
    "Experiment": "harness.experiment.handle.Experiment",
    "ExperimentResult": "harness.model.result.ExperimentResult",
    "FileServer": "harness.world.services.file_server.FileServer",
    "Finding": "harness.model.oracle.Finding",
    "HarnessError": "harness.model.errors.HarnessError",
    "Moment": "harness.model.schedule.Moment",
    "NoEffectTwice": "harness.oracles.effects.NoEffectTwice",
    "NoSurvivors": "harness.oracles.processes.NoSurvivors",
    "NotHeldError": "harness.model.result.NotHeldError",
    "Oracle": "harness.model.oracle.Oracle",
    "OracleStatus": "harness.model.oracle.OracleStatus",
    "Receiver": "harness.world.services.receiver.Receiver",
    "RenderService": "harness.world.services.render_service.RenderService",
    "Scenario": "harness.scenario.Scenario",
    "Schedule": "harness.model.schedule.Schedule",
    "Site": "harness.model.site.Site",
    "SourceFile": "harness.world.services.file_versions.SourceFile",
    "UsageError": "harness.model.errors.UsageError",
    "Verdict": "harness.model.result.Verdict",
    "Workload": "harness.model.workload.Workload",
    "broken_by": "harness.scenario.broken_by",
    "broken_if": "harness.model.oracle.broken_if",
    "crash_point": "harness.points.crash_point",
    "load_scenarios": "harness.explore.scenario_files.load",
    "parse_schedule": "harness.model.schedule.parse",
    "run_schedule": "harness.experiment.handle.run_schedule",
}


class _NoSuchNameError(AttributeError):
    """A name that the package does not have.

    The nearest one is looked for when somebody reads the message: Python asks for a name here, too,
    before it imports a submodule (``from harness import points``), and reads no message.
    """

    def __str__(self) -> str:
        from harness.model.errors import UnknownNameError  # noqa: PLC0415 - see the docstring

        return str(UnknownNameError("name of harness", str(self.name), __all__))


def _load(name: str) -> object:
    """Load a public name; the package has it from then on."""
    if name not in _HOMES:
        raise _NoSuchNameError(name=name)
    module, _, attribute = _HOMES[name].rpartition(".")
    # Not importlib, which would have to be loaded first.
    value: object = getattr(__import__(module, fromlist=[attribute]), attribute)
    globals()[name] = value
    return value


if not TYPE_CHECKING:  # else a type checker would take any name for a public one
    __getattr__ = _load


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
