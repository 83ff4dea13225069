"""Stands in for CuPy where there is no GPU: arrays are NumPy's, kernels are compiled with g++ and run on the CPU.

Only what CuPy has, and no more leniently where that is cheap: a NumPy array is no argument for a CuPy function, and a
CuPy array does not become a NumPy array by itself. Work is synchronous: missing waits for a stream are not found here.
`cupy.emulated` is the device; its attributes can be changed by tests.
"""

from cupy import cuda
from cupy._array import ndarray
from cupy._creation import arange, array, asarray, ascontiguousarray, asnumpy, empty, empty_like, full, ones, zeros
from cupy._device import KernelFault, emulated
from cupy._functions import __getattr__
from cupy._kernels import RawKernel, RawModule
from cupy._memory import get_default_memory_pool, get_default_pinned_memory_pool

__version__ = "14.1.0"
__all__ = [
    "KernelFault",
    "RawKernel",
    "RawModule",
    "__getattr__",
    "arange",
    "array",
    "asarray",
    "ascontiguousarray",
    "asnumpy",
    "cuda",
    "empty",
    "empty_like",
    "emulated",
    "full",
    "get_default_memory_pool",
    "get_default_pinned_memory_pool",
    "ndarray",
    "ones",
    "zeros",
]
