"""Maximal cliques: the workload, and its phases, which count them, count them per vertex, or list them."""
