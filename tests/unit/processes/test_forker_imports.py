"""What the process that forks incarnations has loaded before it loads a worker."""

from __future__ import annotations

import subprocess
import sys


def test_the_forking_process_loads_no_library() -> None:
    """Every fork copies the pages it touches: libraries that only the runner needs stay out."""
    program = (
        "import sys, harness.processes.forker\n"
        "loaded = {name.partition('.')[0] for name in sys.modules}\n"
        "print(*sorted(loaded - sys.stdlib_module_names - {'__main__'}))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:] = {sys.path!r}\n{program}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == "harness\n"
