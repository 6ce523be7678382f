"""The floor: what two lives of a SQLite worker cost when nothing is asked, proved or kept.

``python benchmarks/floor.py ROOT`` reads a count per line from standard input, does so many
cycles, and prints the seconds they took. A cycle is: fork, open SQLite, one commit, SIGKILL, wait;
twice. It is a program of its own with as few imports as it can have, because each makes a fork
slower.
"""

import os
import signal
import sqlite3
import sys
import time

RMTREE = ("worker.db", "worker.db-wal", "worker.db-shm")


def cycle(directory: str) -> None:
    """Do one cycle in a directory that is made and removed."""
    os.mkdir(directory)  # noqa: PTH102 - pathlib would be one more import
    for _ in range(2):
        pid = os.fork()
        if pid == 0:
            database = sqlite3.connect(f"{directory}/worker.db")
            database.execute("PRAGMA journal_mode=WAL")
            database.execute("PRAGMA synchronous=FULL")
            database.execute("CREATE TABLE IF NOT EXISTS done (command_id TEXT)")
            database.execute("INSERT INTO done VALUES ('c1')")
            database.commit()
            os.kill(os.getpid(), signal.SIGSTOP)
        os.waitpid(pid, os.WUNTRACED)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    for name in RMTREE:
        os.unlink(f"{directory}/{name}")  # noqa: PTH108
    os.rmdir(directory)  # noqa: PTH106


if __name__ == "__main__":
    for line in sys.stdin:
        began = time.perf_counter()
        for _ in range(int(line)):
            cycle(f"{sys.argv[1]}/floor-{os.getpid()}")
        print(time.perf_counter() - began, flush=True)
