"""Pure functions on arrays, twice: ``cpu`` (Numba) and ``cuda`` (CuPy)."""
