"""Counting stages for cliques: of one size, of every size, and maximal ones."""
