"""Vertices that have names instead of numbers: texts are hashed, and numbered in the order of the input."""
