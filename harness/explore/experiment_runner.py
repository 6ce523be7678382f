"""Who runs experiments for those who decide which ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.experiment.lane import Job
    from harness.model.result import ExperimentResult


class ExperimentRunner(Protocol):
    """Runs experiments of scenarios that it knows."""

    def run(
        self, jobs: Sequence[Job], *, keep: bool = True
    ) -> Iterator[tuple[int, ExperimentResult]]:
        """Run experiments.

        Args:
            jobs: What to run.
            keep: Whether to keep what broken ones left, if there is a directory for it.

        Yields:
            The index of a job and its result, as they end.

        Raises:
            HarnessError: The harness itself failed.
            StopRequestedError: A signal asked for it.
        """
        ...
