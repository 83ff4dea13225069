"""Kernels that sort on one core."""
