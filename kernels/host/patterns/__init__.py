"""Codes of small patterns, on the host: canonical forms, minimum DFS codes, orbits."""
