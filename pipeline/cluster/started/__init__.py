"""Workers that are started for a run, on its machine."""
