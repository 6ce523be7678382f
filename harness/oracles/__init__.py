"""Oracles: named checks over what the world saw and what is durable, one file per family."""
