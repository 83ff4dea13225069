"""Graphs that are made of a graph."""
