"""The subgraph of the vertices with most neighbours: a few matches of a query are found there soon."""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.host.queries.prefix_kernel import copy_prefixes, count_prefixes
from longwall.kernels.interface.graph_arrays import GraphArrays

_LEAST_ARCS = 1 << 18  # of a graph that is looked at part by part: the candidates of smaller ones take milliseconds
_FIRST_SHARE = 64  # of the arcs the first part has one at most
_LAST_SHARE = 8  # and each other one of these
_GROWTH = 8  # times as many vertices has the next part


def densest_parts(graph: GraphArrays) -> Iterator[int]:
    """Return how many vertices each part has in which matches are worth looking for, before the whole graph."""
    arcs = graph.num_arcs
    if arcs < _LEAST_ARCS or graph.slices is not None:
        return
    number, share = 1 << (isqrt(arcs // _FIRST_SHARE).bit_length() - 1), _FIRST_SHARE
    while number < graph.num_vertices and int(_prefixes(graph, number).sum()) <= arcs // share:
        yield number
        number, share = number * _GROWTH, _LAST_SHARE


def densest_part(graph: GraphArrays, number: int) -> GraphArrays:
    """Return the subgraph of the first vertices, which have most neighbours: ids are ranks by degree."""
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
    """Return the bytes of such a subgraph."""
    return 4 * int(_prefixes(graph, number).sum()) + 32 * (number + 1)


def _prefixes(graph: GraphArrays, number: int) -> NDArray[np.int64]:
    numbers = np.empty(number, np.int64)
    count_prefixes(graph.indptr, graph.indices, numbers)
    return numbers
