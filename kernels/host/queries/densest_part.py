"""The subgraph of the vertices of highest degree: a search finds the first matches of a query there soon."""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.host.queries.prefix_kernel import copy_prefixes, count_prefixes
from longwall.kernels.interface.graph_arrays import GraphArrays

_LEAST_ARCS = 1 << 18  # of a graph that is searched part by part: candidates of smaller graphs take milliseconds
_FIRST_SHARE = 64  # the first part has at most 1/64 of the arcs
_LAST_SHARE = 8  # each further part has at most 1/8 of the arcs
_GROWTH = 8  # each part has 8 times as many vertices as the one before


def densest_parts(graph: GraphArrays) -> Iterator[int]:
    """Yield the number of vertices of each part that is worth searching before the whole graph."""
    arcs = graph.num_arcs
    if arcs < _LEAST_ARCS or graph.slices is not None:
        return
    number, share = 1 << (isqrt(arcs // _FIRST_SHARE).bit_length() - 1), _FIRST_SHARE
    while number < graph.num_vertices and int(_prefixes(graph, number).sum()) <= arcs // share:
        yield number
        number, share = number * _GROWTH, _LAST_SHARE


def densest_part(graph: GraphArrays, number: int) -> GraphArrays:
    """Return the subgraph of the first `number` vertices, which have the highest degrees: ids are degree ranks."""
    numbers = _prefixes(graph, number)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(numbers)])
    copies = np.empty(int(starts[-1]), np.uint32)
    copy_prefixes(graph.indptr, graph.indices, starts, copies)
    smaller = graph.split[:number] - graph.indptr[:number]
    return GraphArrays(
        starts,
        copies,
        starts[:-1] + smaller,
        graph.labels[:number],
        int(numbers.max(initial=0)),
        int(smaller.max(initial=0)),
    )


def part_bytes(graph: GraphArrays, number: int) -> int:
    """Return the bytes of `densest_part` with `number` vertices."""
    return 4 * int(_prefixes(graph, number).sum()) + 32 * (number + 1)


def _prefixes(graph: GraphArrays, number: int) -> NDArray[np.int64]:
    numbers = np.empty(number, np.int64)
    count_prefixes(graph.indptr, graph.indices, numbers)
    return numbers
