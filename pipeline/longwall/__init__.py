"""Longwall mines patterns out of graphs that outgrow a GPU."""

__version__ = "0.1.0"
