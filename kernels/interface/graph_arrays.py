"""The data graph where an engine's kernels can read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

if TYPE_CHECKING:
    from longwall.kernels.interface.pages import Pages


Array = Any  # a NumPy or a CuPy array

NARROW_DEGREE = 1 << 16
"""A vertex with fewer neighbours than this has fewer triangles at each arc than this: 16 bits count them."""

MAX_VERTICES = 2**32 - 1
"""Of a graph: vertices are uint32, and the last one stands for none."""


class LabelSlices(NamedTuple):
    """Where the neighbours of one label are in every row; see `GraphArrays`.

    Attributes
    ----------
    labels
        The labels, in the order of the slices; -1: all other labels.
    arcs
        The arcs of the vertices of the first label, of the first two, ...: vertices are numbered label by label.
    starts : uint32[n * (k + 1)]
    """

    labels: tuple[int, ...]
    arcs: tuple[int, ...]
    starts: Array


@dataclass(frozen=True)
class GraphArrays:
    """The data graph where the engine's kernels can read it.

    Attributes
    ----------
    indptr : int64[n + 1]
    indices : uint32[2m]
        Rows sorted ascending.
    split : int64[n]
        `indices[indptr[v]:split[v]]` are the neighbours of v with a smaller id.
    labels : int32[n] or int32[1]
        Vertex labels; one zero where there are none.
    max_degree, max_out_degree
        Largest length of a row, and of its part before the split.
    pages
        The pages of `indices`, where these are not all in the memory that the engine works in.
    managed
        What the engine moves pages with, where they are in managed memory.
    oriented
        Whether rows have only the neighbours with smaller ids, and `indices` an arc for each edge; `split` is a view of
        `indptr` then.
    narrow_from
        A vertex: this one and all later ones have fewer than `NARROW_DEGREE` neighbours each, smaller and larger ones
        together. None: not known.
    slices : uint32[n * (k + 1)] or None
        ``indptr[v] + slices[v * (k + 1) + i]`` is where the neighbours of v begin that have label ``slice_labels[i]``,
        and the entry behind it says where they end; None where rows are not laid out by label.
    slice_labels
        The k labels; vertices are numbered label by label.
    slice_arcs
        How many arcs begin at vertices of the first label, of the first two, ...
    """

    indptr: Array
    indices: Array
    split: Array
    labels: Array
    max_degree: int
    max_out_degree: int
    pages: Pages | None = None
    managed: Any = None
    oriented: bool = False
    narrow_from: int | None = None
    slices: Array = None
    slice_labels: tuple[int, ...] = ()
    slice_arcs: tuple[int, ...] = ()

    @classmethod
    def of(cls, graph: GraphArrays, **more: Any) -> Self:
        """Make a graph of this class from another one and the further fields of this class; no array is copied."""
        return cls(**vars(graph), **more)

    @property
    def num_vertices(self) -> int:
        """Number of vertices."""
        return int(self.indptr.size) - 1

    @property
    def num_arcs(self) -> int:
        """Number of arcs: directed edges, two for each edge."""
        return int(self.indices.size)

    @property
    def rows(self) -> tuple[Array, Array, Array]:
        """The three arrays that say which neighbours every vertex has: `indptr`, `indices`, `split`."""
        return self.indptr, self.indices, self.split

    @property
    def slice_stride(self) -> int:
        """Entries of a vertex in `slices`, 0 where there are none."""
        return 0 if self.slices is None else len(self.slice_labels) + 1

    @property
    def vertex_arrays(self) -> tuple[str, ...]:
        """The arrays with an entry per vertex that take memory of their own, of `VERTEX_ARRAYS`."""
        absent = {"split"} if self.oriented else set()
        if self.slices is None:
            absent.add("slices")
        return tuple([name for name in VERTEX_ARRAYS if name not in absent])


VERTEX_ARRAYS = ("labels", "slices", "indptr", "split")
"""The arrays of a graph with an entry per vertex; first what kernels read most often: a label for every candidate."""

Access = Literal["resident", "adaptive", "managed", "zero-copy"]
"""Where the adjacency is: on the device; in managed memory, whose hot pages are copied there and whose other pages are
read over the link; in managed memory, whose pages move when they are touched; or in mapped, page-locked host memory."""
