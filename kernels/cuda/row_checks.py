"""Checks of the rows of a graph; launches of ``row_checks.cu``."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cuda.device import THREADS, Device, fetch

Array = Any  # a CuPy array

_BLOCKS = 8  # per multiprocessor


def check_rows(
    device: Device, indptr: Array, split: Array, indices: Array, key: NDArray[np.uint64]
) -> tuple[bool, int]:
    """Check all rows of a graph."""
    # This is the stream of copies, which does not wait for the zeros of `Device.result`.
    result = device.xp.zeros(2, device.xp.uint64)
    device.launch(
        "row_checks.cu",
        "check_rows",
        (indptr, indices, split, split.size, indices.size, *key, result),
        blocks=device.multiprocessors * _BLOCKS,
        threads=THREADS,
    )
    total, wrong = fetch(result).tolist()
    return not wrong, total
