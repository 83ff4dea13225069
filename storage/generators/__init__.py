"""Seeded random graphs."""
