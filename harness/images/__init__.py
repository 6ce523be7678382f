"""Workspace, crash image, digest, and the names in a run's folder."""
