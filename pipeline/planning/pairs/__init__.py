"""Patterns that are counted by pairs of vertices."""
