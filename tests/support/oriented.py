"""The arcs to smaller neighbours of a graph, all of them there."""

from __future__ import annotations

import numpy as np

from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.storage.graph.graph import Graph
from longwall.storage.pages.orientation import oriented_arrays
from longwall.storage.pages.oriented_copy import OrientedCopy


def orient(graph: Graph, least: int = 0) -> GraphArrays:
    """Return the arrays of `oriented_arrays`, filled."""
    arrays = oriented_arrays(graph, np.empty, least)
    copy = OrientedCopy(graph, arrays)
    copy.begin()
    copy.wait()
    return arrays
