"""Patterns around hubs: maps are divided by which vertices of the pattern they send to a hub."""
