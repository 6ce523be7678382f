"""Commands, schedules, traces and results as values."""
