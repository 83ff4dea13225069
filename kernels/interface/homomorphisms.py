"""Homomorphisms on an engine: the kernels of row programs, and of patterns with kernels of their own."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.homomorphism_program import CodegreePattern, Domain, Inner, RowProgram, RowTables, Step
from longwall.kernels.interface.workspaces import Device, RangeCounter, Workspace


class RowCounter(Workspace, Protocol):
    """Workspace of one worker for one row program."""

    def add(self, first: int, last: int) -> None:
        """Run the program for the vertices first to last - 1."""

    def totals(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Sums of the program's products so far: modulo 2**64, and as floating point; on the host."""


class HomomorphismKernels(Protocol):
    """Make tables of vertices and arcs, and workspaces that count homomorphisms."""

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

    def common_neighbours(
        self, device: Device, graph: GraphArrays, reserve: Callable[[int], None]
    ) -> tuple[Any, Any, int]:
        """List the common neighbours of the ends of every arc.

        Parameters
        ----------
        device, graph
            The engine's, with the graph there. Each worker takes 5 bytes a vertex.
        reserve
            Reserves the bytes of the lists.

        Returns
        -------
        starts : int64[num_arcs + 1]
            Where the list of each arc begins, and where the last one ends.
        common : uint32[6 * triangles]
            For every arc (v, x) the places of the arcs (v, y) to the common neighbours y, ascending.
        longest : int
            The length of the longest list.
        """

    def reverse_arcs(self, device: Device, graph: GraphArrays) -> Any:
        """List the place of the arc (x, v) for every arc (v, x): uint32[num_arcs]."""

    def fill_tables(self, device: Device, graph: GraphArrays, tables: RowTables, steps: tuple[Step, ...]) -> None:
        """Make tables whose entries depend on other tables at the same vertex or arc, or at its neighbours.

        Parameters
        ----------
        device, graph
            The engine's, and the graph.
        tables
            The tables that the steps read, and those that they make.
        steps
            Products, sums over neighbours, HEADS, TAILS, REVERSE and LABEL; with lists of common neighbours,
            ARC_TRIANGLES, too. No step reads a table that another one makes.
        """

    def triangles_of_arcs(self, device: Device, graph: GraphArrays, out: Any) -> None:
        """Set `out` (int64[num_arcs]) to the triangles of every arc."""

    def paths_of_arcs(self, device: Device, graph: GraphArrays, out: Any, memory: int) -> None:
        """Set `out` (int64[num_arcs]) to the walks of three steps between the ends of every arc."""

    def cliques_of_arcs(self, device: Device, graph: GraphArrays, out: Any, memory: int) -> None:
        """Set `out` (int64[num_arcs]) to the ordered pairs of adjacent common neighbours of every arc's ends."""

    def inner_counts(
        self, device: Device, graph: GraphArrays, tables: RowTables, inner: Inner, out: Any, memory: int
    ) -> None:
        """Set `out` (int64[num_arcs]) to homomorphisms to the common neighbours of every arc's ends.

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

    def wheel_counter(self, device: Device, graph: GraphArrays, tables: RowTables, memory: int) -> RangeCounter:
        """Workspace for counting wheels of four spokes, by listed common neighbours; roots are arcs."""

    def almost_clique_counter(self, device: Device, graph: GraphArrays, tables: RowTables, memory: int) -> RangeCounter:
        """Workspace for counting 5-cliques less an edge, by listed common neighbours; roots are vertices."""

    def pair_counter(self, device: Device, graph: GraphArrays, codegree: CodegreePattern, memory: int) -> RangeCounter:
        """Workspace for counting maps beside pairs of vertices, symmetric ones in one order; roots are their a."""

    def prism_counter(self, device: Device, graph: GraphArrays, memory: int) -> RangeCounter:
        """Workspace for counting prisms, each at its largest vertex; roots are vertices."""
        ...

    def five_cycle_counter(self, device: Device, graph: GraphArrays, memory: int) -> RangeCounter:
        """Workspace for counting 5-cycles; roots are vertices, and only the sum over all of them is right."""

    def diamond_counter(self, device: Device, graph: GraphArrays, memory: int) -> RangeCounter:
        """Workspace for counting diamonds: cliques of four vertices less an edge; roots are vertices."""
