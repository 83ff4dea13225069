"""Patterns (query graphs): parsing, files, symmetry."""
