"""The data graph in memory, as users have it."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from longwall.storage.errors import one_frame
from longwall.storage.graph.graph_data import GraphData

if TYPE_CHECKING:
    import networkx
    import pyarrow as pa

    from longwall.storage.system.drawing import Drawing

_PUBLIC = (
    *("num_vertices", "num_edges", "num_transactions", "has_labels", "has_names", "content_hash", "notes", "nbytes"),
    *("to_arrow", "to_networkx", "to_igraph", "plot", "save"),
)


@dataclass(frozen=True, eq=False, repr=False)
class Graph(GraphData):
    """An undirected, simple data graph without isolated vertices."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the arrays from a pickle: those in memory that processes share are read-only."""
        self.__dict__.update({name: _for_kernels(value) for name, value in state.items()})

    def __len__(self) -> int:
        """Number of vertices, as of a networkx graph."""
        return self.num_vertices

    def __bool__(self) -> bool:
        """True: a graph without edges is a graph."""
        return True

    def __eq__(self, other: object) -> bool:
        """Whether another graph has the same ids, edges and labels, however it was read."""
        if not isinstance(other, Graph):
            return NotImplemented
        from longwall.storage.ingest.objects.graph_to import same_content

        return self is other or self.content_hash == other.content_hash or same_content(self, other)

    def __hash__(self) -> int:
        return hash((self.num_vertices, self.num_edges, self.stats.max_degree))

    def __dir__(self) -> list[str]:
        """List what users need; arrays of internal ids are for the engines."""
        return sorted(_PUBLIC)

    def __repr__(self) -> str:
        return f"<longwall.Graph: {self.num_vertices:,} vertices, {self.num_edges:,} edges>"

    def _repr_html_(self) -> str:
        from longwall.storage.memory.sizes import round_size
        from longwall.storage.system.html import html_table

        facts: list[tuple[str, object]] = [("vertices", self.num_vertices), ("edges", self.num_edges)]
        facts += [("largest degree", self.stats.max_degree)] if self.num_vertices else []
        facts += [("labels", self.stats.num_labels)] if self.has_labels else []
        facts += [("transactions", self.num_transactions)] if self.num_transactions else []
        return html_table(["Graph"], [*facts, ("memory", round_size(self.nbytes))])

    def to_arrow(self) -> "pa.Table":
        """Return the edges as a table, each once, with the ids of the input.

        Returns
        -------
        pyarrow.Table
            The columns ``source`` and ``target``, of `id_type`, and ``label``, int32, where edges are labelled.
        """
        from longwall.storage.ingest.objects.graph_to import edge_table

        return edge_table(self)

    @one_frame
    def to_networkx(self) -> "networkx.Graph[int]":
        """Return a copy of a small graph, with the ids of the input and the attribute ``label``, where there is one.

        Raises
        ------
        InputError
            If the graph has more than ten million edges.
        """
        from longwall.storage.ingest.objects.graph_to import networkx_graph

        return networkx_graph(self)

    @one_frame
    def to_igraph(self) -> Any:
        """Return a copy as an igraph graph, whose vertices have the ids of the input as the attribute ``name``.

        Vertices and edges have the attribute ``label`` if they are labelled.

        Raises
        ------
        InputError
            If igraph is not installed, or the graph has more than ten million edges.
        """
        from longwall.storage.ingest.objects.graph_to import igraph_graph

        return igraph_graph(self)

    @one_frame
    def plot(self) -> "Drawing":
        """Draw a small graph: ids are shown up to 40 vertices, labels by colours.

        Returns
        -------
        Drawing
            A notebook shows it; ``svg()`` returns it and ``savefig("graph.svg")`` writes it.

        Raises
        ------
        InputError
            If the graph has more than 300 vertices or 3,000 edges.
        """
        from longwall.storage.ingest.objects.graph_plot import graph_drawing

        return graph_drawing(self)

    @one_frame
    def save(self, path: str | Path) -> None:
        """Write a graph store, which `longwall.open_graph` and configs read.

        Raises
        ------
        InputError
            If the path exists already, or cannot be written to.
        RunError
            If the disk is full.
        """
        from longwall.storage.graph.store_writer import write_graph

        write_graph(self, path)


def _for_kernels(value: Any) -> Any:
    """Return a read-only array as a writable one of the same memory, as kernels declare it; they write to no graph."""
    return np.asarray(_WritableMemory(value)) if isinstance(value, np.ndarray) and not value.flags.writeable else value


class _WritableMemory:
    """The memory of an array, described as if it could be written."""

    def __init__(self, array: npt.NDArray[Any]):
        description = array.__array_interface__
        self.__array_interface__ = {**description, "data": (description["data"][0], False)}
        self._kept = array
