"""What is tried: the reference worker's matrix and known-bad workers."""
