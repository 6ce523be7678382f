"""Fork, stop, kill, reap."""
