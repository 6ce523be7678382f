"""The command ``crash-harness``."""
