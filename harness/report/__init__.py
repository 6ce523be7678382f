"""Renderers: each reads a record or listens to events, and knows no engine."""
