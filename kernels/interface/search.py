"""Search programs and edges on an engine: workspaces that count below rows and extend them, and their kernels."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.pages import RowReads
from longwall.kernels.interface.search_program import SearchProgram
from longwall.kernels.interface.workspaces import Device, Workspace

Array = Any  # a NumPy or a CuPy array


@dataclass(frozen=True)
class Extension:
    """Rows that were extended by one level, as many as there was room for.

    Attributes
    ----------
    counts : int64[rows]
        Number of new vertices per row; -1 for rows that were not extended. Some are, unless the engine was
        interrupted; the engine chooses which ones.
    values : uint32[sum of the counts that are not negative]
        The new vertices, row by row.
    begun
        If not 0, there was no room for all of the first row: it was extended by vertices below `begun` alone, and no
        other row was.
    waiting
        Number of rows that were not extended, the first one not included where it was begun.
    leading
        Whether these are the last rows.
    """

    counts: Array
    values: Array
    begun: int = 0
    waiting: int = 0
    leading: bool = True


class Searcher(Workspace, Protocol):
    """Workspace of one worker for one search program."""

    def count_rows(self, rows: Array, most: int | None = None) -> int:
        """Count the embeddings below `rows` (uint32[columns, n]).

        Where there are `most` or more, any number from `most` on may be returned: the search ends there.
        """

    def count_edges(self, first: int, last: int, most: int | None = None) -> tuple[int, int]:
        """Count the embeddings below the edges of the arcs first to last - 1, where nothing of the graph is in pages.

        Return the number, as of `count_rows`, and how many of the edges may be at the program's first two levels.
        """

    def extend_rows(self, rows: Array, capacity: int, first: int = 0) -> Extension:
        """Extend rows by one level.

        Parameters
        ----------
        rows : uint32[columns, n]
            The rows.
        capacity
            Most new vertices; at least 1.
        first
            The first row is extended by vertices from this one on.
        """

    def reads(self, rows: Array, *, counting: bool) -> list[RowReads]:
        """Return what counting below `rows`, or extending them, reads for their own vertices."""


class Cut(NamedTuple):
    """Rows whose new edges are written at once.

    Attributes
    ----------
    last
        Where these rows end.
    number
        How many new edges they have.
    all_grow
        Whether each of them has some.
    """

    last: int
    number: int
    all_grow: bool


class EdgeExtender(Workspace, Protocol):
    """Workspace of one worker that extends rows of edges by the edges that touch them.

    Rows are int64[levels, n], contiguous; an edge is its larger end << 32 | its smaller end. The new edges of a row are
    those of its vertices, the distinct ends of its edges in order, each with its neighbours ascending; an edge between
    two vertices of the row is found from the larger one. Edges of the row are not new.
    """

    def reads(self, columns: Array) -> list[RowReads]:
        """Return what extending rows reads of the adjacency; takes 8 bytes for each of their edges while it is held."""

    def count(self, columns: Array, first: int, last: int) -> None:
        """Count the new edges of the rows from `first` on, of at least one and of those up to last - 1 at most.

        The rows must not change, and those that were counted before are forgotten.
        """

    def is_counted(self, columns: Array, row: int) -> bool:
        """Whether a row of these was counted last, and can be extended: not any more once other pages have copies."""

    def cut(self, first: int, capacity: int) -> Cut:
        """Find which counted rows from `first` on have at most `capacity` new edges; the first one, whatever it has."""

    def new_edges(self, first: int, cut: Cut) -> tuple[Array, Array]:
        """Return the new edges of the counted rows from `first` to where they are cut.

        Returns
        -------
        offsets : int64[rows + 1]
            Where the new edges of each row begin, and where they end.
        edges : int64[number]
            Row by row. Nothing beside the results is allocated.
        """


class SearchKernels(Protocol):
    """Make workspaces of searches and extensions."""

    def searcher(self, device: Device, graph: GraphArrays, program: SearchProgram, memory: int) -> Searcher:
        """Workspace for a search program; at most `memory` bytes.

        Raises
        ------
        WorkspaceTooLarge
            Where the program cannot run in that much memory.
        """

    def edge_extender(self, device: Device, graph: GraphArrays, levels: int, rows: int, memory: int) -> EdgeExtender:
        """Workspace for extending tables of edges.

        Parameters
        ----------
        device
            The engine's.
        graph
            The data graph.
        levels
            Of the tables.
        rows
            The most that are extended at once.
        memory
            The most bytes, but where a single row takes more.
        """
