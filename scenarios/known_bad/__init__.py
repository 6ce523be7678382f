"""Known-bad workers: each is the reference worker with one fault, and must be caught."""
