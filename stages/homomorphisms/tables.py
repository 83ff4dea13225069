"""Make the tables of a table program on an engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np

from longwall.kernels.interface.engine import Engine, WorkspaceTooLarge
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.homomorphism_program import (
    FLOATING,
    WORD,
    Domain,
    Inner,
    Make,
    RowProgram,
    RowTables,
    Step,
    TableProgram,
)
from longwall.kernels.interface.kernels import Kernels

Array = Any  # a NumPy or a CuPy array

_RANGES = 32  # of a thread's rows
_MOST_ARCS = (1 << 32) - 1  # whose places are numbers of 32 bits, in lists and of reverse arcs


def make_tables(
    engine: Engine,
    graph: GraphArrays,
    program: TableProgram,
    modulus: int,
    memory: int,
    given: Sequence[Array] = (),
) -> RowTables:
    """Make the tables of a program, and list what its rows need.

    Parameters
    ----------
    engine
        The engine; all of its workers take part.
    graph
        The graph, on the engine.
    program
        The program.
    modulus
        See `RowTables`.
    memory
        The most bytes that the tables, and what makes them, may take.
    given : sequence of int64[num_vertices] or float64[num_vertices]
        Vertex tables that the program is given.

    Raises
    ------
    WorkspaceTooLarge
        If they do not fit, or the graph has more arcs than lists can name.
    """
    xp, n, arcs = engine.xp, graph.num_vertices, graph.num_arcs
    size = 8 * (program.vertex_tables * n + program.arc_tables * arcs) + (4 * arcs if program.needs_reverse else 0)
    temporary = 16 * arcs if program.arc_tables else 8 * n
    lists = program.needs_lists or program.needs_reverse
    if size + temporary > memory or (lists and arcs > _MOST_ARCS):
        raise WorkspaceTooLarge(size + temporary)
    dtype = xp.float64 if modulus == FLOATING else xp.int64
    none = xp.empty(0, xp.uint32)
    reverse = engine.kernels.reverse_arcs(engine.device, graph) if program.needs_reverse else none
    common_indptr, common, longest = xp.zeros(1, xp.int64), none, 0
    if program.needs_lists:
        common_indptr, common, longest = engine.kernels.common_neighbours(
            engine.device, graph, memory - size - temporary
        )
        size += int(common_indptr.nbytes + common.nbytes)
    tables = RowTables(
        modulus,
        xp.zeros((program.vertex_tables, n), dtype),
        xp.zeros((program.arc_tables, arcs), dtype),
        reverse,
        common_indptr,
        common,
        longest,
    )
    maker = _Maker(engine, graph, program, tables, memory - size, given)
    for step in program.steps:
        maker.make(step)
    return tables


def table_kernels(program: TableProgram) -> list[Callable[..., Any]]:
    """Return the functions of `Kernels` that `make_tables` calls."""
    makes = {step.make for step in program.steps}
    called: dict[Callable[..., Any], bool] = {
        Kernels.reverse_arcs: program.needs_reverse,
        Kernels.common_neighbours: program.needs_lists,
        Kernels.sum_neighbours: Make.SUM_NEIGHBOURS in makes,
        Kernels.row_counter: not makes.isdisjoint({Make.VERTEX_ROWS, Make.ARC_ROWS}),
        Kernels.arc_triangles: Make.TRIANGLES in makes and not program.needs_lists,
        Kernels.inner_counts: Make.INNER in makes,
        Kernels.cliques_of_arcs: Make.CLIQUES in makes,
        Kernels.paths_of_arcs: Make.PATHS in makes,
    }
    return [function for function, needed in called.items() if needed]


class _Maker:
    """Makes one table after the other.

    Parameters
    ----------
    engine, graph, program, tables
        As for `make_tables`.
    memory
        What is left for workspaces.
    given
        As for `make_tables`.
    """

    def __init__(
        self,
        engine: Engine,
        graph: GraphArrays,
        program: TableProgram,
        tables: RowTables,
        memory: int,
        given: Sequence[Array],
    ):
        self._engine, self._graph, self._program, self._tables = engine, graph, program, tables
        self._memory, self._given = memory, given

    def make(self, step: Step) -> None:
        """Make the table of a step, or tables by the row program of one."""
        vertices, arcs = self._tables.vertices, self._tables.arcs
        if step.make == Make.MULTIPLY_VERTICES:
            self._multiply(vertices, step)
        elif step.make == Make.MULTIPLY_ARCS:
            self._multiply(arcs, step)
        elif step.make == Make.GIVEN:
            vertices[step.target] = self._given[step.sources[0]]
        elif step.make == Make.LABEL:
            vertices[step.target] = self._graph.labels == step.sources[0]
        elif step.make == Make.SUM_NEIGHBOURS:
            vertex, arc = step.sources
            self._engine.kernels.sum_neighbours(
                self._engine.device,
                self._graph,
                None if vertex < 0 else vertices[vertex],
                None if arc < 0 else arcs[arc],
                max(self._tables.modulus, 0),
                vertices[step.target],
            )
        elif step.make in (Make.VERTEX_ROWS, Make.ARC_ROWS):
            domain: Domain = "vertices" if step.make == Make.VERTEX_ROWS else "arcs"
            self._run(self._program.rows[step.sources[0]], domain)
        else:
            arcs[step.target] = self._of_arcs(step)

    def _multiply(self, tables: Array, step: Step) -> None:
        target, modulus = tables[step.target], self._tables.modulus
        if len(step.sources) < 2:
            target[:] = tables[step.sources[0]] if step.sources else 1
            return
        first, *others = (tables[source] for source in step.sources)
        for other in others:
            self._engine.xp.multiply(first, other, out=target)
            first = target
            if modulus > WORD:
                target %= modulus

    def _of_arcs(self, step: Step) -> Array:
        xp, graph, tables = self._engine.xp, self._graph, self._tables
        if step.make == Make.HEADS:
            return tables.vertices[step.sources[0]][graph.indices]
        if step.make == Make.TAILS:
            return self._tails(tables.vertices[step.sources[0]])
        if step.make == Make.REVERSE:
            return tables.arcs[step.sources[0]][tables.reverse]
        if step.make == Make.TRIANGLES:
            if self._program.needs_lists:
                return xp.diff(tables.common_indptr)
            triangles, _ = self._engine.kernels.arc_triangles(self._engine.device, graph)
            return triangles
        found = xp.zeros(graph.num_arcs, xp.int64)
        kernels, device = self._engine.kernels, self._engine.device
        if step.make == Make.INNER:
            kernels.inner_counts(device, graph, tables, Inner(step.sources[0]), found, self._memory)
        else:
            count = kernels.cliques_of_arcs if step.make == Make.CLIQUES else kernels.paths_of_arcs
            count(device, graph, found, self._memory)
        if tables.modulus > WORD:
            found %= tables.modulus
        return found

    def _tails(self, table: Array) -> Array:
        """Return the number of every arc's first vertex."""
        xp = self._engine.xp
        places = xp.arange(self._graph.num_arcs, dtype=xp.int64)
        return table[xp.searchsorted(self._graph.indptr, places, side="right") - 1]

    def _run(self, program: RowProgram, domain: Domain) -> None:
        """Run a row program that stores tables over all rows, on all workers."""
        engine, graph = self._engine, self._graph
        pieces = engine.workers * _RANGES if engine.workers > 1 else 1
        ranges = list(row_ranges(graph, domain, pieces, engine.xp))
        memory = self._memory // engine.workers

        def work() -> None:
            with engine.faults():
                counter = engine.kernels.row_counter(engine.device, graph, self._tables, program, domain, memory)
                while ranges:
                    try:
                        first, last = ranges.pop()
                    except IndexError:  # another thread has taken the last one
                        return
                    counter.add(first, last)

        if engine.workers == 1:
            work()
            return
        with ThreadPoolExecutor(engine.workers) as pool:
            _wait([pool.submit(work) for _ in range(engine.workers)])


def _wait(started: list[Any]) -> None:
    for one in started:
        one.result()


def row_ranges(graph: GraphArrays, domain: Domain, pieces: int, xp: Any) -> Iterator[tuple[int, int]]:
    """Cut rows into ranges of about as many arcs."""
    shares = np.linspace(0, graph.num_arcs, pieces + 1).astype(np.int64)
    if domain == "vertices":
        shares = np.unique([0, *xp.searchsorted(graph.indptr, xp.asarray(shares[1:-1])).tolist(), graph.num_vertices])
    return pairwise(np.unique(shares).tolist())
