"""Patterns with leaves, written by what their leaves weigh at the vertices of a core."""
