"""The report of a run, and of two: pages without anything outside them, made of what the run's folder holds."""
