"""The kernels: functions on arrays that every engine has.

:mod:`longwall.kernels.cpu` and :mod:`longwall.kernels.cuda` are the tables, modules of this protocol (PEP 544). The
function of a kernel is in the file of the same name in both. Its first argument is the engine's device.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.cliques.degeneracy import DegeneracyOrder
from longwall.kernels.interface.frontier import RowReads
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.homomorphism_program import Beside, Domain, Inner, RowProgram, RowTables
from longwall.kernels.interface.label_rows import KeptEdges, LabelRows, NewArray, Roles
from longwall.kernels.interface.local_counts import EdgeGraph, EdgeShape, TriangleGraph
from longwall.kernels.interface.pattern_growth import GrowKernel, TypedGraph
from longwall.kernels.interface.search_program import SearchProgram
from longwall.kernels.interface.sorting import ChunkSorter, KeyLayout, Method, RunMerger
from longwall.kernels.interface.workspaces import (
    ArcDiamondCounter,
    CliqueCounter,
    CliqueLister,
    ColumnCycleCounter,
    EdgeExtender,
    LeafCounter,
    MotifCounter,
    RangeCounter,
    RowCounter,
    Searcher,
    TabledCliqueCounter,
    TriangleCounter,
    TriangleVertexCounter,
    VertexCounter,
)

Array = Any  # a NumPy or a CuPy array
Device = Any  # of the engine whose kernel it is: a CpuDevice, or the CUDA engine's Device


class Kernels(Protocol):
    """The table of an engine's kernels; most make the workspace of one worker, in at most `memory` bytes."""

    def searcher(self, device: Device, graph: GraphArrays, program: SearchProgram, memory: int) -> Searcher:
        """Workspace for a search program; at most `memory` bytes.

        Raises
        ------
        WorkspaceTooLarge
            Where the program cannot run in that much memory.
        """
        ...

    def clique_counter(self, device: Device, graph: GraphArrays, k: int, memory: int) -> RangeCounter:
        """Workspace for counting k-cliques (k >= 3) one by one; roots are arcs."""
        ...

    def clique_leaf_counter(self, device: Device, graph: GraphArrays, k: int, memory: int) -> LeafCounter:
        """Workspace for counting cliques by the leaves of pivot trees; roots are arcs.

        Parameters
        ----------
        device
            The engine's.
        graph
            The graph.
        k
            Number of vertices, 4 or more, or `ALL_SIZES`.
        memory
            The most bytes.

        Raises
        ------
        WorkspaceTooLarge
            Where these do not do.
        """
        ...

    def tabled_clique_counter(self, device: Device, graph: GraphArrays, k: int, memory: int) -> TabledCliqueCounter:
        """Workspace for counting k-cliques (k >= 4) while lists come in turn; roots are arcs of an oriented graph.

        Parameters and errors are those of `clique_counter`.
        """
        ...

    def clique_vertex_counter(
        self, device: Device, graph: GraphArrays, k: int, limbs: int, memory: int
    ) -> VertexCounter:
        """Workspace for counting the k-cliques (k >= 3) of every vertex; roots are arcs.

        Its counts are int64[limbs, num_vertices]: words of 64 bits without a sign, the lowest first.
        """
        ...

    def triangle_counter(self, device: Device, graph: GraphArrays, memory: int) -> TriangleCounter:
        """Workspace for counting triangles; roots are arcs."""
        ...

    def triangle_vertex_counter(self, device: Device, graph: GraphArrays, memory: int) -> TriangleVertexCounter:
        """Workspace for counting triangles per vertex; roots are arcs."""
        ...

    def arc_diamond_counter(self, device: Device, graph: GraphArrays, memory: int) -> ArcDiamondCounter:
        """Workspace for counting diamonds, non-induced, at the edges that two triangles share; roots are arcs."""
        ...

    def four_cycle_counter(self, device: Device, graph: GraphArrays, memory: int) -> RangeCounter:
        """Workspace for counting 4-cycles by aggregating wedges; roots are vertices."""
        ...

    def column_cycle_counter(self, device: Device, graph: GraphArrays, memory: int) -> ColumnCycleCounter:
        """Workspace for counting 4-cycles while lists come in turn; roots are vertices."""
        ...

    def five_cycle_counter(self, device: Device, graph: GraphArrays, memory: int) -> RangeCounter:
        """Workspace for counting 5-cycles; roots are vertices, and only the sum over all of them is right."""
        ...

    def diamond_counter(self, device: Device, graph: GraphArrays, memory: int) -> RangeCounter:
        """Workspace for counting diamonds: cliques of four vertices less an edge; roots are vertices."""
        ...

    def row_counter(
        self,
        device: Device,
        graph: GraphArrays,
        tables: RowTables,
        program: RowProgram,
        domain: Domain,
        memory: int,
    ) -> RowCounter:
        """Workspace for a row program; roots are vertices or arcs, as `domain` says."""
        ...

    def common_neighbours(self, device: Device, graph: GraphArrays, memory: int) -> tuple[Any, Any, int]:
        """List the common neighbours of the ends of every arc.

        Returns
        -------
        indptr : int64[num_arcs + 1]
        common : uint32[6 * triangles]
            For every arc (v, x) the places of the arcs (v, y) to the common neighbours y, ascending.
        longest : int
            The most common neighbours of an arc.

        Raises
        ------
        WorkspaceTooLarge
            If they take more than `memory` bytes.
        """
        ...

    def rows_by_label(
        self,
        device: Device,
        graph: GraphArrays,
        roles: Roles,
        kept: KeptEdges,
        *,
        sliced: bool,
        new_array: NewArray,
        edge_labels: NDArray[np.int32] | None = None,
    ) -> LabelRows:
        """Make the rows of a graph that is laid out by label.

        Parameters
        ----------
        device, graph
            The engine's, and the data graph, all of it in the memory that the engine works in.
        roles, kept
            Which vertices and edges the new graph has.
        sliced
            Whether rows have slices, and vertices are numbered role by role; if not, in the order of ids.
        new_array
            Makes the arrays with an entry per arc, where the engine works in host memory.
        edge_labels : int32[2m] or None
            Labels of the edges, for the CPU engine only.
        """
        ...

    def reverse_arcs(self, device: Device, graph: GraphArrays) -> Any:
        """List the place of the arc (x, v) for every arc (v, x): uint32[num_arcs]."""
        ...

    def sum_neighbours(
        self, device: Device, graph: GraphArrays, vertices: Any, arcs: Any, modulus: int, out: Any
    ) -> None:
        """Set out[v] to the sum of arcs[v, x] * vertices[x] over the neighbours x of v; None stands for ones.

        Parameters
        ----------
        device
            The engine's.
        graph
            The graph.
        vertices : int64[num_vertices] or float64[num_vertices] or None
        arcs : int64[num_arcs] or float64[num_arcs] or None
        modulus
            A prime below 2**31, or 0 for none.
        out : int64[num_vertices] or float64[num_vertices]
        """
        ...

    def paths_of_arcs(self, device: Device, graph: GraphArrays, out: Any, memory: int) -> None:
        """Set `out` (int64[num_arcs], zeros) to the walks of three steps between the ends of every arc."""
        ...

    def cliques_of_arcs(self, device: Device, graph: GraphArrays, out: Any, memory: int) -> None:
        """Set `out` (int64[num_arcs], zeros) to the ordered pairs of adjacent common neighbours of every arc's ends."""
        ...

    def inner_counts(
        self, device: Device, graph: GraphArrays, tables: RowTables, inner: Inner, out: Any, memory: int
    ) -> None:
        """Set `out` (int64[num_arcs], zeros) to homomorphisms to the common neighbours of every arc's ends.

        Parameters
        ----------
        device, graph
            The engine's, and the graph.
        tables
            With the lists of common neighbours, and the places of reverse arcs.
        inner
            The pattern that is mapped.
        out : int64[num_arcs]
            Written. No number passes the square of `num_arcs`.
        memory
            The most bytes of workspaces.

        Raises
        ------
        WorkspaceTooLarge
            If they do not suffice.
        """
        ...

    def wheel_counter(self, device: Device, graph: GraphArrays, tables: RowTables, memory: int) -> RangeCounter:
        """Workspace for counting wheels of four spokes, by listed common neighbours; roots are arcs."""
        ...

    def almost_clique_counter(self, device: Device, graph: GraphArrays, tables: RowTables, memory: int) -> RangeCounter:
        """Workspace for counting 5-cliques less an edge, by listed common neighbours; roots are vertices."""
        ...

    def pair_counter(self, device: Device, graph: GraphArrays, beside: Beside, memory: int) -> RangeCounter:
        """Workspace for counting maps beside pairs of vertices, symmetric ones in one order; roots are their a."""
        ...

    def motif_counter(
        self, device: Device, graph: GraphArrays, k: int, entries: NDArray[np.uint32], classes: int, memory: int
    ) -> MotifCounter:
        """Workspace for counting motifs of 3 to 8 vertices; roots are arcs.

        Parameters
        ----------
        device
            The engine's.
        graph
            The graph.
        k
            Number of vertices.
        entries : uint32[2 ** ((k - 1) (k - 2) / 2)]
            The dictionary of k - 1 vertices, on the host: by code (bit v (v - 1) / 2 + u for the edge (u, v), u < v)
            the class in the lowest 10 bits, and above them, 3 bits per vertex, where it stands in the class' canonical
            form.
        classes
            Their number.
        memory
            The most bytes.
        """
        ...

    def orbit_counter(
        self, device: Device, graph: GraphArrays, k: int, orbits: NDArray[np.int64], memory: int
    ) -> VertexCounter:
        """Workspace for counting the orbits of motifs of 3 or 4 vertices; roots are arcs.

        A subgraph is counted for a vertex once for each of its other vertices without which it stays connected.

        Parameters
        ----------
        device
            The engine's.
        graph
            The graph.
        k
            Number of vertices.
        orbits : int64[2 ** ((k - 1) (k - 2) / 2), 2 ** (k - 1), k - 1]
            On the host: by code of k - 1 vertices and neighbours of one more, the orbit of each of the k - 1, from 0.
        memory
            The most bytes.
        """
        ...

    def arc_triangles(self, device: Device, graph: GraphArrays) -> tuple[Array, int]:
        """Count the triangles of every arc.

        Returns
        -------
        triangles : uint32[2m]
            Where the engine's kernels read it, by the place of the arc in `indices`.
        most
            Most triangles that the arcs of a vertex have, added up.
        """
        ...

    def edge_counter(
        self, device: Device, graph: EdgeGraph, shape: EdgeShape, first: int, number: int, memory: int
    ) -> VertexCounter:
        """Workspace for counting what contains each edge; roots are vertices.

        Parameters
        ----------
        device
            The engine's.
        graph
            The graph, with the numbers of its edges.
        shape
            What is counted.
        first, number
            The edges that are counted: `first` to `first` + `number` - 1; its counts are int64[number].
        memory
            The most bytes.
        """
        ...

    def orbit_homomorphism_counter(
        self, device: Device, graph: TriangleGraph, prime: int, memory: int
    ) -> VertexCounter:
        """Workspace for counting homomorphisms of graphlets of up to 5 vertices; roots are vertices.

        Its counts are int64[rows, num_vertices], modulo a prime below 2**31, or 2**64 if `prime` is 0: a row for each
        orbit of `longwall.kernels.interface.local_counts.COUNTED`, of the maps that send a vertex of the orbit to a
        vertex.
        """
        ...

    def degeneracy_order(self, device: Device, graph: GraphArrays, later: Any = None) -> DegeneracyOrder:
        """Order the vertices for a search for maximal cliques; it takes `order_bytes`.

        `later`, uint32[m], becomes `DegeneracyOrder.indices`, if given; it is in memory that kernels read.

        Raises
        ------
        EngineUnavailable
            Where the engine has no such kernel; so do the other kernels for maximal cliques.
        """
        ...

    def maximal_clique_counter(
        self, device: Device, graph: GraphArrays, order: DegeneracyOrder, min_size: int, memory: int
    ) -> CliqueCounter:
        """Workspace for counting maximal cliques of at least `min_size` vertices by size; roots are vertices."""
        ...

    def maximal_clique_vertex_counter(
        self, device: Device, graph: GraphArrays, order: DegeneracyOrder, min_size: int, memory: int
    ) -> VertexCounter:
        """Workspace for counting maximal cliques of at least `min_size` vertices per vertex; roots are vertices.

        Its counts are int64[3, num_vertices]: the cliques of each vertex, the size of its largest one, and at place
        s - 1 of the last row the cliques of s vertices.
        """
        ...

    def maximal_clique_lister(
        self, device: Device, graph: GraphArrays, order: DegeneracyOrder, min_size: int, room: int, memory: int
    ) -> CliqueLister:
        """Workspace for listing maximal cliques; roots are vertices.

        Parameters
        ----------
        device
            The engine's.
        graph
            The graph.
        order
            Its degeneracy order.
        min_size
            Vertices of the smallest cliques that are wanted.
        room
            Vertices of the cliques that are listed at a time; those of one clique at least.
        memory
            The most bytes.
        """
        ...

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
        ...

    def grower(self, device: Device, graph: TypedGraph, memory: int) -> GrowKernel:
        """Workspace for growing patterns by one edge, at most `memory` bytes; the graph is in the engine's arrays."""
        ...

    def chunk_sorter(self, device: Device, layout: KeyLayout, host_memory: int, device_memory: int) -> ChunkSorter:
        """Buffers for sorting chunks of keys, in so many bytes of the host and of the device, where there is one."""
        ...

    def run_merger(
        self, device: Device, layout: KeyLayout, host_memory: int, device_memory: int, method: Method
    ) -> RunMerger:
        """Buffers for merging sorted runs, in so many bytes of the host and of the device, where there is one."""
        ...

    def steps_per_second(self, device: Device) -> float:
        """Measure the elementary steps a second of all threads of the host together, or of the device, in about 0.1 s.

        A step reads an entry of an array in order and looks it up in a table that the first-level cache holds.
        """
        ...

    def bytes_per_page(
        self, device: Device, graph: GraphArrays, reads: Sequence[RowReads], page_arcs: int
    ) -> NDArray[np.uint64]:
        """Count the bytes that will be read of every page of the adjacency (GAMMA, Definition 4.1).

        Parameters
        ----------
        device
            The engine's.
        graph
            The data graph; of `indices` only the size is looked at.
        reads
            The frontier; see :func:`longwall.kernels.interface.frontier.frontier`.
        page_arcs
            Arcs, of 4 bytes, in a page; page p begins at arc ``p * page_arcs``.

        Returns
        -------
        uint64[number of pages]
            On the host. The last page may be shorter than the others. For a moment 16 bytes a page are needed where the
            engine works, and as many on the host.
        """
        ...
