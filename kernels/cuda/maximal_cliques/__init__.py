"""Maximal cliques on a GPU: refused, since they are found on the CPU."""
