"""Stands in for cuda-python's bindings."""
