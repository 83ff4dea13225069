"""Columns of Arrow without ``pyarrow.array``, which imports pandas."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longwall.storage.tables.arrow_columns import column, of_array

SIMPLE: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.float64(): st.floats(allow_nan=False),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(max_size=5),
}
KINDS = SIMPLE | {pa.list_(kind): st.lists(st.none() | values, max_size=4) for kind, values in SIMPLE.items()}


@given(data=st.data(), kind=st.sampled_from(list(KINDS)))
def test_values_are_as_pyarrow_takes_them(data: st.DataObject, kind: pa.DataType) -> None:
    values = data.draw(st.lists(st.none() | KINDS[kind], max_size=20))
    made = column(values, kind)
    made.validate(full=True)
    assert made.equals(pa.array(values, kind))


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(OverflowError):
        column([2**63], pa.int64())


@pytest.mark.parametrize("values", [np.arange(5), np.arange(10, dtype=np.uint8)[::2], np.zeros(0), np.arange(3.0)])
def test_arrays_are_taken_as_they_are(values: np.ndarray[Any, Any]) -> None:
    made = of_array(values)
    made.validate(full=True)
    assert made.equals(pa.array(values))


def test_pandas_is_not_imported() -> None:
    program = (
        "import sys, numpy, pyarrow; from longwall.storage.tables.arrow_columns import column, of_array;"
        "made = [of_array(numpy.arange(3)), column([1, None, 3], pyarrow.int64())];"
        "assert pyarrow.Table.from_arrays(made, ['a', 'b']).num_rows == 3; assert 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
