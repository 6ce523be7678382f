"""Measured claims: each benchmark measures both sides in one run and prints a ratio."""
