"""The command in surroundings that are not the usual ones; docs/environments.md has the table.

What takes longer, or needs what few machines have, is run by ``tox -e nightly``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from acceptance_command import DEADLINE_S, ROOT

if TYPE_CHECKING:
    from pathlib import Path

ONE_STRIKE = (
    f"--scenarios {ROOT}/tests/acceptance/test_second_worker.py careful-orders "
    "--at order.charge.before#1=kill --report none"
)
WITH_SERVICES = f"--scenarios {ROOT}/scenarios compute-changing --at= --report none"
PYTHON = f"{sys.executable} -m harness run"
LONG = "x" * 100

NOBODY = (
    "setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all,+dac_read_search "
    "--ambient-caps=-all,+dac_read_search --bounding-set=-all,+dac_read_search"
)
"""Not root; it may read everything, for the interpreter may lie where only root looks."""


def permitted(command: str) -> bool:
    """Tell whether this process may do something, by trying."""
    return (
        subprocess.run(["/bin/sh", "-c", command], capture_output=True, check=False).returncode == 0
    )


needs_mounts = pytest.mark.skipif(
    not permitted("unshare -m mount -t tmpfs tmpfs /mnt"), reason="may not mount in a namespace"
)
needs_root = pytest.mark.skipif(
    not permitted(f"{NOBODY} true"), reason="may not become another user"
)
needs_pids = pytest.mark.skipif(
    not permitted("unshare --pid --fork --mount-proc true"), reason="may not make a pid namespace"
)
needs_compiler = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")


def in_shell(tmp_path: Path, script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script of the shell with our command in it; no traceback may come out of it."""
    tmp_path.chmod(0o777)
    for parent in tmp_path.parents:
        if parent.owner() == "root" and parent.stat().st_mode & 0o777 == 0o700:
            parent.chmod(0o711)  # pytest's own folders, which another user is to get through
        else:
            break
    done = subprocess.run(
        ["/bin/bash", "-c", script],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "T": str(tmp_path), **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=DEADLINE_S,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert "Exception ignored" not in done.stderr, done.stderr
    return done


def works(done: subprocess.CompletedProcess[str]) -> None:
    """See that everything held."""
    assert done.returncode == 0, done.stdout + done.stderr
    assert "as pinned: 1 of 1 scenarios" in done.stdout


OUT = '--out "$T/runs"'


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(f"umask 077; {PYTHON} {ONE_STRIKE} {OUT}", id="umask"),
        pytest.param(f"ulimit -n 64; {PYTHON} {ONE_STRIKE} {OUT}", id="files"),
        pytest.param(f"nohup {PYTHON} {ONE_STRIKE} {OUT}", id="nohup"),
        pytest.param(
            f"LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0 {PYTHON} {ONE_STRIKE} --out $T/ü",
            id="locale",
        ),
        pytest.param(
            f'mkdir \'$T/a ü\'; TMPDIR="$T/a ü" {PYTHON} {ONE_STRIKE} {OUT} --root "$T"',
            id="blanks",
        ),
        pytest.param(
            f"echo 'raise SystemExit(5)' >$T/start.py; PYTHONSTARTUP=$T/start.py "
            f"PYTHONDONTWRITEBYTECODE=1 {PYTHON} {ONE_STRIKE} {OUT}",
            id="python-variables",
        ),
        pytest.param(f"{sys.executable} -P -m harness run {ONE_STRIKE} {OUT}", id="safe-path"),
    ],
)
def test_it_works(tmp_path: Path, script: str) -> None:
    """What a shell, a locale or Python's own variables may be does not change a run."""
    works(in_shell(tmp_path, script))


@needs_root
def test_it_works_for_a_user_who_is_not_root(tmp_path: Path) -> None:
    """Nothing needs privilege, even with 64 processes at most."""
    works(in_shell(tmp_path, f"{NOBODY} bash -c 'ulimit -u 64; {PYTHON} {ONE_STRIKE} --out $T/o'"))


@needs_mounts
def test_it_works_where_home_and_working_directory_are_read_only(tmp_path: Path) -> None:
    """The records go elsewhere, by ``--out``; without it, a sentence asks for that."""
    away = "mount -t tmpfs -o ro tmpfs $T/ro; cd $T/ro; export HOME=$T/ro;"
    script = f"mkdir $T/ro; unshare -m bash -c '{away} {PYTHON} {ONE_STRIKE} "
    works(in_shell(tmp_path, f"{script} --out $T/o'"))
    shutil.rmtree(tmp_path / "ro")
    done = in_shell(tmp_path, f"{script}'")
    assert done.returncode == 2
    assert "no folder for the run can be made in reports/runs: Read-only file system" in done.stderr
    assert "--out" in done.stderr


MEMORY = "mount -t tmpfs -o size=64m tmpfs /dev/shm;"


@needs_mounts
@pytest.mark.parametrize(
    "mounted",
    [MEMORY, "mount -t tmpfs -o ro tmpfs /dev/shm;"],
    ids=["64-MB", "read-only"],
)
def test_it_works_without_room_in_memory(tmp_path: Path, mounted: str) -> None:
    """Workspaces are made in the folder for temporary files then."""
    script = f"unshare -m bash -c '{mounted} TMPDIR=\"$T\" {PYTHON} {ONE_STRIKE} --out $T/o'"
    works(in_shell(tmp_path, script))


@needs_mounts
def test_it_works_without_memory_at_all(tmp_path: Path) -> None:
    """A container may have no ``/dev/shm``."""
    devices = (
        "mount -t tmpfs tmpfs /dev; mknod -m 666 /dev/null c 1 3; mknod -m 666 /dev/urandom c 1 9;"
    )
    if not permitted(f"unshare -m sh -c '{devices} : >/dev/null'"):
        pytest.skip("may not make devices")
    works(in_shell(tmp_path, f"unshare -m bash -c '{devices} {PYTHON} {ONE_STRIKE} --out $T/o'"))


def test_a_path_too_long_for_a_socket_is_refused(tmp_path: Path) -> None:
    """The kernel's bound is 107 bytes; the message says so, and what to do."""
    done = in_shell(tmp_path, f"mkdir $T/{LONG}; {PYTHON} {WITH_SERVICES} {OUT} --root $T/{LONG}")
    assert done.returncode == 2
    assert "a Unix socket takes 107; use a shorter directory or transport 'tcp'" in done.stderr


@needs_mounts
@pytest.mark.parametrize(
    ("mounted", "says"),
    [
        ("mount -t tmpfs tmpfs /proc;", "/proc is not mounted"),
        (
            "mount -o remount,ro,bind /; mount -t tmpfs -o ro tmpfs /dev/shm; cd /;",
            "No usable temporary directory found",
        ),
    ],
    ids=["no-proc", "nothing-to-write-to"],
)
def test_what_cannot_be_done_without_is_refused(tmp_path: Path, mounted: str, says: str) -> None:
    """A traceback was all that was said."""
    given = f"--scenarios {ROOT}/scenarios reference --out $T/o"
    done = in_shell(tmp_path, f"unshare -m bash -c '{mounted} {PYTHON} {given}'")
    assert done.returncode == 2, done.stderr
    assert says in done.stderr


@needs_compiler
def test_a_file_system_without_links_is_refused(tmp_path: Path) -> None:
    """The latest run and the open failures are links; hours would be lost at their end."""
    refused = "(){errno=EPERM;return -1;}"
    code = f"#include <errno.h>\\nint symlink{refused} int symlinkat{refused}"
    done = in_shell(
        tmp_path,
        f"printf '{code}' >$T/l.c && gcc -w -shared -fPIC -o $T/l.so $T/l.c && "
        f"LD_PRELOAD=$T/l.so {PYTHON} {ONE_STRIKE} {OUT}",
    )
    assert done.returncode == 2
    assert "no symbolic link can be made in" in done.stderr
    assert not list((tmp_path / "runs").iterdir())


@pytest.mark.nightly
@pytest.mark.parametrize(
    "script",
    [
        pytest.param(f"{sys.executable} -I -m harness run {WITH_SERVICES} {OUT}", id="isolated"),
        pytest.param(f"{sys.executable} -OO -m harness run {ONE_STRIKE} {OUT}", id="no-asserts"),
        pytest.param(f"ulimit -n 64; {PYTHON} {WITH_SERVICES} {OUT} --jobs 16", id="files"),
        pytest.param(f"PYTHONMALLOC=malloc {PYTHON} {WITH_SERVICES} {OUT}", id="malloc"),
        pytest.param(
            f"echo c | {sys.executable} -m pdb -m harness run {ONE_STRIKE} {OUT}", id="debugger"
        ),
        pytest.param(
            f"{sys.executable} -m cProfile -o $T/profile -m harness run {ONE_STRIKE} {OUT}",
            id="profiler",
        ),
    ],
)
def test_it_works_nightly(tmp_path: Path, script: str) -> None:
    """Interpreters that are started otherwise, or looked into, run the same."""
    works(in_shell(tmp_path, script))


PROFILER = """
import atexit, signal
signal.signal(signal.SIGPROF, lambda *_: None)
signal.setitimer(signal.ITIMER_PROF, 0.001, 0.001)
atexit.register(signal.setitimer, signal.ITIMER_PROF, 0)
"""


@pytest.mark.nightly
def test_it_works_under_a_profiler_that_interrupts(tmp_path: Path) -> None:
    """SIGPROF comes a thousand times a second, in each process that an interpreter starts."""
    (tmp_path / "sitecustomize.py").write_text(PROFILER)
    script = f"PYTHONPATH=$T:$PYTHONPATH {PYTHON} {WITH_SERVICES} {OUT}"
    works(in_shell(tmp_path, script))


@pytest.mark.nightly
@pytest.mark.parametrize("library", ["libjemalloc.so.2", "libmimalloc.so.2", "libtcmalloc.so.4"])
def test_it_works_with_another_allocator(tmp_path: Path, library: str) -> None:
    """The heap of the process that forks is filled with blocks of whatever allocator there is."""
    loaded = f"LD_PRELOAD={library} {sys.executable} -c \"print(open('/proc/self/maps').read())\""
    if library not in in_shell(tmp_path, loaded).stdout:
        pytest.skip(f"there is no {library}")
    works(in_shell(tmp_path, f"LD_PRELOAD={library} {PYTHON} {WITH_SERVICES} {OUT}"))


@pytest.mark.nightly
@needs_pids
def test_it_works_as_the_first_process_of_a_container(tmp_path: Path) -> None:
    """Nobody reaps there, and nobody may trace."""
    drop = "setpriv --bounding-set=-sys_ptrace --inh-caps=-sys_ptrace"
    script = f"unshare --pid --fork --mount-proc {drop} {PYTHON} {WITH_SERVICES} {OUT}"
    works(in_shell(tmp_path, script))


@pytest.mark.nightly
@needs_root
def test_too_few_processes_are_a_fault_with_a_sentence(tmp_path: Path) -> None:
    """What the machine refuses is no verdict."""
    script = f"{NOBODY.replace('65534', '65531')} bash -c"
    done = in_shell(tmp_path, f"{script} 'ulimit -u 3; exec {PYTHON} {WITH_SERVICES} --out $T/o'")
    assert done.returncode == 4
    assert "the harness failed" in done.stderr


@pytest.mark.nightly
@needs_mounts
def test_a_full_disk_under_the_workspaces_exits_4(tmp_path: Path) -> None:
    """It is the machine's, and says nothing about the worker."""
    full = "mount -t tmpfs -o size=8k tmpfs $T/full;"
    script = f"mkdir $T/full; unshare -m bash -c '{full} {PYTHON} {ONE_STRIKE} {OUT} "
    done = in_shell(tmp_path, f"{script} --root $T/full'")
    assert done.returncode == 4
    assert "No space left on device" in done.stderr


@pytest.mark.nightly
def test_it_works_under_coverage(tmp_path: Path) -> None:
    """A tracer in the command's own process disturbs nobody else."""
    pytest.importorskip("coverage")
    script = f"{sys.executable} -m coverage run --data-file=$T/c -m harness run {ONE_STRIKE} {OUT}"
    works(in_shell(tmp_path, script))
