"""Search programs: every legal way to compile a pattern finds the same embeddings.

A pattern has one plan but many legal ones: any connected order, any suffix, either direction, with or without
symmetry breaking. All are compiled and run here, on the same kernels that run the plans.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations

import naive
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from selection import on_device
from strategies import SmallGraph, graphs, queries

from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.search import Searcher
from longwall.kernels.interface.search_program import SearchProgram
from longwall.pipeline.execution.device_graph import load_graph
from longwall.pipeline.patterns.pattern import Pattern, make_pattern
from longwall.pipeline.patterns.symmetry import automorphism_count, restrictions
from longwall.pipeline.planning.search.search_compiler import compile_program
from longwall.stages.counting import count_planned
from longwall.stages.extension.planned import extend_planned
from longwall.stages.source import edge_source
from longwall.storage.tables.embedding_table import EmbeddingTable

relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@dataclass(frozen=True)
class Compilation:
    """One way to compile a pattern, and how often it finds each embedding."""

    order: tuple[int, ...]
    suffix: int
    descending: bool
    pairs: tuple[tuple[int, int], ...]
    redundancy: int
    program: SearchProgram


def connected_orders(pattern: Pattern) -> Iterator[tuple[int, ...]]:
    for order in permutations(range(pattern.num_vertices)):
        if all(pattern.neighbours[v].intersection(order[:i]) for i, v in enumerate(order) if i):
            yield order


def legal_suffixes(pattern: Pattern, order: Sequence[int], *, induced: bool) -> Iterator[int]:
    """At least one edge is enumerated; two or more counted vertices are pairwise apart, and not induced."""
    k = pattern.num_vertices
    yield 0
    if k > 2:
        yield 1
    for length in range(2, k - 1):
        last = set(order[k - length :])
        if not induced and not any(pattern.neighbours[v] & last for v in last):
            yield length


def compilations(pattern: Pattern, order: tuple[int, ...], *, induced: bool) -> Iterator[Compilation]:
    everything = automorphism_count(pattern)
    for suffix in legal_suffixes(pattern, order, induced=induced):
        broken = [restrictions(pattern, order, suffix if suffix > 1 else 0), ([], everything)]
        if suffix == 1:
            broken.append(restrictions(pattern, order, 1))
        if suffix < 2:
            # Restrictions made for another order bound vertices by later ones as well as by earlier ones.
            broken.append(restrictions(pattern, range(pattern.num_vertices)))
        for pairs, redundancy in broken:
            for descending in (True, False):
                program = compile_program(pattern, order, pairs, induced=induced, suffix=suffix, descending=descending)
                yield Compilation(order, suffix, descending, tuple(pairs), redundancy, program)


def source(graph: GraphArrays, program: SearchProgram, xp, first: int = 0, last: int | None = None):
    return edge_source(
        graph, (program.levels[0], program.levels[1]), first, graph.num_arcs if last is None else last, xp
    )


def extend_all(table: EmbeddingTable, searcher: Searcher, depth: int, capacity: int) -> list[EmbeddingTable]:
    """Every table of all levels that depth-first extension with so little room leads to."""
    stack, whole = [(table, 0)], []
    while stack:
        chunk, first = stack.pop()
        if chunk.num_levels == depth:
            whole.append(chunk)
        elif len(chunk):
            extended, rest, begun = extend_planned(chunk, searcher, capacity, first=first)
            assert len(extended) <= capacity
            if rest is not None:
                assert begun > first if begun else 0 < len(rest) < len(chunk), "no progress"
                stack.append((rest, begun))
            stack.append((extended, 0))
    return whole


def host(array) -> np.ndarray:
    return array if isinstance(array, np.ndarray) else array.get()


@pytest.fixture(scope="session")
def loaded(lab, engine_kind):
    """Bring a small graph to the engine: context, arrays."""

    def load(small: SmallGraph, labelled: bool, threads: int = 1):
        context = lab.context(
            lab.graph(small.edges, small.labels if labelled else None), engine=engine_kind, threads=threads
        )
        return context, load_graph(context)[0]

    return load


@settings(relaxed, max_examples=on_device(60, 2, 2))
@given(small=graphs(max_vertices=8), query=queries(max_size=4))
def test_every_compilation_of_a_small_pattern_counts_the_same(loaded, small, query):
    want = naive.count_mappings(small.edges, query, small.labels)
    pattern = make_pattern(query.edges, query.labels)
    context, graph = loaded(small, query.labels is not None)
    mappings_each = automorphism_count(pattern)
    for order in connected_orders(pattern):
        for one in compilations(pattern, order, induced=query.induced):
            searcher = context.engine.kernels.searcher(context.engine.device, graph, one.program, 1 << 24)
            table = source(graph, one.program, context.engine.xp)
            found = count_planned(table, searcher)
            assert found * mappings_each == want * one.redundancy, one
            assert searcher.count_edges(0, graph.num_arcs) == (found, len(table))


@settings(relaxed, max_examples=on_device(100, 12))
@given(small=graphs(max_vertices=12), query=queries(min_size=3, max_size=5), choice=st.data())
def test_ranges_of_arcs_count_what_their_edges_lead_to(loaded, small, query, choice):
    pattern = make_pattern(query.edges, query.labels)
    context, graph = loaded(small, query.labels is not None)
    order = choice.draw(st.sampled_from(list(connected_orders(pattern))))
    one = choice.draw(st.sampled_from(list(compilations(pattern, order, induced=query.induced))))
    searcher = context.engine.kernels.searcher(context.engine.device, graph, one.program, 1 << 24)
    cut = choice.draw(st.integers(0, graph.num_arcs))
    for first, last in ((0, cut), (cut, graph.num_arcs)):
        if first < last:
            table = source(graph, one.program, context.engine.xp, first, last)
            assert searcher.count_edges(first, last) == (count_planned(table, searcher), len(table))


@settings(relaxed, max_examples=on_device(150, 15, 15))
@given(small=graphs(max_vertices=9), query=queries(min_size=5, max_size=6), choice=st.data())
def test_any_order_of_a_larger_pattern_counts_the_same(loaded, small, query, choice):
    want = naive.igraph_count_mappings(small.edges, query, small.labels)
    pattern = make_pattern(query.edges, query.labels)
    context, graph = loaded(small, query.labels is not None)
    mappings_each = automorphism_count(pattern)
    order = choice.draw(st.sampled_from(list(connected_orders(pattern))))
    for one in compilations(pattern, order, induced=query.induced):
        searcher = context.engine.kernels.searcher(context.engine.device, graph, one.program, 1 << 24)
        found = count_planned(source(graph, one.program, context.engine.xp), searcher)
        assert found * mappings_each == want * one.redundancy, one


@settings(relaxed, max_examples=on_device(80, 8))
@given(small=graphs(max_vertices=8), query=queries(max_size=5), choice=st.data())
def test_any_order_lists_every_embedding_once_with_little_room(loaded, small, query, choice):
    want = naive.embeddings(small.edges, query, small.labels)
    pattern = make_pattern(query.edges, query.labels)
    context, graph = loaded(small, query.labels is not None)
    order = choice.draw(st.sampled_from(list(connected_orders(pattern))))
    pairs, redundancy = restrictions(pattern, order)
    assert redundancy == 1
    # Room for one vertex, for one set, and for several sets, of which the last ones do not fit.
    capacity = choice.draw(st.integers(1, 4 * graph.max_degree + 5))
    for descending in (True, False):
        program = compile_program(pattern, order, pairs, induced=query.induced, suffix=0, descending=descending)
        searcher = context.engine.kernels.searcher(context.engine.device, graph, program, 1 << 24)
        tables = extend_all(source(graph, program, context.engine.xp), searcher, query.size, capacity)
        rows = [row for table in tables for row in host(table.columns()).T.tolist()]
        images = []
        for row in rows:
            image = [0] * query.size
            for level, vertex in enumerate(order):
                image[vertex] = int(context.graph.original_ids[row[level]])
            images.append(image)
        found = [naive.edge_set(image, query) for image in images]
        assert len(found) == len(set(found)), "an embedding came twice"
        assert set(found) == want


@settings(relaxed, max_examples=on_device(80, 8))
@given(small=graphs(max_vertices=9), query=queries(min_size=3, max_size=4), choice=st.data())
def test_a_row_is_extended_alike_however_often_it_comes(loaded, small, query, choice):
    pattern = make_pattern(query.edges, query.labels)
    context, graph = loaded(small, query.labels is not None)
    xp = context.engine.xp
    order = choice.draw(st.sampled_from(list(connected_orders(pattern))))
    pairs, _ = restrictions(pattern, order)
    descending = choice.draw(st.booleans())
    program = compile_program(pattern, order, pairs, induced=query.induced, suffix=0, descending=descending)
    searcher = context.engine.kernels.searcher(context.engine.device, graph, program, 1 << 24)
    rows = host(source(graph, program, xp).columns())
    room = rows.shape[1] * graph.max_degree * 2 + graph.max_degree + 2
    if not rows.size:
        return
    once = searcher.extend_rows(xp.asarray(rows), room)
    twice = searcher.extend_rows(xp.asarray(np.repeat(rows, 2, axis=1)), room)
    counts = host(once.counts)
    np.testing.assert_array_equal(host(twice.counts), np.repeat(counts, 2))
    lists = np.split(host(once.values), np.cumsum(counts)[:-1])
    np.testing.assert_array_equal(host(twice.values), np.concatenate([np.tile(values, 2) for values in lists]))


@settings(relaxed, max_examples=on_device(80, 8))
@given(small=graphs(max_vertices=9), query=queries(min_size=3, max_size=5), choice=st.data())
def test_counts_add_up_however_the_roots_and_rows_are_cut(loaded, small, query, choice):
    pattern = make_pattern(query.edges, query.labels)
    context, graph = loaded(small, query.labels is not None)
    order = choice.draw(st.sampled_from(list(connected_orders(pattern))))
    suffix = choice.draw(st.sampled_from(list(legal_suffixes(pattern, order, induced=query.induced))))
    pairs, _ = restrictions(pattern, order, suffix if suffix > 1 else 0)
    program = compile_program(
        pattern, order, pairs, induced=query.induced, suffix=suffix, descending=choice.draw(st.booleans())
    )
    engine, depth = context.engine, program.depth
    searcher = engine.kernels.searcher(
        engine.device, graph, program, 1 << 24
    )  # one workspace for all pieces: nothing may be left in it
    whole = count_planned(source(graph, program, engine.xp), searcher)
    cuts = sorted({0, graph.num_arcs, *choice.draw(st.lists(st.integers(0, graph.num_arcs), max_size=4))})
    total = 0
    for first, last in pairwise(cuts):
        table = source(graph, program, engine.xp, first, last)
        middle = choice.draw(st.integers(0, len(table)))
        total += count_planned(table.sliced(0, middle), searcher)
        # The second part goes down one level as a table before it is counted.
        tables = extend_all(table.sliced(middle, len(table)), searcher, min(3, depth), graph.max_degree + 1)
        total += sum(count_planned(part, searcher) for part in tables)
    assert total == whole


def test_a_workspace_that_is_too_large_is_refused(loaded):
    from longwall.kernels.interface.engine import WorkspaceTooLarge

    context, graph = loaded(SmallGraph(tuple((0, i) for i in range(1, 50)), {}), False)
    pattern = make_pattern([(0, 1), (1, 2), (0, 2)])  # its last set has to be stored
    program = compile_program(pattern, (1, 0, 2), [], induced=False, suffix=0, descending=True)
    with pytest.raises(WorkspaceTooLarge) as refusal:
        context.engine.kernels.searcher(context.engine.device, graph, program, 1)
    assert refusal.value.needed > 1
