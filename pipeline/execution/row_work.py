"""Estimates of the work of counting cliques along the arcs of a graph, by lengths of rows and samples of pairs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import WorkSoFar
from longwall.storage.graph.graph import Graph
from longwall.storage.graph.stats import find_in_rows
from longwall.storage.system.concurrency import core_count, map_ordered

_BINS = 4096  # whose work is known: ranges end at one of them
_ROWS_AT_ONCE, _ROW_BYTES = 1 << 18, 64
_SHARE = 8  # of the host's memory that is free
# To make the table of a vertex with d smaller neighbours takes d (d + 100) steps. To search it takes d^2 steps, times
# the candidates that are left for each vertex of a clique beyond the fourth: bitmaps do 50 of these at once.
_OF_NEIGHBOUR, _AT_ONCE = 100.0, 50.0
_MOST_POWER = 6
# Much of the work depends on the share of adjacent pairs: the bins with the most work that are sampled, the pairs of
# smaller neighbours that are looked up in each, and the bytes of a pair.
_SAMPLED, _PAIRS, _PAIR_BYTES = 1024, 64, 128


def work_of_rows(env: Environment, power: int) -> WorkSoFar:
    """Estimate the work at the arcs of the data graph if it grows with a power of a vertex's smaller neighbours.

    The power alone is not enough: of vertices of R-MAT 20 with as many smaller neighbours, some took 50 times as long
    as others (7-cliques). With the share of adjacent pairs, the standard deviation by time is a factor of 1.4.
    """
    graph, capacity = env.graph, env.resources.host.free // _SHARE
    n = graph.num_vertices
    places = np.linspace(0, graph.indptr[-1], min(_BINS, n) + 1)
    rows = np.array(sorted({0, *np.searchsorted(graph.indptr, places).tolist()}))
    workers = max(min(core_count(), -(-n // _ROWS_AT_ONCE), capacity // _ROW_BYTES), 1)
    step, done, ends = max(min(_ROWS_AT_ONCE, capacity // (_ROW_BYTES * workers)), 1), 0.0, np.zeros(len(rows))
    adjacent = _adjacent_shares(env, rows, power, capacity) if power > 2 else np.ones(len(rows) - 1)

    def add_up(low: int) -> tuple[slice, NDArray[np.float64], float]:
        high = min(low + step, n)
        shares = np.repeat(adjacent, np.diff(np.clip(rows, low, high)))
        sums = np.cumsum(_work(graph.split[low:high] - graph.indptr[low:high], shares, power))
        inside = slice(*np.searchsorted(rows, (low + 1, high + 1)))
        return inside, sums[rows[inside] - low - 1], float(sums[-1])

    with env.resources.host.reserve(min(n, workers * step) * _ROW_BYTES, "the work at vertices"):
        for inside, sums, total in map_ordered(add_up, range(0, n, step), workers):
            ends[inside] = done + sums
            done += total
    return WorkSoFar(graph.indptr[rows].astype(np.int64), ends)


def _work(smaller: NDArray[np.int64], adjacent: NDArray[np.float64], power: int) -> NDArray[np.float64]:
    neighbours = smaller.astype(np.float64)
    work = neighbours * (neighbours + _OF_NEIGHBOUR)
    if power > 2:
        work += neighbours**2 * (neighbours * adjacent / _AT_ONCE) ** (min(power, _MOST_POWER) - 2)
    return work


def _adjacent_shares(env: Environment, rows: NDArray[np.int64], power: int, capacity: int) -> NDArray[np.float64]:
    """Estimate, for the vertices of each bin, the share of pairs of smaller neighbours that are adjacent.

    Bins without samples get the mean share. If no bin has samples, all shares are 1: in a graph in files each look-up
    would read a page.
    """
    graph, found = env.graph, np.ones(len(rows) - 1)
    most = min(_SAMPLED, len(found), capacity // (_PAIRS * _PAIR_BYTES))
    if graph.files is not None or not most:
        return found
    longest = np.maximum.reduceat(graph.split - graph.indptr[:-1], rows[:-1])
    bins = np.argsort(-(longest.astype(np.float64) ** power) * np.diff(rows), kind="stable")[:most]
    with env.resources.host.reserve(most * _PAIRS * _PAIR_BYTES, "pairs of neighbours"):
        shares = _sample(graph, rows[bins], rows[bins + 1])
    found[:] = shares.mean()
    found[bins] = shares
    return found


def _sample(graph: Graph, lows: NDArray[np.int64], highs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the share of adjacent pairs, of pairs that are spread evenly over the rows lows[i] to highs[i] - 1."""
    numbers = np.arange(_PAIRS)
    vertices = lows[:, None] + numbers * (highs - lows)[:, None] // _PAIRS
    begins, lengths = graph.indptr[vertices], graph.split[vertices] - graph.indptr[vertices]
    one, other = ((lengths * (numbers * step % 1.0)).astype(np.int64) for step in (0.7548776662, 0.5698402910))
    proper = one != other
    bins, begins = np.nonzero(proper)[0], begins[proper]
    smaller = graph.indices[begins + np.minimum(one, other)[proper]]
    larger = graph.indices[begins + np.maximum(one, other)[proper]]
    hits = np.zeros(len(smaller), np.bool_)
    find_in_rows(0, graph.indices, graph.indptr[larger], graph.split[larger], smaller, hits)
    drawn = np.bincount(bins, minlength=len(lows))
    return (np.bincount(bins, hits, len(lows)) + 1.0) / (drawn + 1.0)
