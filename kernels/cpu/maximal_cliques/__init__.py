"""Maximal cliques on the CPU: the degeneracy order, and the search in two widths of bitmaps."""
