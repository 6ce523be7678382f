"""Recording: what a failure left, turned into data that a reader needs."""
