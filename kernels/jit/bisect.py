"""Binary search in ascending arrays: Numba compiles this in a small part of the time of ``np.searchsorted``."""

from typing import Any

from longwall.kernels.jit.compile import compiled


@compiled
def first_at_least(values: Any, number: Any) -> Any:
    """Return the place of the first value that is not below a number; the length if there is none."""
    low, high = 0, values.size
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < number:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def first_above(values: Any, number: Any) -> Any:
    """Return the place of the first value above a number; the length if there is none."""
    low, high = 0, values.size
    while low < high:
        middle = (low + high) >> 1
        if values[middle] <= number:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def stands_in(values: Any, number: Any) -> Any:
    """Return whether a number is among the values."""
    at = first_at_least(values, number)
    return at < values.size and values[at] == number
