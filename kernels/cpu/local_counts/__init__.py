"""Counts of every vertex and every edge that are taken from the neighbourhoods of vertices."""
