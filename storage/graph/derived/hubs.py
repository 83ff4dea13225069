"""A graph without its hubs: the few vertices whose degrees are far above those of all others.

What is left knows which hubs each vertex was adjacent to, so that maps of a pattern that send some of its vertices to
hubs can be counted there; see :mod:`longwall.pipeline.planning.hubs`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from longwall.storage.graph.derived.core import Core, core_bytes, part_graph
from longwall.storage.graph.graph import Graph

MOST_HUBS = 3  # their subsets are the labels of what is left
_LEFT = 1 / 4  # of the sum of squared degrees, which is left at most where a few hubs are worth to be taken out

Int32s = npt.NDArray[np.int32]


class HubFree(NamedTuple):
    """What is left of a graph without its hubs, which are the vertices 0 to h - 1.

    Attributes
    ----------
    part
        The vertices that have neighbours left; their labels are the hubs that they were adjacent to, as bits. None
        where there are none.
    kinds
        By these bits, how many vertices there are besides the hubs, those without neighbours included.
    joined
        The hubs that each hub is adjacent to, as bits.
    """

    part: Core | None
    kinds: tuple[int, ...]
    joined: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of the graph."""
        return 0 if self.part is None else self.part.nbytes


def count_hubs(graph: Graph) -> int:
    """Return how many vertices are hubs: the fewest that have most of the sum of squared degrees; 0 if that takes many.

    A search, or a pass over all rows, reads about this sum: without the hubs it reads a fraction of it.
    """
    left = float(graph.stats.sum_degree_squared)
    bound = left * _LEFT
    for hub in range(min(MOST_HUBS, graph.num_vertices - 1)):
        left -= float(graph.indptr[hub + 1] - graph.indptr[hub]) ** 2
        if left <= bound:
            return hub + 1
    return 0


def hub_bytes(graph: Graph) -> int:
    """Return the bytes that `hub_masks` and `degrees_without` take."""
    return 12 * graph.num_vertices


def hub_masks(graph: Graph, hubs: int) -> Int32s:
    """Return the hubs that each vertex is adjacent to, as bits."""
    masks = np.zeros(graph.num_vertices, np.int32)
    for hub in range(hubs):
        masks[graph.indices[graph.indptr[hub] : graph.indptr[hub + 1]]] |= 1 << hub
    return masks


def degrees_without(graph: Graph, hubs: int, masks: Int32s) -> Int32s:
    """Return how many neighbours are left to each vertex without the hubs; 0 for the hubs.

    Parameters
    ----------
    graph
        The graph.
    hubs
        Number of hubs.
    masks : int32[n]
        As `hub_masks` returns them.
    """
    degrees = np.diff(graph.indptr).astype(np.int32)
    for hub in range(hubs):
        degrees -= masks >> hub & 1
    degrees[:hubs] = 0
    return degrees


def without_hubs_bytes(graph: Graph, degrees: Int32s) -> int:
    """Return the bytes that `without_hubs` takes."""
    return core_bytes(graph, degrees)


def without_hubs(graph: Graph, hubs: int, masks: Int32s, degrees: Int32s) -> HubFree:
    """Make the graph without the hubs; parameters as of `degrees_without`, and what that returned."""
    kinds = np.bincount(masks[hubs:], minlength=1 << hubs).tolist()
    content_hash = f"{graph.content_hash} without {hubs} hubs"
    part = part_graph(graph, degrees, masks, content_hash) if degrees.any() else None
    return HubFree(part, tuple(kinds), tuple(masks[:hubs].tolist()))
