"""Cliques of one size or of every size: how many, which ones, or in how many each vertex is."""
