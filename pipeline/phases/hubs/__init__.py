"""Counts of patterns around hubs, in the graph without these."""
