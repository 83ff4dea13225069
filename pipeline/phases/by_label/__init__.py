"""Labelled patterns on a graph that is laid out by label."""
