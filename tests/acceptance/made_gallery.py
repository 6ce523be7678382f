"""The gallery, made and compared by the command, once for all processes of a test run."""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from acceptance_command import Command, Ran

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Made:
    """The gallery as the command makes it today.

    Attributes:
        ran: The command that made and compared it.
        pages: Directory of the reports, a folder for each family.
    """

    ran: Ran
    pages: Path


@pytest.fixture(scope="session")
def made_gallery(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Make the reports and compare them with what is committed."""
    home = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        home = home.parent
    pages, answer = home / "gallery", home / "gallery.json"
    with (home / "gallery.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not answer.exists():
            ran = Command(home)("gallery", "--check", "--out", str(pages))
            answer.write_text(json.dumps([ran.code, ran.out, ran.err]), encoding="utf-8")
    return Made(Ran(*json.loads(answer.read_text(encoding="utf-8"))), pages)
