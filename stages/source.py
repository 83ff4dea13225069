"""The source stage: the first levels of an embedding table, straight from the graph."""

from typing import Any

import numpy as np

from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.search_program import Level
from longwall.storage.graph.graph import Graph
from longwall.storage.tables.embedding_table import EmbeddingTable


def host_arrays(graph: Graph) -> GraphArrays:
    """The arrays of a graph as kernels read them."""
    return GraphArrays(
        graph.indptr,
        graph.indices,
        graph.split,
        graph.labels if graph.labels is not None else np.zeros(1, np.int32),
        graph.stats.max_degree,
        graph.stats.max_out_degree,
    )


def edge_source(graph: GraphArrays, levels: tuple[Level, Level], first: int, last: int, xp: Any) -> EmbeddingTable:
    """Levels 0 and 1 of a search: the ordered edges of a range of arcs.

    Parameters
    ----------
    graph
        The data graph, in arrays of `xp`.
    levels
        What the vertices of depths 0 and 1 must satisfy.
    first, last
        Range of arcs, that is, of positions in `graph.indices`.
    xp
        numpy or cupy.

    Returns
    -------
    EmbeddingTable
        A v-ET of two levels: the arc's source and its target.
    """
    if graph.pages is not None:
        graph.pages.scan(first, last)
    vertex = int(xp.searchsorted(graph.indptr, first, side="right")) - 1
    beyond = int(xp.searchsorted(graph.indptr, last, side="left"))
    owners = xp.arange(vertex, beyond, dtype=xp.uint32)
    offsets = xp.clip(graph.indptr[vertex : beyond + 1], first, last) - first
    table = EmbeddingTable((owners, graph.indices[first:last]), (offsets,), xp)
    low, high = table.columns()
    mask = admissible(graph, levels[0], low) & admissible(graph, levels[1], high)
    if levels[1].below:
        mask &= high < low
    if levels[1].above:
        mask &= high > low
    return table.filtered(mask)


def admissible(graph: GraphArrays, level: Level, vertices: Any) -> Any:
    """Whether vertices have the degree and the label that a level asks for: bool[len(vertices)]."""
    mask = graph.indptr[vertices.astype("int64") + 1] - graph.indptr[vertices] >= level.degree
    if level.label >= 0:
        mask &= graph.labels[vertices] == level.label
    return mask
