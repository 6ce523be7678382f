"""Where something can happen: one file per source, and the catalogue."""
