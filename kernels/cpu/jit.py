"""How kernels are compiled."""

from numba import njit

compiled = njit(nogil=True, cache=True, _nrt=False)  # type: ignore[call-overload]
"""Compile without the GIL, keep the machine code on disk, and do not count references.

With reference counting every call counts its array arguments up and down, atomically; that took three quarters of
the time of a search. Without it kernels cannot allocate: their scratch is handed to them.
"""
