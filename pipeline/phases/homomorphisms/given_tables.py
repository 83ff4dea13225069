"""Tables over the vertices of the whole graph, for sums of them and for programs in a core of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from longwall.kernels.interface.engine import ShortOfMemory, WorkspaceTooLarge
from longwall.kernels.interface.homomorphism_program import FLOATING, WORD, RowTables, TableProgram
from longwall.pipeline.execution.device_graph import load_graph
from longwall.pipeline.execution.engine_errors import no_room
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.phases.cores.in_core import core_of
from longwall.stages.homomorphisms.rows import Totals
from longwall.stages.homomorphisms.tables import TableMemory, make_tables
from longwall.storage.memory.reservations import BudgetExceeded

Array = Any  # a NumPy or a CuPy array


@dataclass(frozen=True)
class GivenTables:
    """What a program in a core is given: its vertices' entries of tables over all vertices.

    Attributes
    ----------
    program
        Makes the tables.
    numbers
        Those that are given.
    """

    program: TableProgram
    numbers: tuple[int, ...]


@contextmanager
def vertex_tables(env: Environment, program: TableProgram, modulus: int) -> Iterator[RowTables]:
    """Have the tables of a program that has tables over vertices only.

    Raises
    ------
    NotEnoughMemory
        If there is no room for them.
    """
    graph, _ = load_graph(env)
    try:
        with TableMemory(env.resources.work, on_device=env.resources.on_device) as memory, env.engine.faults():
            yield make_tables(env.engine, graph, program, modulus, memory)
    except (BudgetExceeded, WorkspaceTooLarge, ShortOfMemory) as error:
        raise no_room(error, env.resources.work) from error


@contextmanager
def given_rows(env: Environment, given: GivenTables, modulus: int) -> Iterator[list[Array]]:
    """Have the rows of the core's vertices in given tables; parameters as of `vertex_tables`."""
    xp = env.engine.xp
    whole, core = core_of(env)
    size = 8 * core.graph.num_vertices * (len(given.numbers) + 1)
    load_graph(whole)  # before the rows are reserved
    try:
        reserved = env.resources.work.reserve(size, "tables of homomorphisms")
    except BudgetExceeded as error:
        raise no_room(error, env.resources.work) from error
    with reserved:
        with vertex_tables(whole, given.program, modulus) as tables:
            vertices = xp.asarray(core.vertices.astype("int64"))
            found = [tables.vertices[number][vertices] for number in given.numbers]
        yield found


def summed_tables(env: Environment, program: TableProgram, numbers: tuple[int, ...], modulus: int) -> Totals:
    """Return the sums of vertex tables, as row programs return theirs; parameters as of `vertex_tables`."""
    counts: list[int] = []
    magnitudes: list[float] = []
    with vertex_tables(env, program, modulus) as tables:
        for number in numbers:
            table = tables.vertices[number]
            magnitudes.append(float(table.sum(dtype=env.engine.xp.float64)))
            total = 0 if modulus == FLOATING else int(table.sum())
            counts.append(total % (modulus if modulus > WORD else 2**64))
    return counts, magnitudes
