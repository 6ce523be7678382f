"""Tells a cancel from outside apart from one that a task made itself."""

from __future__ import annotations

import asyncio


def being_cancelled() -> bool:
    """Tell whether the running task has been cancelled and is on its way to its end."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
