"""Remote services that only the reference worker uses."""
