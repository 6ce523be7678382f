"""A shell beside a copy of a crash image, with the world running, to start the worker by hand."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from harness.experiment.rig import IDENTITY
from harness.images.run_folder import FailureFolder
from harness.images.scratch import remove_scratch, sweep_scratch, take_scratch
from harness.images.tree import copy_tree
from harness.model.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from harness.replay.reproduce import Failure
    from harness.scenario import Scenario

_SCRIPT = '''\
"""Run one incarnation of the worker in this terminal, on a copy of the crash image."""

from pathlib import Path

from harness import Site, load_scenarios

scenario = load_scenarios({scenarios})[{scenario}]
workload = scenario.workload({seed})
scenario.worker(
    Site(
        worker_dir=Path({worker}),
        world_dir=Path({world}),
        endpoint={endpoint},
        identity={identity},
        incarnation={incarnation},
        seed={seed},
        offered=workload.commands,
    )
)
'''


def open_shell(failure: Failure, scenario: Scenario, folder: Path, root: Path) -> int:
    """Open a shell on a copy of the crash image of the last strike.

    Args:
        failure: The failure.
        scenario: Its scenario.
        folder: The failure's folder.
        root: Where the copy is made; it is deleted afterwards.

    Returns:
        The exit code of the shell.

    Raises:
        UsageError: The crash image is not there.
    """
    number = max(1, len(failure.schedule.incarnations))
    image = FailureFolder(folder).end_image(number)
    if not image.is_dir():
        raise UsageError(f"no crash image at {image}")
    for left in sweep_scratch(root):
        sys.stderr.write(f"crash-harness: {left}\n")
    copy = take_scratch(root)
    try:
        copy_tree(image, copy / "site")
        return _shell(failure, scenario, copy, number + 1)
    finally:
        with suppress(OSError):
            remove_scratch(copy)


def _shell(failure: Failure, scenario: Scenario, copy: Path, incarnation: int) -> int:
    site = copy / "site"
    world = None
    endpoint = ""
    if scenario.services:
        from harness.world.client import World  # noqa: PLC0415 - only when there are services

        world = World.start()
        endpoint = world.open(
            site / "world",
            scenario.services,
            scenario.drawn_workload(failure.seed),
            scenario.transport,
        )
    script = site / "run_worker.py"
    script.write_text(
        _SCRIPT.format(
            scenarios=ascii(os.path.abspath(failure.scenarios_from)),  # noqa: PTH100 - a text
            scenario=ascii(failure.scenario),
            seed=failure.seed,
            worker=ascii(str(site / "worker")),
            world=ascii(str(site / "world")),
            endpoint=ascii(endpoint),
            identity=ascii(IDENTITY),
            incarnation=incarnation,
        ),
        encoding="utf-8",
    )
    python = shlex.quote(sys.executable)
    sys.stdout.write(
        f"the crash image of incarnation {incarnation - 1} is copied to {site}\n"
        f"start the worker on it:   {python} run_worker.py\n"
        f"or under a debugger:      {python} -m pdb run_worker.py\n"
        "leave the shell to delete the copy\n"
    )
    sys.stdout.flush()
    try:
        # The user's own shell, as it says in the environment.
        shell = os.environ.get("SHELL") or "/bin/sh"
        return subprocess.run([shell], cwd=site, check=False).returncode  # noqa: S603
    finally:
        if world is not None:
            world.stop()
