"""How a whole adjacency comes to a device that does not hold it: list after list, once for each range of columns.

A kernel has the parts of all lists that lie in a range of columns on the device, and reads whole lists in turn. So all
that crosses the link comes in order, and as often as there are ranges of columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from longwall.storage.pages.orientation import target_blocks

if TYPE_CHECKING:
    from threading import Event

    from longwall.kernels.interface.pages import Pages
    from longwall.kernels.interface.workspaces import Targets
    from longwall.storage.graph.graph import Graph

_VERTICES_AT_ONCE = 1 << 20


def column_ranges(graph: Graph, first: int, last: int, most: int) -> list[tuple[int, int]]:
    """Cut a range of vertices so that arcs to each part from larger vertices are `most` at most, or a vertex's own.

    Returns
    -------
    list of (int, int)
        The first vertex of each part, and one past its last.
    """
    cuts, held = [first], 0  # arcs to the part that is begun
    for begin in range(first, last, _VERTICES_AT_ONCE):
        end = min(begin + _VERTICES_AT_ONCE, last)
        sums = np.zeros(end - begin + 1, np.int64)
        np.cumsum(graph.indptr[begin + 1 : end + 1] - graph.split[begin:end], out=sums[1:])
        before = -held
        while (at := begin + int(np.searchsorted(sums, before + most, side="right")) - 1) < end:
            cuts.append(max(at, cuts[-1] + 1))
            if cuts[-1] >= end:
                break
            before = int(sums[cuts[-1] - begin])
        held = 0 if cuts[-1] >= end else int(sums[-1]) - before
    return list(pairwise([*cuts, last] if cuts[-1] < last else cuts))


def streamed_columns(
    graph: Graph, pages: Pages, first: int, last: int, most: int, cancel: Event
) -> Iterator[tuple[int, int, Callable[[], Iterator[Targets]]]]:
    """Cut a range of vertices, and prepare pages for each part of it.

    Parameters
    ----------
    graph
        The data graph, on the host.
    pages
        Of its adjacency on the engine.
    first, last, most
        See `column_ranges`.
    cancel
        Once it is set, no more parts and no more lists come.

    Yields
    ------
    (int, int, function)
        A part, and what copies the lists of all vertices from its first one on: it yields the vertices whose lists are
        there, to be asked for when those before were read.
    """
    for begin, end in column_ranges(graph, first, last, most):
        if cancel.is_set():
            return
        yield begin, end, partial(_rows, graph, pages, begin, cancel)


def _rows(graph: Graph, pages: Pages, first: int, cancel: Event) -> Iterator[Targets]:
    indptr, capacity = graph.indptr, pages.cache_arcs - pages.page_arcs
    if capacity <= 0:
        yield first, graph.num_vertices
        return
    for begin, end in target_blocks(indptr[first:], capacity):
        if cancel.is_set():
            return
        pages.hold([(int(indptr[first + begin]), int(indptr[first + end]))])
        yield first + begin, first + end
