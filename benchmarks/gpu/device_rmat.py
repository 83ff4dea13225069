"""R-MAT graphs made where an array module works, so that a GPU makes half a billion edges in seconds; and labels."""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from longwall.storage.graph.degree_histogram import DegreeHistogram
from longwall.storage.graph.graph import Graph
from longwall.storage.graph.stats import WedgeSample, summarize_graph
from longwall.storage.ingest.build import build_graph

BATCH = 1 << 24  # edges that are drawn at once
A, B, C = 0.57, 0.19, 0.19
SHIFT, LOW = np.uint64(32), np.uint64(0xFFFFFFFF)
Array = Any  # a NumPy or a CuPy array


def rmat_graph(xp: Any, scale: int, edge_factor: int) -> Graph:
    """Make R-MAT where `xp` works, and give back what it took there."""
    arrays = _arrays(xp, scale, edge_factor)
    if xp is not np:
        arrays = tuple(array.get() for array in arrays)
        xp.get_default_memory_pool().free_all_blocks()
    return _with_statistics(*arrays)


def labelled(graph: Graph, number: int) -> Graph:
    """The graph with so many random vertex labels."""
    words = _random_words(np.arange(1, graph.num_vertices + 1, dtype=np.uint64))
    labels = (words % np.uint64(number)).astype(np.int32)
    found = dict(enumerate(np.bincount(labels, minlength=number).tolist()))
    return replace(graph, labels=labels, stats=replace(graph.stats, num_labels=number, label_counts=found))


def check_generator(xp: Any, scale: int = 10, edge_factor: int = 5) -> None:
    """Compare arrays and statistics of a small graph with those that the project builds of the same edges."""
    u, v = (end if xp is np else end.get() for end in _draw(xp, scale, 0, edge_factor << scale))
    built, made = build_graph(u, v), rmat_graph(xp, scale, edge_factor)
    for name in ("indptr", "indices", "split", "original_ids"):
        one, other = getattr(made, name), getattr(built, name)
        if one.dtype != other.dtype or not np.array_equal(one, other):
            raise SystemExit(f"the generator's {name} differs from the one that is built of the same edges")
    if made.stats != built.stats:
        raise SystemExit(f"the generator's statistics are {made.stats}, those of the same edges {built.stats}")


def _random_words(numbers: Array) -> Array:
    """Random words that follow from uint64 numbers, in their place (SplitMix64)."""
    numbers *= np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        numbers ^= numbers >> np.uint64(shift)
        numbers *= np.uint64(factor)
    numbers ^= numbers >> np.uint64(31)
    return numbers


def _draw(xp: Any, scale: int, first: int, last: int) -> tuple[Array, Array]:
    """Both ends (uint64) of the edges `first` to `last` - 1."""
    u, v = xp.zeros(last - first, xp.uint64), xp.zeros(last - first, xp.uint64)
    for level in range(scale):
        words = _random_words(xp.arange(first * 32 + level, last * 32 + level, 32, dtype=xp.uint64))
        chance = (words >> np.uint64(11)).astype(xp.float64) * 2.0**-53
        below = chance >= A + B
        right = (chance >= A) & ~below | (chance >= A + B + C)
        for end, bit in ((u, below), (v, right)):
            end <<= np.uint64(1)
            end |= bit
    return u, v


def _arrays(xp: Any, scale: int, edge_factor: int) -> tuple[Array, ...]:
    """Make indptr, indices, split and original ids; see `longwall.storage.graph.graph.Graph`."""
    edges, used = edge_factor << scale, 0
    keys = xp.empty(2 * edges, xp.uint64)
    for first in range(0, edges, BATCH):
        u, v = _draw(xp, scale, first, min(first + BATCH, edges))
        proper = u != v
        u, v = u[proper], v[proper]
        for here, there in ((u, v), (v, u)):
            keys[used : used + u.size] = here << SHIFT | there
            used += u.size
    keys = keys[:used]
    keys.sort()
    distinct = xp.ones(used, bool)
    xp.not_equal(keys[1:], keys[:-1], out=distinct[1:])
    keys = keys[distinct]
    del distinct

    degrees = xp.diff(xp.searchsorted(keys, xp.arange((1 << scale) + 1, dtype=xp.uint64) << SHIFT))
    ids = xp.flatnonzero(degrees)
    # Highest degree first, then smallest id.
    order = ((int(degrees.max()) - degrees[ids]) << 32) | ids
    order.sort()
    ids = order & 0xFFFFFFFF
    n = int(ids.size)
    ranks = xp.zeros(1 << scale, xp.uint64)
    ranks[ids] = xp.arange(n, dtype=xp.uint64)
    for first in range(0, int(keys.size), BATCH):
        part = keys[first : first + BATCH]
        part[:] = ranks[(part >> SHIFT).astype(xp.int64)] << SHIFT | ranks[(part & LOW).astype(xp.int64)]
    keys.sort()
    rows = xp.arange(n + 1, dtype=xp.uint64)
    indptr = xp.searchsorted(keys, rows << SHIFT)
    split = xp.searchsorted(keys, rows[:-1] << SHIFT | rows[:-1])
    return indptr, keys.astype(xp.uint32), split, ids


def _with_statistics(indptr: Array, indices: Array, split: Array, ids: Array) -> Graph:
    degrees = np.diff(indptr)
    begins = np.flatnonzero(np.diff(degrees, prepend=0))
    histogram = DegreeHistogram(degrees[begins], np.diff(begins, append=degrees.size))
    sample = WedgeSample(histogram)
    sample.look(0, indices)
    sample.prepare()
    sample.test(0, indices)
    longest = int((split - indptr[:-1]).max())
    stats = summarize_graph(histogram, longest, Counter(), sample.closed_fraction)
    return Graph(indptr, indices, split, ids, None, None, stats, content_hash="")
