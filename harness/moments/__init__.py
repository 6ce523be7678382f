"""Moments: the sources of places where something can happen, and their catalogue."""
