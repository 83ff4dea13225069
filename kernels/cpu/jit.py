"""How kernels are compiled."""

from collections.abc import Callable
from typing import Any

from numba import njit

from longwall.kernels.kernel_cache import cached


def compiled(function: Callable[..., Any]) -> Any:
    """Compile without the GIL, keep the machine code on disk, and do not count references.

    With reference counting every call counts its array arguments up and down, atomically; that took three quarters of
    the time of a search. Without it kernels cannot allocate: their scratch is handed to them.

    Parameters
    ----------
    function
        In the part of Python that Numba compiles.
    """
    return cached(njit(function, nogil=True, _nrt=False))  # type: ignore[call-overload]
