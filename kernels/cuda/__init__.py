"""The CUDA engine: CuPy RawModule kernels over device arrays."""
