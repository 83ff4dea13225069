"""Degree statistics of a graph: what the planner's cost model and `longwall info` read."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

WEDGE_SAMPLES = 20_000
_PERCENTILES = (50, 90, 99, 100)


@dataclass(frozen=True)
class GraphStats:
    """Numbers that describe a graph, cheap to keep beside it."""

    num_vertices: int
    """Vertices with at least one edge."""
    num_edges: int
    """Undirected edges."""
    max_degree: int
    max_out_degree: int
    """Largest number of neighbours with a smaller id."""
    mean_degree: float
    sum_degree_squared: int
    closed_wedge_fraction: float
    """How often the two ends of a random wedge are adjacent, estimated from sampled wedges."""
    num_labels: int
    """Distinct vertex labels; 0 for an unlabelled graph."""
    label_counts: dict[int, int]
    """Vertex label -> number of vertices."""
    degree_percentiles: dict[int, int]
    """Percentile (50, 90, 99, 100) -> degree."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dict that JSON can hold (its object keys are strings)."""
        fields = asdict(self)
        for name in ("label_counts", "degree_percentiles"):
            fields[name] = {str(key): value for key, value in fields[name].items()}
        return fields

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "GraphStats":
        """Rebuild from `to_dict`'s answer.

        Raises
        ------
        TypeError, ValueError
            If fields are missing, unknown or malformed.
        """
        fields = dict(fields)
        for name in ("label_counts", "degree_percentiles"):
            fields[name] = {int(key): int(value) for key, value in dict(fields.get(name, {})).items()}
        return cls(**fields)


def measure(
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.uint32],
    split: npt.NDArray[np.int64],
    labels: npt.NDArray[np.int32] | None,
) -> GraphStats:
    """Measure a CSR graph with sorted rows.

    Parameters
    ----------
    indptr : int64[n + 1]
    indices : uint32[2m]
    split : int64[n]
        Ends of the rows' prefixes of smaller ids.
    labels : int32[n], optional
    """
    degrees = np.diff(indptr)
    n = len(degrees)
    values, counts = np.unique(labels, return_counts=True) if labels is not None else ((), ())
    percentiles = np.percentile(degrees, _PERCENTILES, method="nearest")
    return GraphStats(
        num_vertices=n,
        num_edges=len(indices) // 2,
        max_degree=int(degrees.max()),
        max_out_degree=int((split - indptr[:-1]).max()),
        mean_degree=len(indices) / n,
        sum_degree_squared=_sum_of_squares(degrees),
        closed_wedge_fraction=_closed_wedge_fraction(indptr, indices, degrees),
        num_labels=len(values),
        label_counts={int(value): int(count) for value, count in zip(values, counts, strict=True)},
        degree_percentiles={p: int(d) for p, d in zip(_PERCENTILES, percentiles, strict=True)},
    )


def _sum_of_squares(degrees: npt.NDArray[np.int64]) -> int:
    # n * max_degree^2 can pass 2^63; each distinct degree is squared as a Python integer instead.
    values, counts = np.unique(degrees, return_counts=True)
    return sum(d * d * c for d, c in zip(values.tolist(), counts.tolist(), strict=True))


def _closed_wedge_fraction(
    indptr: npt.NDArray[np.int64], indices: npt.NDArray[np.uint32], degrees: npt.NDArray[np.int64]
) -> float:
    wedges = np.cumsum(degrees.astype(np.float64) * (degrees - 1))
    if wedges[-1] == 0:
        return 0.0
    # Raw words, not `Generator` methods: NumPy promises that these stay the same in later versions.
    raw = np.random.Philox(key=0).random_raw(3 * WEDGE_SAMPLES).reshape(3, -1)
    target = (raw[0] >> np.uint64(11)) * 2.0**-53 * wedges[-1]
    centre = np.minimum(np.searchsorted(wedges, target, side="right"), len(degrees) - 1)
    degree = degrees[centre].astype(np.uint64)
    first = raw[1] % degree
    second = raw[2] % (degree - np.uint64(1))
    second += second >= first
    left = indices[indptr[centre] + first.astype(np.int64)]
    right = indices[indptr[centre] + second.astype(np.int64)]
    return float(np.mean(_adjacent(indptr, indices, left, right)))


def _adjacent(
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.uint32],
    left: npt.NDArray[np.uint32],
    right: npt.NDArray[np.uint32],
) -> npt.NDArray[np.bool_]:
    """Say for each pair whether it is an edge: one binary search per pair, all in step."""
    low, end = indptr[left], indptr[left.astype(np.int64) + 1]
    high = end.copy()
    while np.any(low < high):
        middle = (low + high) // 2
        below = (low < high) & (indices[np.minimum(middle, len(indices) - 1)] < right)
        high = np.where(below, high, np.minimum(high, middle))
        low = np.where(below, middle + 1, low)
    found: npt.NDArray[np.bool_] = (low < end) & (indices[np.minimum(low, len(indices) - 1)] == right)
    return found
