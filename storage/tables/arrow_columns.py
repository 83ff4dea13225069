"""Columns of Arrow from values of Python, for small tables.

``pyarrow.array`` and ``DataType.to_pandas_dtype`` import pandas where that is installed, the first to see whether it is
given objects of pandas: that takes longer than a small run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

_NUMPY = {"float": "float32", "double": "float64"}  # what Arrow calls otherwise


def column(values: Sequence[Any], dtype: pa.DataType) -> pa.Array:
    """Make a column of numbers, truth values, texts, or lists of them.

    Parameters
    ----------
    values
        None where there is none.
    dtype
        A number, ``decimal128(38, 0)`` of integers, ``bool_()``, ``string()``, or ``list_()`` of one of these.

    Raises
    ------
    OverflowError
        If an integer does not fit.
    """
    import pyarrow as pa

    missing = sum(value is None for value in values)
    bits = _bits([value is not None for value in values]) if missing else None
    if pa.types.is_list(dtype):
        inner = column(list(chain.from_iterable(value or () for value in values)), dtype.value_type)
        parts = [bits, _offsets(len(value or ()) for value in values)]
        return pa.Array.from_buffers(dtype, len(values), parts, missing, children=[inner])
    if pa.types.is_string(dtype):
        texts = [(value or "").encode() for value in values]
        parts = [bits, _offsets(map(len, texts)), pa.py_buffer(b"".join(texts))]
    elif pa.types.is_decimal128(dtype):
        parts = [bits, pa.py_buffer(b"".join((value or 0).to_bytes(16, "little", signed=True) for value in values))]
    elif pa.types.is_boolean(dtype):
        parts = [bits, _bits([bool(value) for value in values])]
    else:
        parts = [bits, pa.py_buffer(np.array([value or 0 for value in values], _NUMPY.get(str(dtype), str(dtype))))]
    return pa.Array.from_buffers(dtype, len(values), parts, missing)


def of_array(values: NDArray[Any]) -> pa.Array:
    """Make a column of an array of numbers, which it shares."""
    import pyarrow as pa

    values = np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(values)])


def _offsets(lengths: Iterable[int]) -> pa.Buffer:
    import pyarrow as pa

    return pa.py_buffer(np.array([0, *accumulate(lengths)], np.int32))


def _bits(flags: Sequence[bool]) -> pa.Buffer:
    import pyarrow as pa

    return pa.py_buffer(np.packbits(np.array(flags, bool), bitorder="little"))
