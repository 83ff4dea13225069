"""Graphs that stay in their stores: lists of smaller neighbours on disk, and parts of a graph in memory."""
