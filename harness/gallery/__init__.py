"""The gallery: a report of each family of known-bad workers, the same on every machine."""
