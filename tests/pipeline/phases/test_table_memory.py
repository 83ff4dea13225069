"""Tables of homomorphisms reserve the bytes that they take, so that others have the rest of the budget."""

from __future__ import annotations

from typing import Any

import pytest

from longwall.kernels.interface.homomorphism_program import WORD, TableProgram
from longwall.pipeline.execution.derived import derived
from longwall.pipeline.execution.device_graph import load_graph
from longwall.pipeline.execution.phase import NotEnoughMemory
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.phases.homomorphisms.count import Tables
from longwall.pipeline.phases.homomorphisms.given_tables import vertex_tables
from longwall.pipeline.planning.homomorphisms.pattern_core import pass_costs
from longwall.pipeline.planning.homomorphisms.sums import plan_homomorphisms
from longwall.storage.generators.kinds import generate
from longwall.storage.graph.graph import Graph

LISTS, ARCS, VERTICES = "0-1,0-2,1-2,1-3,2-3,3-4", "0-1,0-2,1-2,2-3,3-4,4-5", "0-1,1-2,2-3,3-4"


def program_of(pattern: str, graph: Graph) -> TableProgram:
    sums = plan_homomorphisms((parse_pattern(pattern),), pass_costs(graph.stats))
    assert sums is not None
    return sums.program


@pytest.fixture
def graph() -> Graph:
    return generate("rmat", seed=1, scale=8, edge_factor=8)


@pytest.mark.parametrize("pattern", [LISTS, ARCS, VERTICES])
def test_tables_take_of_the_budget_their_length(lab: Any, engine_kind: str, pattern: str, graph: Graph) -> None:
    env = lab.context(graph, engine=engine_kind, threads=1 if engine_kind == "cuda" else 2)
    load_graph(env)
    program, budget = program_of(pattern, graph), env.resources.work
    before = budget.used
    with budget.watched() as most:
        tables = derived(env, Tables(program, WORD, None)).value.tables
        taken = most()
    assert tables.nbytes > 8
    assert budget.used - before == tables.nbytes
    assert budget.used - before <= taken
    assert taken < (1 << 22 if engine_kind == "cpu" else budget.limit)
    env.close()
    assert budget.used == before


def test_tables_are_made_while_others_are_there(lab: Any, engine_kind: str, graph: Graph) -> None:
    small = 1 << 20
    env = lab.context(
        graph, engine=engine_kind, host=graph.nbytes + small, device=None if engine_kind == "cpu" else small
    )
    with vertex_tables(env, program_of(VERTICES, graph), WORD) as others:
        tables = Tables(program_of(LISTS, graph), WORD, None).build(env)
        assert tables.value.tables.nbytes > others.nbytes > 0
        tables.close()


def test_tables_without_room_are_refused(lab: Any, engine_kind: str, graph: Graph) -> None:
    small = 1 << 14
    env = lab.context(
        graph, engine=engine_kind, host=graph.nbytes + small, device=None if engine_kind == "cpu" else 1 << 18
    )
    load_graph(env)
    before = env.resources.work.used
    with pytest.raises(NotEnoughMemory, match=r"memory\."):
        derived(env, Tables(program_of(LISTS, graph), WORD, None))
    assert env.resources.work.used == before
