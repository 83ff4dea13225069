"""Interface of growing many patterns at once: the graph by edge types, and the patterns that grow.

Patterns are minimum DFS codes and grow along their rightmost paths (gSpan): by a new vertex at any vertex of the path,
or by an edge from the rightmost vertex to another vertex of the path. An edge type is an edge seen from one end: the
label of that end, of the other end, and of the edge. A rightmost extension of a pattern is a place of its path, a
direction and a type; those of a batch of patterns are numbered.
"""

from dataclasses import dataclass, fields
from typing import Any, Protocol

from longwall.kernels.interface.workspaces import Device

Array = Any  # a NumPy or a CuPy array
NO_EXTENSION = -(2**63)
"""In place of the first number where a pattern has no extension."""


class _Movable:
    def to(self, xp: Any) -> Any:
        """The same in arrays of another module."""
        return type(self)(*(xp.asarray(array) for array in self.arrays()))

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(int(array.nbytes) for array in self.arrays())

    def arrays(self) -> list[Array]:
        """All arrays, in the order of the fields."""
        return [getattr(self, field.name) for field in fields(self)]  # type: ignore[arg-type]


@dataclass(frozen=True)
class TypedGraph(_Movable):
    """A graph whose adjacency lists are cut into runs of edges of one type.

    Attributes
    ----------
    runs : int64[n + 1]
        The runs of vertex v are `runs[v]` to `runs[v + 1] - 1`.
    types : int32[r]
        Type of each run; those of a vertex ascend.
    begins : int64[r + 1]
        Run i is `indices[begins[i]:begins[i + 1]]`.
    indices : uint32[s]
        Neighbours; each run ascends.
    targets : int32[t]
        For each type, the label of the other end. Types are numbered by (label of this end, label of the other end,
        label of the edge), ascending.
    groups : int32[n] or int32[1]
        The transaction of each vertex; one zero where there are none.
    """

    runs: Array
    types: Array
    begins: Array
    indices: Array
    targets: Array
    groups: Array

    @property
    def num_vertices(self) -> int:
        """Number of vertices."""
        return int(self.runs.size) - 1


@dataclass(frozen=True)
class GrowthBatch(_Movable):
    """The patterns of a batch, and the numbers of their rightmost extensions.

    Attributes
    ----------
    first : int64[1]
        Number of the first pattern of the batch.
    sizes : int32[p]
        Vertices of each pattern.
    columns : int32[p, v]
        The column of the embedding table that holds each vertex.
    labels : int32[p, v]
        The label of each vertex.
    path_sizes : int32[p]
        Vertices on the rightmost path.
    paths : int32[p, v]
        The path, from the rightmost vertex to vertex 0.
    known : int32[p, v, v]
        Type of the edge from place a of the path to vertex y; -1 where the pattern has none.
    forward : int64[p, v]
        The extension by a new vertex at place a of the path, by an edge of type t, is `forward[p, a] + t`; or
        `NO_EXTENSION`.
    backward : int64[p, v]
        The same for an edge from the rightmost vertex to place a.
    """

    first: Array
    sizes: Array
    columns: Array
    labels: Array
    path_sizes: Array
    paths: Array
    known: Array
    forward: Array
    backward: Array


@dataclass(frozen=True)
class Images(_Movable):
    """The images of the vertices of grown patterns, and how many of them are still wanted.

    Attributes
    ----------
    alive : int32[extensions]
        Number of each extension that is looked at, -1 for the others; -1 as well once it has all that is wanted.
    sets : uint32[k, vertices of the largest grown pattern, words]
        A bit per vertex of the graph, for each extension that is looked at and each vertex of the grown pattern.
    wanted : int32[k, vertices of the largest grown pattern]
        How many more images each vertex is to get.
    open : int32[k]
        How many vertices are still to get some.
    left : int32[1 + p]
        How many extensions are alive: of all patterns, and of each one of the batch.
    """

    alive: Array
    sets: Array
    wanted: Array
    open: Array
    left: Array


def num_words(items: int) -> int:
    """Words of 32 bits for a number of bits."""
    return -(-items // 32)


class GrowKernel(Protocol):
    """Workspace of one worker that grows patterns by one edge.

    Rows are uint32[columns, n], ascending by column 0, which holds the number of their pattern. `growth` has their
    patterns. `alive` (int32[extensions]) has a number for each extension that is looked at, -1 for the others.

    Attributes
    ----------
    counting_bytes, marking_bytes : int
        Bytes of the host that it keeps once it has counted, or marked images.
    """

    @property
    def counting_bytes(self) -> int: ...  # noqa: D102

    @property
    def marking_bytes(self) -> int: ...  # noqa: D102

    def count(self, rows: Array, growth: GrowthBatch, counts: Array) -> None:
        """Add how many rows each extension will have to `counts` (int64[extensions])."""

    def mark_groups(self, rows: Array, growth: GrowthBatch, alive: Array, sets: Array) -> None:
        """Add the transactions of rows of the grown patterns to `sets` (uint32[alive, words], a bit for each)."""

    def mark_images(self, rows: Array, growth: GrowthBatch, images: Images) -> None:
        """Add the vertices that rows of the grown patterns map the pattern's vertices to, as far as they are wanted."""

    def sizes(self, sets: Array) -> Array:
        """Count the bits of sets: uint32[..., words] to int64[...]."""

    def child_counts(self, rows: Array, growth: GrowthBatch, alive: Array) -> Array:
        """Count the rows that each row grows into, int64[n], by the extensions that are alive."""

    def children(self, rows: Array, growth: GrowthBatch, alive: Array, offsets: Array) -> tuple[Array, Array]:
        """Grow rows; `offsets` (int64[n + 1]) has the prefix sums of `child_counts`.

        Returns
        -------
        numbers : int32[offsets[n]]
            The number in `alive` of each new row's extension, row by row.
        vertices : uint32[offsets[n]]
            The vertex at the far end of its new edge.
        """

    def grouped(self, rows: Array, offsets: Array, numbers: Array, vertices: Array, first: int) -> Array:
        """Return the rows that `children` made, uint32[columns + 1, offsets[n]], grouped by number, in their order.

        Parameters
        ----------
        rows, offsets
            What `children` took.
        numbers, vertices
            Results of `children`.
        first
            Number of the pattern that number 0 leads to.
        """
        ...


class FrequentKernels(Protocol):
    """Make workspaces that grow frequent patterns."""

    def grower(self, device: Device, graph: TypedGraph, memory: int) -> GrowKernel:
        """Workspace for growing patterns by one edge, at most `memory` bytes; the graph is in the engine's arrays."""
