"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.explore.scenario_files import DEFAULT
from harness.images.root import usable_root
from harness.report.outputs import NONE, OUTPUTS

if TYPE_CHECKING:
    from collections.abc import Callable


def _root(_context: click.Context, _option: click.Parameter, given: Path | None) -> Path | None:
    return None if given is None else usable_root(given)


root_option = click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False, writable=True, path_type=Path),
    default=None,
    callback=_root,
    help="Directory for the workspaces (default: memory if there is room, else the temp folder).",
)

seed_option = click.option(
    "--seed", default=0, show_default=True, help="Source of everything random."
)


def scenarios_option(command: Callable[..., None]) -> Callable[..., None]:
    """Add ``--scenarios``."""
    return click.option(
        "--scenarios",
        "source",
        default=DEFAULT,
        metavar="PATH",
        help="Folder or file with the scenarios (default: ./scenarios).",
    )(command)


def report_option(command: Callable[..., None]) -> Callable[..., None]:
    """Add ``--report``."""
    return click.option(
        "--report",
        "reports",
        default=None,
        metavar="NAMES",
        help=f"Outputs beside the record, joined by commas: {', '.join(OUTPUTS)}, or {NONE} "
        "(default: html; in GitHub Actions also markdown and annotations).",
    )(command)
