"""Counts of induced stars by independent sets among the neighbours of every vertex."""
