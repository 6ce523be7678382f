"""Entry of ``python -m benchmarks.cycles``; `benchmarks.cycle_rates` says what is measured.

A spawned lane imports the main module once more: so, as in the command ``crash-harness``, the main
module imports when it is called.
"""

from __future__ import annotations


def main() -> None:
    """Measure and print."""
    from benchmarks.cycle_rates import main as run  # noqa: PLC0415 - see the module's docstring

    run()


if __name__ == "__main__":
    main()
