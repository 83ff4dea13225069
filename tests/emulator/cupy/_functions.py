"""The functions of CuPy that are NumPy's over arrays of the device."""

from typing import Any

import numpy as np

from cupy._array import call, ndarray

# Those of CuPy that the project uses or might; a name that is missing here may be added once CuPy is seen to have it.
_FUNCTIONS = """
absolute add all allclose amax amin any append argmax argmin argsort argwhere array_equal array_split atleast_1d
bincount bitwise_and bitwise_count bitwise_or bitwise_xor broadcast_to ceil clip column_stack compress concatenate
copyto count_nonzero cumprod cumsum diff digitize divide divmod dot equal exp expand_dims extract flatnonzero flip
floor floor_divide full_like greater greater_equal histogram hstack invert isfinite isin isnan left_shift less
less_equal lexsort linspace log log1p log2 logical_and logical_not logical_or logical_xor max maximum mean median
meshgrid min minimum mod moveaxis multiply negative nonzero not_equal ones_like outer packbits partition place power
prod put putmask ravel remainder repeat reshape result_type right_shift roll rot90 searchsorted select sign sort
split sqrt square squeeze stack std subtract sum swapaxes take take_along_axis tensordot tile trace transpose tril
triu true_divide trunc unique unpackbits unravel_index var vdot vstack where zeros_like
"""
_CONSTANTS = """
bool_ complex128 complex64 dtype e euler_gamma finfo float16 float32 float64 iinfo inf int16 int32 int64 int8 intc
intp nan newaxis pi uint16 uint32 uint64 uint8 uintc uintp ulonglong longlong
"""


def __getattr__(name: str) -> Any:
    if name in _CONSTANTS.split():
        return getattr(np, name)
    if name not in _FUNCTIONS.split():
        raise AttributeError(f"the emulated cupy has no {name!r}; is it in CuPy? then add it to _functions.py")
    function = getattr(np, name)

    def forward(*given: Any, **named: Any) -> Any:
        _require_arrays(name, given)
        return call(function, *given, **named)

    forward.__name__ = name
    return forward


def _require_arrays(name: str, given: tuple[Any, ...]) -> None:
    """Refuse what NumPy would take and CuPy does not."""
    if name == "lexsort" and not isinstance(given[0], ndarray):
        raise TypeError("lexsort takes a CuPy array, not a tuple of them")
    if name == "searchsorted" and not isinstance(given[0], ndarray):
        raise NotImplementedError("Only cupy.ndarray is supported")
    if name in ("concatenate", "stack", "vstack", "hstack") and not all(isinstance(x, ndarray) for x in given[0]):
        raise TypeError("Only cupy arrays can be concatenated")
    if name == "where" and len(given) == 2:
        raise ValueError("Must provide both 'x' and 'y' or neither.")
