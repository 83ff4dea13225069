"""Make the tables of a table program on an engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache, partial
from itertools import pairwise
from typing import Any

import numpy as np

from longwall.kernels.interface.engine import Call, Engine, WorkspaceTooLarge, call
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
from longwall.storage.memory.reservations import MemoryBudget, Reservation

Array = Any  # a NumPy or a CuPy array

_WHAT = "tables of homomorphisms"
_DEVICE_SHARE = 0.5  # of what is free, that a workspace has on a device, where more blocks work if there is more
_MARK_BYTES = 5  # of a vertex and worker, to find common neighbours
_COPY_BYTES = 16  # of an arc, for the numbers of a table before they are in it
_ROW_STEPS: dict[Make, Domain] = {Make.VERTEX_ROWS: "vertices", Make.ARC_ROWS: "arcs"}
_LOCAL = (
    Make.MULTIPLY_VERTICES,
    Make.MULTIPLY_ARCS,
    Make.SUM_NEIGHBOURS,
    Make.HEADS,
    Make.TAILS,
    Make.REVERSE,
    Make.LABEL,
)  # `fill_tables` makes these, with or without lists of common neighbours
_OF_VERTICES = (Make.MULTIPLY_VERTICES, Make.SUM_NEIGHBOURS, Make.GIVEN, Make.LABEL)
_COPYING = (Make.HEADS, Make.TAILS, Make.REVERSE, Make.ARC_TRIANGLES, Make.INNER, Make.CLIQUES, Make.PATHS)
_RANGES = 32  # of a thread's rows
_MOST_ARCS = (1 << 32) - 1  # whose places are numbers of 32 bits, in lists and of reverse arcs


class TableMemory:
    """The bytes of tables, and of workspaces that make them: each is reserved when it is known how long it is.

    Parameters
    ----------
    budget
        Of the memory that the engine works in.
    on_device
        Whether that is a device.
    """

    def __init__(self, budget: MemoryBudget, *, on_device: bool):
        self._budget, self._share = budget, _DEVICE_SHARE if on_device else 0.0
        self._held = budget.reserve(0, _WHAT)

    def add(self, size: int) -> None:
        """Reserve bytes of a table."""
        self._held.resize(self._held.size + size, _WHAT)

    def lent(self, size: int) -> Reservation:
        """Reserve bytes for a block."""
        return self._budget.reserve(size, _WHAT)

    def lend(self, work: Callable[[int], Any]) -> None:
        """Call a function with the bytes of a workspace, and again with as many as it needs if that is more."""
        size = int(self._share * self._budget.free)
        try:
            with self.lent(size):
                work(size)
        except WorkspaceTooLarge as error:
            with self.lent(error.needed):
                work(error.needed)

    def kept(self) -> Reservation:
        """Hand the bytes of the tables over."""
        return self._held.split(self._held.size)

    def __enter__(self) -> TableMemory:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.release()


def make_tables(
    engine: Engine,
    graph: GraphArrays,
    program: TableProgram,
    modulus: int,
    memory: TableMemory,
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
        Has the bytes of the tables afterwards; what makes them is reserved meanwhile.
    given : sequence of int64[num_vertices] or float64[num_vertices]
        Vertex tables that the program is given.

    Raises
    ------
    BudgetExceeded, WorkspaceTooLarge
        If they do not fit, or the graph has more arcs than lists can name.
    """
    xp, n, arcs = engine.xp, graph.num_vertices, graph.num_arcs
    size = 8 * (program.vertex_tables * n + program.arc_tables * arcs) + (4 * arcs if program.needs_reverse else 0)
    if (program.needs_lists or program.needs_reverse) and arcs > _MOST_ARCS:
        raise WorkspaceTooLarge(size)
    memory.add(size)
    dtype = xp.float64 if modulus == FLOATING else xp.int64
    common_indptr, none = _empty_arrays(xp)
    reverse = engine.kernels.reverse_arcs(engine.device, graph) if program.needs_reverse else none
    common, longest = none, 0
    if program.needs_lists:
        common_indptr, common, longest = common_lists(engine, graph, memory)
    new = xp.zeros if program.rows else xp.empty  # row programs skip arcs without common neighbours: 0 stays
    tables = RowTables(
        modulus,
        new((program.vertex_tables, n), dtype),
        new((program.arc_tables, arcs), dtype),
        reverse,
        common_indptr,
        common,
        longest,
    )
    maker = _Maker(engine, graph, program, tables, memory, given)
    with memory.lent(maker.copy_bytes):
        for together, others in _steps_by_level(program):
            maker.make(together, others)
    return tables


@cache
def _empty_arrays(xp: Any) -> tuple[Array, Array]:
    """Return empty arrays of places and of numbers: one takes 5 us on a device."""
    return xp.empty(0, xp.int64), xp.empty(0, xp.uint32)


@lru_cache(maxsize=256)
def _steps_by_level(program: TableProgram) -> tuple[tuple[tuple[Step, ...], tuple[Step, ...]], ...]:
    """Return the steps of each level: those that `fill_tables` makes together, and the others."""
    local = (*_LOCAL, *((Make.ARC_TRIANGLES,) if program.needs_lists else ()))
    return tuple(
        (tuple(step for step in level if step.make in local), tuple(step for step in level if step.make not in local))
        for level in levels(program)
    )


def table_kernels(program: TableProgram) -> list[Callable[..., Any] | Call]:
    """Return the functions of `Kernels` that `make_tables` calls, with the arguments that determine their sources."""
    makes = {step.make for step in program.steps}
    called: dict[Callable[..., Any], bool] = {
        Kernels.reverse_arcs: program.needs_reverse,
        Kernels.common_neighbours: program.needs_lists,
        Kernels.fill_tables: not makes.isdisjoint(_LOCAL) or (Make.ARC_TRIANGLES in makes and program.needs_lists),
        Kernels.triangles_of_arcs: Make.ARC_TRIANGLES in makes and not program.needs_lists,
        Kernels.inner_counts: Make.INNER in makes,
        Kernels.cliques_of_arcs: Make.CLIQUES in makes,
        Kernels.paths_of_arcs: Make.PATHS in makes,
    }
    rows = [
        call(Kernels.row_counter, program=program.rows[step.sources[0]], domain=_ROW_STEPS[step.make], modulus=WORD)
        for step in program.steps
        if step.make in _ROW_STEPS
    ]
    return [*(function for function, needed in called.items() if needed), *rows]


@lru_cache(maxsize=256)
def levels(program: TableProgram) -> tuple[tuple[Step, ...], ...]:
    """Return the steps by level: steps of a level read only tables of earlier levels, none of each other's.

    A row program may read every table, and is a level of its own.
    """
    found: list[list[Step]] = []
    level_of: dict[tuple[bool, int], int] = {}  # by whether a table is over arcs, and its number
    least = 0
    for step in program.steps:
        if step.make in _ROW_STEPS:
            found.append([step])
            least = len(found)
            continue
        level = max([least, *(level_of.get(table, -1) + 1 for table in _read(step))])
        found += [[] for _ in range(level + 1 - len(found))]
        found[level].append(step)
        level_of[step.make not in _OF_VERTICES, step.target] = level
    return tuple(map(tuple, found))


def _read(step: Step) -> list[tuple[bool, int]]:
    """Return the tables that a step reads: whether each is over arcs, and its number."""
    if step.make == Make.SUM_NEIGHBOURS:
        both = zip((False, True), step.sources, strict=True)
        return [(over_arcs, number) for over_arcs, number in both if number >= 0]
    over_arcs = step.make in (Make.MULTIPLY_ARCS, Make.REVERSE)
    tables = over_arcs or step.make in (Make.MULTIPLY_VERTICES, Make.HEADS, Make.TAILS)
    return [(over_arcs, number) for number in step.sources] if tables else []


def common_lists(engine: Engine, graph: GraphArrays, memory: TableMemory) -> tuple[Array, Array, int]:
    """List the common neighbours of the ends of every arc, as `RowTables` has them; return the longest length, too."""
    arcs = graph.num_arcs
    memory.add(8 * (arcs + 1))
    with memory.lent(4 * arcs + _MARK_BYTES * graph.num_vertices * engine.workers):
        return engine.kernels.common_neighbours(engine.device, graph, memory.add)


@lru_cache(maxsize=256)
def _copies_of(program: TableProgram) -> tuple[bool, bool]:
    """Return whether the steps copy the entries of a table over arcs, and whether they copy labels of vertices."""
    makes = {step.make for step in program.steps}
    return not makes.isdisjoint(_COPYING), Make.LABEL in makes


class _Maker:
    """Makes one level of tables after the other.

    Parameters
    ----------
    engine, graph, program, tables
        As for `make_tables`.
    memory
        Lends workspaces.
    given
        As for `make_tables`.
    """

    def __init__(
        self,
        engine: Engine,
        graph: GraphArrays,
        program: TableProgram,
        tables: RowTables,
        memory: TableMemory,
        given: Sequence[Array],
    ):
        self._engine, self._graph, self._program, self._tables = engine, graph, program, tables
        self._memory, self._given = memory, given

    @property
    def copy_bytes(self) -> int:
        """Return the bytes that the entries of a table may take before they are in it."""
        copies, labels = _copies_of(self._program)
        return _COPY_BYTES * self._graph.num_arcs if copies else self._graph.num_vertices if labels else 0

    def make(self, together: tuple[Step, ...], others: tuple[Step, ...]) -> None:
        """Make the tables of a level: those of `together` by one call of `fill_tables`."""
        if together:
            self._engine.kernels.fill_tables(self._engine.device, self._graph, self._tables, together)
        for step in others:
            self._make(step)

    def _make(self, step: Step) -> None:
        if step.make in _ROW_STEPS:
            program, domain = self._program.rows[step.sources[0]], _ROW_STEPS[step.make]
            self._memory.lend(lambda memory: self._run(program, domain, memory))
        elif step.make == Make.GIVEN:
            self._tables.vertices[step.target] = self._given[step.sources[0]]
        else:
            self._count(step)

    def _count(self, step: Step) -> None:
        """Make a table over arcs by a kernel that counts in 64 bits."""
        xp, tables, modulus = self._engine.xp, self._tables, self._tables.modulus
        own = tables.arcs[step.target]
        found = own if modulus == WORD else xp.empty(own.size, xp.int64)
        kernels, given = self._engine.kernels, (self._engine.device, self._graph)
        if step.make == Make.ARC_TRIANGLES:
            kernels.triangles_of_arcs(*given, found)
        elif step.make == Make.INNER:
            self._memory.lend(partial(kernels.inner_counts, *given, tables, Inner(step.sources[0]), found))
        else:
            count = kernels.cliques_of_arcs if step.make == Make.CLIQUES else kernels.paths_of_arcs
            self._memory.lend(partial(count, *given, found))
        if modulus > WORD:
            found %= modulus
        if found is not own:
            own[:] = found

    def _run(self, program: RowProgram, domain: Domain, memory: int) -> None:
        """Run a row program that stores tables over all rows, on all workers."""
        engine, graph = self._engine, self._graph
        pieces = engine.workers * _RANGES if engine.workers > 1 else 1
        ranges = list(row_ranges(graph, domain, pieces, engine.xp))
        share = memory // engine.workers

        def work() -> None:
            with engine.faults():
                try:
                    counter = engine.kernels.row_counter(engine.device, graph, self._tables, program, domain, share)
                except WorkspaceTooLarge as error:  # before any range is taken: all workers need as much
                    raise WorkspaceTooLarge(error.needed * engine.workers) from None
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
