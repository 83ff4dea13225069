"""Kernels of the storage, with the types of their functions; see :func:`longwall.kernels.jit.compile.compiled`."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

from longwall.kernels.jit.compile import compiled

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def lazy_kernel(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Compile a function with Numba on its first call: without the GIL, kept on disk. It allocates nothing."""
    return cast("Callable[Arguments, Result]", compiled(function))
