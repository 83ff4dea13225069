"""Compile kernels with Numba, and keep their machine code."""
