"""Exploration: which experiments a scenario and a tier expand to, and how they are run."""
