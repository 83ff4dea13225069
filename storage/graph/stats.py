"""Degree statistics of a graph: what the planner's cost model and `longwall info` read.

They are taken while the rows pass by, so no graph has to be in memory for them.
"""

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from longwall.kernels.jit.bisect import first_at_least
from longwall.kernels.jit.compile import compiled
from longwall.storage.graph.degree_histogram import DegreeHistogram

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


def summarize_graph(
    histogram: DegreeHistogram, max_out_degree: int, labels: Counter[int], closed_wedge_fraction: float
) -> GraphStats:
    """Make the statistics of a graph.

    Parameters
    ----------
    histogram
        Its degrees.
    max_out_degree
        Largest number of neighbours with a smaller id.
    labels
        Vertex label -> vertices; empty for an unlabelled graph.
    closed_wedge_fraction
        See `WedgeSample.closed_fraction`.
    """
    n, arcs = histogram.num_vertices, histogram.num_arcs
    pairs = list(zip(histogram.degrees.tolist(), histogram.counts.tolist(), strict=True))
    # Degrees descend by rank: the p-th percentile is the degree of the rank that (1 - p) of all ranks precede.
    ranks = n - 1 - np.rint(np.array(_PERCENTILES) / 100 * (n - 1)).astype(np.int64)
    percentiles = histogram.degrees[histogram.groups(ranks)].tolist()
    return GraphStats(
        num_vertices=n,
        num_edges=arcs // 2,
        max_degree=pairs[0][0],
        max_out_degree=max_out_degree,
        mean_degree=arcs / n if n else 0.0,
        # Python's integers: n * max_degree^2 can pass 2^63.
        sum_degree_squared=sum(degree * degree * count for degree, count in pairs),
        closed_wedge_fraction=closed_wedge_fraction,
        num_labels=len(labels),
        label_counts=dict(sorted(labels.items())),
        degree_percentiles=dict(zip(_PERCENTILES, percentiles, strict=True)),
    )


class WedgeSample:
    """Random wedges of a graph whose rows pass by twice.

    Degrees alone say where the ends of a random wedge stand: `look` picks them up in the first pass, `test` searches
    for the edges between them in the second.

    Parameters
    ----------
    histogram
        Degrees of the graph.
    """

    def __init__(self, histogram: DegreeHistogram) -> None:
        self._histogram = histogram
        degrees, counts = histogram.degrees, histogram.counts
        each = degrees.astype(np.float64) * (degrees - 1)
        wedges = np.cumsum(each * counts)
        size = WEDGE_SAMPLES if wedges[-1] else 0
        # Raw words, not `Generator` methods: NumPy promises that these stay the same in later versions.
        raw = np.random.Philox(key=0).random_raw(3 * size).reshape(3, -1)
        target = (raw[0] >> np.uint64(11)) * 2.0**-53 * wedges[-1]
        last = int(np.flatnonzero(each)[-1]) if size else 0
        group = np.minimum(np.searchsorted(wedges, target, side="right"), last)
        within = (target - (wedges - each * counts)[group]) / each[group]
        centre = histogram.first_ranks[group] + np.clip(within.astype(np.int64), 0, counts[group] - 1)
        degree = degrees[group].astype(np.uint64)
        first = raw[1] % degree
        second = raw[2] % (degree - np.uint64(1))
        second += second >= first
        arcs = histogram.row_starts(centre) + np.stack((first, second)).astype(np.int64)
        self._order = np.argsort(arcs, axis=None)
        self._arcs = arcs.ravel()[self._order]
        self._ends = np.zeros(arcs.shape, np.int64)
        self._found = np.zeros(0, np.bool_)

    def look(self, start: int, indices: npt.NDArray[np.uint32]) -> None:
        """Note the heads of the sampled arcs among those from `start` on; `indices` is a block of consecutive arcs."""
        low, high = np.searchsorted(self._arcs, (start, start + len(indices)))
        self._ends.reshape(-1)[self._order[low:high]] = indices[self._arcs[low:high] - start]

    def prepare(self) -> None:
        """End the first pass."""
        left, right = self._ends
        order = np.argsort(left, kind="stable")
        left, self._targets = left[order], right[order].astype(np.uint32)
        self._row_starts = self._histogram.row_starts(left)
        self._row_ends = self._histogram.row_starts(left + 1)
        self._found = np.zeros(len(left), np.bool_)

    def test(self, start: int, indices: npt.NDArray[np.uint32]) -> None:
        """Search a block of consecutive arcs for the edges that close wedges."""
        low = int(np.searchsorted(self._row_ends, start, side="right"))
        high = int(np.searchsorted(self._row_starts, start + len(indices)))
        part = slice(low, max(low, high))
        find_in_rows(
            start, indices, self._row_starts[part], self._row_ends[part], self._targets[part], self._found[part]
        )

    @property
    def closed_fraction(self) -> float:
        """How many of the wedges are part of a triangle, from 0 to 1; 0 where there is no wedge."""
        return float(self._found.mean()) if len(self._found) else 0.0


@compiled("i8, u4[::1], i8[::1], i8[::1], u4[::1], b1[::1]")
def find_in_rows(
    start: int,
    indices: npt.NDArray[np.uint32],
    row_starts: npt.NDArray[np.int64],
    row_ends: npt.NDArray[np.int64],
    targets: npt.NDArray[np.uint32],
    found: npt.NDArray[np.bool_],
) -> None:
    """Look for each target in the part of its row that a block of arcs, from `start` on, holds; set `found` there."""
    for at in range(targets.size):
        low = max(row_starts[at] - start, 0)
        high = min(row_ends[at] - start, indices.size)
        low += first_at_least(indices[low:high], targets[at])
        if low < high and indices[low] == targets[at]:
            found[at] = True
