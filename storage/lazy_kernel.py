"""Numba kernels that cost nothing until they are called."""

from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import Any, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def lazy_kernel(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Compile a function with Numba on its first call: without the GIL, cached on disk."""
    lock = Lock()
    compiled: Any = None

    @wraps(function)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        nonlocal compiled
        with lock:
            if compiled is None:
                import numba

                from longwall.kernels.kernel_cache import cached

                compiled = cached(numba.njit(nogil=True)(function))
        result: Result = compiled(*args, **kwargs)
        return result

    return call
