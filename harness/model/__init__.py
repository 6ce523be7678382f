"""The words as values."""
