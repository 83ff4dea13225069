"""The CPU engine: Numba kernels over NumPy arrays."""
