"""Homomorphism counts: tables over vertices and arcs, and programs over their rows."""
