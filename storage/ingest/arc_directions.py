"""Arcs whose key has the direction in its lowest bit: they become edges once they are sorted and counted."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.jit.compile import compiled


@compiled("u8[::1], none, u8, i8", "u8[::1], i4[::1], u8, i8")
def drop_directions(
    arcs: NDArray[np.uint64], labels: NDArray[np.int32] | None, last: np.uint64, last_label: int
) -> int:
    """Replace sorted arcs by edges, those with the same label by one; return their number.

    `last` and `last_label` are the edge ahead of them, which is not written again.
    """
    count = 0
    for at in range(arcs.size):
        edge = arcs[at] >> np.uint64(1)
        again = edge == last
        if labels is not None:
            again = again and labels[at] == last_label
            last_label = int(labels[at])
            labels[count] = labels[at]
        last = edge
        arcs[count] = edge
        count += not again
    return count
