"""Workspaces of workers, which extend and count, and their results."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Flag, auto
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.cliques.tables import TablePiece
from longwall.kernels.interface.frontier import RowReads

Array = Any  # a NumPy or a CuPy array
Targets = tuple[int, int]
"""Vertices from the first number to the second, less one: only arcs to these count."""


class Block(NamedTuple):
    """A range of arcs, those of them that count, and those that count in blocks to come.

    Attributes
    ----------
    first, last
        The first arc, and one past the last.
    targets
        The vertices that arcs count to; None: all.
    later
        Vertices that arcs of the range will count to.
    """

    first: int
    last: int
    targets: Targets | None
    later: Sequence[Targets | None] = ()


class Corner(Flag):
    """Which arcs of a triangle are counted: those of its largest vertex, or that between the two smaller ones."""

    LARGEST = auto()
    SMALLER = auto()


ArcBlock = tuple[int, int, Targets | None, Corner]
"""A `Block` whose triangles are counted, and at which of their arcs."""


class ArcPiece(NamedTuple):
    """All arcs of some vertices, and the vertices that they lead to, in parts.

    Attributes
    ----------
    arcs
        The first arc, and one past the last.
    targets
        The smaller vertices of pieces before, each a part of one of them, then those of this piece; each with the first
        of its arcs and one past its last. When the next part is asked for, kernels that read the lists of the last one
        have been launched.
    parts
        The parts of vertices that `targets` has.
    final
        Whether there are no more pieces.
    """

    arcs: tuple[int, int]
    targets: Iterable[tuple[Targets, tuple[int, int]]]
    parts: Sequence[Targets]
    final: bool


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


class Workspace(Protocol):
    """What a worker's calls write to.

    Attributes
    ----------
    workspace_bytes
        Its bytes in host memory.
    """

    @property
    def workspace_bytes(self) -> int: ...  # noqa: D102


class Searcher(Workspace, Protocol):
    """Workspace of one worker for one search program."""

    def count_rows(self, rows: Array, most: int | None = None) -> int:
        """Count the embeddings below `rows` (uint32[columns, n]).

        Where there are `most` or more, any number from `most` on may be returned: the search ends there.
        """
        ...

    def count_edges(self, first: int, last: int, most: int | None = None) -> tuple[int, int]:
        """Count the embeddings below the edges of the arcs first to last - 1, where nothing of the graph is in pages.

        Return the number, as of `count_rows`, and how many of the edges may be at the program's first two levels.
        """
        ...

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
        ...

    def reads(self, rows: Array, *, counting: bool) -> list[RowReads]:
        """Return what counting below `rows`, or extending them, reads for their own vertices."""
        ...


class RangeCounter(Workspace, Protocol):
    """Workspace of one worker that counts something over ranges of roots."""

    def count(self, first: int, last: int) -> int:
        """Count what belongs to the roots first to last - 1."""
        ...


class TriangleCounter(Workspace, Protocol):
    """Workspace of one worker that counts triangles over ranges of arcs."""

    def count(self, first: int, last: int, targets: Targets | None = None) -> int:
        """Count the triangles of the arcs first to last - 1, or of those of them to `targets`.

        A triangle is of the arc from its largest vertex to the middle one.
        """
        ...

    def count_blocks(self, blocks: Iterable[Block]) -> int:
        """Count those of blocks while their lists come in turn."""
        ...


class TabledCliqueCounter(RangeCounter, Protocol):
    """Workspace of one worker that counts cliques over ranges of arcs, while the lists of vertices come in turn.

    Attributes
    ----------
    table_room
        The words that one range may take; see :func:`longwall.kernels.interface.cliques.tables.table_words`.
    least_degree
        Vertices of fewer out-neighbours have no table.
    """

    table_room: int
    least_degree: int

    def count(self, first: int, last: int, targets: Iterable[Targets | None] = (None,)) -> int:
        """Count the cliques whose two largest vertices are joined by the arcs first to last - 1.

        Parameters
        ----------
        first, last
            A range whose vertices' tables have room.
        targets
            All vertices that arcs of these vertices lead to, in parts; None: at once. When the next part is asked for,
            kernels that read the lists of the last one have been launched.
        """
        ...

    def count_pieces(self, pieces: Iterable[TablePiece]) -> int:
        """Count the cliques of ranges, each as `count` does, without waiting for kernels between them."""
        ...


class ArcDiamondCounter(RangeCounter, Protocol):
    """Workspace of one worker that counts pairs of triangles at the arcs of a range.

    Attributes
    ----------
    arc_room
        The most arcs of a range.
    piece_room, part_room
        The most arcs of an `ArcPiece`, and of a part of its targets; 0 where lists do not come in turn.
    """

    arc_room: int
    piece_room: int
    part_room: int

    def count(self, first: int, last: int, blocks: Iterable[ArcBlock] | None = None) -> int:
        """Count the pairs of triangles that share the edge of an arc first to last - 1, one to a smaller neighbour.

        Parameters
        ----------
        first, last
            The range.
        blocks
            All blocks that have triangles at these arcs, each once for a corner. When the next one is asked for,
            kernels that read the lists of the last one have been launched. None: lists are read where they are.
        """
        ...

    def count_pieces(self, pieces: Iterable[ArcPiece]) -> int:
        """Count the pairs of triangles at all arcs, each triangle once, while lists come in turn.

        Takes four bytes of the host for each arc.

        Parameters
        ----------
        pieces
            One after the other, from the first arc to the last one.
        """
        ...


class ColumnCycleCounter(RangeCounter, Protocol):
    """Workspace of one worker that counts 4-cycles over ranges of vertices, while lists come in turn.

    Attributes
    ----------
    arc_room
        The most arcs that lead from larger vertices to those of a range; a single vertex may have more on a host.
    """

    arc_room: int

    def count(self, first: int, last: int, rows: Callable[[], Iterable[Targets]] | None = None) -> int:
        """Count the 4-cycles whose smallest vertices are first to last - 1.

        Parameters
        ----------
        first, last
            The range.
        rows
            Returns the vertices from `first` on, in parts. When the next part is asked for, kernels that read the lists
            of the last one have been launched. None: all lists are where they are read.
        """
        ...


class VertexCounter(Workspace, Protocol):
    """Workspace of one worker that counts something per vertex."""

    def add(self, first: int, last: int) -> None:
        """Add what belongs to the roots first to last - 1."""
        ...

    def counts(self) -> NDArray[np.int64]:
        """Counts per vertex so far, int64[num_vertices] or int64[orbits, num_vertices], on the host."""
        ...


class TriangleVertexCounter(VertexCounter, Protocol):
    """Workspace of one worker that counts triangles per vertex, over ranges of arcs."""

    def add(self, first: int, last: int, targets: Targets | None = None) -> None:
        """Add the triangles of the arcs first to last - 1, or of those of them to `targets`; see `TriangleCounter`."""
        ...

    def add_blocks(self, blocks: Callable[[], Iterable[Block]]) -> None:
        """Add those of blocks while their lists come in turn: once, or for one part of the vertices after the other.

        Parameters
        ----------
        blocks
            Has the lists come, each time anew.

        Raises
        ------
        ShortOfMemory
            If there was too little memory; nothing was added.
        EngineLost
            If some were added, but not all.
        """
        ...


class MotifCounter(Workspace, Protocol):
    """Workspace of one worker that counts induced subgraphs of k vertices by pattern."""

    def add(self, first: int, last: int) -> None:
        """Add what belongs to the roots first to last - 1."""
        ...

    def counts(self) -> NDArray[np.int64]:
        """Counts so far, on the host: int64[classes, 2 ** (k - 1)].

        By the class of k - 1 vertices that are connected, and the neighbours of one vertex more, as bits over the
        class' canonical form; a subgraph is counted once for each of its vertices without which it stays connected.
        """
        ...


class CliqueCounter(Workspace, Protocol):
    """Workspace of one worker that counts maximal cliques by size."""

    def add(self, first: int, last: int) -> None:
        """Add those whose earliest vertices in the degeneracy order are `first` to `last` - 1."""
        ...

    def counts(self) -> NDArray[np.int64]:
        """Counts so far, on the host: int64[degeneracy + 2], by the number of vertices."""
        ...


class LeafCounter(Workspace, Protocol):
    """Workspace of one worker that counts leaves of pivot trees, which stand for cliques."""

    def add(self, first: int, last: int) -> None:
        """Add what belongs to the arcs `first` to `last` - 1."""
        ...

    def take(self) -> NDArray[np.int64]:
        """Return the leaves since the last call, on the host: int64[h, p], by held vertices and by pivots.

        See :mod:`longwall.kernels.interface.cliques.leaves`.
        """
        ...


class CliqueLister(Workspace, Protocol):
    """Workspace of one worker that lists maximal cliques, as many at a time as there is room for."""

    def begin(self, first: int, last: int) -> None:
        """Begin with those whose earliest vertices in the degeneracy order are `first` to `last` - 1."""
        ...

    def following(self) -> tuple[NDArray[np.int64], NDArray[np.uint32]] | None:
        """Return the next cliques; None where there are no more.

        Returns
        -------
        offsets : int64[rows + 1]
            Where each clique begins, and where the last one ends.
        members : uint32[offsets[-1]]
            Their vertices. Both arrays are on the host, and written again by the next call.
        """
        ...


class RowCounter(Workspace, Protocol):
    """Workspace of one worker for one row program."""

    def add(self, first: int, last: int) -> None:
        """Run the program for the vertices first to last - 1."""
        ...

    def totals(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Sums of the program's products so far: modulo 2**64, and as floating point; on the host."""
        ...


class EdgeExtender(Workspace, Protocol):
    """Workspace of one worker that extends rows of edges by the edges that touch them.

    Rows are int64[levels, n], contiguous; an edge is its larger end << 32 | its smaller end. The new edges of a row are
    those of its vertices, the distinct ends of its edges in order, each with its neighbours ascending; an edge between
    two vertices of the row is found from the larger one. Edges of the row are not new.
    """

    def reads(self, columns: Array) -> list[RowReads]:
        """Return what extending rows reads of the adjacency; takes 8 bytes for each of their edges while it is held."""
        ...

    def count(self, columns: Array, first: int, last: int) -> None:
        """Count the new edges of the rows from `first` on, of at least one and of those up to last - 1 at most.

        The rows must not change, and those that were counted before are forgotten.
        """
        ...

    def is_counted(self, columns: Array, row: int) -> bool:
        """Whether a row of these was counted last, and can be extended: not any more once other pages have copies."""
        ...

    def cut(self, first: int, capacity: int) -> "Cut":
        """Find which counted rows from `first` on have at most `capacity` new edges; the first one, whatever it has."""
        ...

    def new_edges(self, first: int, cut: "Cut") -> tuple[Array, Array]:
        """Return the new edges of the counted rows from `first` to where they are cut.

        Returns
        -------
        offsets : int64[rows + 1]
            Where the new edges of each row begin, and where they end.
        edges : int64[number]
            Row by row. Nothing beside the results is allocated.
        """
        ...


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
