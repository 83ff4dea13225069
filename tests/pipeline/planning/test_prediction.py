"""Predictions by sampling: right on average, exact where nothing is left out, honest about how far they may be off."""

import math
import tracemalloc

import naive
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from selection import on_device
from strategies import graphs, queries

from longwall.pipeline.execution.device_graph import load_graph
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.patterns.pattern import make_pattern
from longwall.pipeline.phases.listing import list_matches
from longwall.pipeline.phases.search_count import count_matches
from longwall.pipeline.planning import prediction
from longwall.pipeline.planning.prediction import estimate_levels, predicted_rows
from longwall.pipeline.planning.search.search_plan import MatchPlan
from longwall.pipeline.planning.search.search_planner import plan_match
from longwall.pipeline.planning.stratified_sample import StratifiedSample, positions
from longwall.stages.extension.planned import extend_planned
from longwall.stages.source import edge_source
from longwall.storage.errors import InputError, RunError
from longwall.storage.generators.kinds import generate

relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
MEMORY = 1 << 26
LABELLED = {"num_labels": 3}


def actual_rows(plan: MatchPlan, graph, context) -> list[int]:
    """Rows of every level but the first, by the stages of a run; the count is the last where there is one."""
    engine, program = context.engine, plan.program
    searcher = engine.kernels.searcher(engine.device, graph, program, MEMORY)
    table = edge_source(graph, (program.levels[0], program.levels[1]), 0, graph.num_arcs, engine.xp)
    rows = [len(table)]
    while table.num_levels < program.depth:
        if len(table):
            table, rest, begun = extend_planned(table, searcher, 1 << 22)
            assert rest is None
            assert not begun
            rows.append(len(table))
        else:
            return rows + [0] * (program.depth - 1 + bool(plan.suffix) - len(rows))
    if plan.suffix:
        rows.append(searcher.count_rows(table.columns()) // plan.redundancy if len(table) else 0)
    return rows


@pytest.fixture(scope="session")
def predict(lab, engine_kind):
    """Predict the levels of a plan. Return the estimates and a function for the actual rows."""

    def by_plan(graph, plan, *, memory=MEMORY, **options):
        context = lab.context(graph, engine=engine_kind)
        arrays, _ = load_graph(context)
        estimates = estimate_levels(plan, arrays, context.resources, memory, **options)
        return estimates, lambda: actual_rows(plan, arrays, context)

    return by_plan


@pytest.fixture
def tiny(monkeypatch):
    """Descents so small that they leave out most of a small graph."""
    monkeypatch.setattr(prediction, "_ROWS", (8, 8))
    monkeypatch.setattr(prediction, "_ARCS", (16, 16))
    monkeypatch.setattr(prediction, "_PILOT_ROWS", 4)


def mean_over_seeds(predict, graph, plan, seeds):
    found = [[one.rows for one in predict(graph, plan, effort=0, seed=seed)[0]] for seed in range(seeds)]
    table = np.array(found)
    return table.mean(axis=0), table.std(axis=0, ddof=1) / math.sqrt(seeds)


@settings(relaxed, max_examples=60)
@given(small=graphs(max_vertices=9), query=queries(max_size=5), counting=st.booleans())
def test_a_small_search_is_predicted_exactly(lab, predict, small, query, counting):
    graph = lab.graph(small.edges, small.labels if query.labels is not None else None)
    pattern = make_pattern(query.edges, query.labels)
    plan = plan_match(pattern, graph.stats, induced=query.induced, counting=counting)
    estimates, actual = predict(graph, plan)
    assert all(one.exact and one.low == one.rows == one.high for one in estimates)
    assert [one.rows for one in estimates[1:]] == actual()
    assert estimates[-1].level == query.size - 1
    assert estimates[-1].rows == naive.count_embeddings(small.edges, query, small.labels)
    near = naive.adjacency(small.edges)
    first = plan.order[0]
    assert estimates[0].rows == sum(
        len(others) >= len(pattern.neighbours[first])
        and (query.labels is None or small.labels[v] == query.labels[first])
        for v, others in near.items()
    )


@pytest.mark.quick_cases(1)
@pytest.mark.real_gpu("hundreds of searches take minutes")
@pytest.mark.parametrize("counting", [False, True])
@pytest.mark.parametrize(
    ("pattern", "labels", "induced"),
    [
        ("diamond", None, True),
        ("triangle", None, False),
        ("clique-4", None, False),
        ("diamond", None, False),
        ("path-4", (0, 1, 2, 0), False),
        pytest.param("house", None, False, marks=pytest.mark.long),
        pytest.param("house", (0, 0, 1, 0, 1), True, marks=pytest.mark.long),
    ],
)
def test_estimates_are_right_on_average(predict, tiny, pattern, labels, induced, counting):
    graph = generate("rmat", scale=7, edge_factor=6, seed=3, **LABELLED)
    plan = plan_match(parse_pattern(pattern, labels), graph.stats, induced=induced, counting=counting)
    mean, error = mean_over_seeds(predict, graph, plan, seeds=on_device(60, 60, 14))
    _, actual = predict(graph, plan)
    assert np.all(np.abs(mean[1:] - actual()) <= 4.5 * error[1:] + 1e-6)
    assert np.all(error[1:] < 0.2 * np.maximum(mean[1:], 1) + 1)


@pytest.mark.real_gpu("hundreds of searches take minutes")
def test_a_periodic_graph_is_no_trap(lab, predict, tiny):
    # Every row of this torus looks the same: a sample of every so-maniest row could miss a direction for good.
    side = 16
    torus = [
        (x * side + y, other)
        for x in range(side)
        for y in range(side)
        for other in ((x + 1) % side * side + y, x * side + (y + 1) % side)
    ]
    graph = lab.graph(torus)
    plan = plan_match(parse_pattern("cycle-4"), graph.stats, counting=False)
    mean, error = mean_over_seeds(predict, graph, plan, seeds=on_device(60, 60, 14))
    assert abs(mean[-1] - side * side) <= 4.5 * error[-1]


@pytest.mark.slow
@pytest.mark.real_gpu("hundreds of searches take minutes")
def test_most_intervals_hold_the_truth(predict, monkeypatch):
    monkeypatch.setattr(prediction, "_ROWS", (48, 48))
    monkeypatch.setattr(prediction, "_ARCS", (128, 128))
    graph = generate("rmat", scale=8, edge_factor=8, seed=5)
    held = total = 0
    for name in ("clique-4", "clique-5", "diamond", "cycle-4"):
        plan = plan_match(parse_pattern(name), graph.stats, counting=False)
        truth = predict(graph, plan)[1]()
        for seed in range(on_device(25, 25, 4)):
            estimates, _ = predict(graph, plan, effort=0, seed=seed)
            held += sum(one.low <= rows <= one.high for one, rows in zip(estimates[1:], truth, strict=True))
            total += len(truth)
    assert held >= 0.9 * total


def test_the_same_seed_predicts_the_same_and_another_one_does_not(predict):
    graph = generate("rmat", scale=9, edge_factor=8, seed=1)
    plan = plan_match(parse_pattern("house"), graph.stats, counting=False)
    first, again, other = (predict(graph, plan, effort=1e4, seed=seed)[0] for seed in (7, 7, 8))
    assert first == again
    assert first != other


def test_engines_and_chunks_predict_the_same(predict, monkeypatch):
    graph = generate("rmat", scale=9, edge_factor=8, seed=1)
    plan = plan_match(parse_pattern("diamond"), graph.stats, counting=False)
    before, _ = predict(graph, plan, effort=1e5)
    monkeypatch.setattr(prediction, "_CHUNK_ROWS", 0)
    monkeypatch.setattr(prediction, "_ARCS_AT_ONCE", 100)
    after, _ = predict(graph, plan, effort=1e5)
    assert after[1:] == before[1:]
    assert after[0].rows == pytest.approx(before[0].rows), "a sum of fractions"
    assert [one.level for one in before] == [0, 1, 2, 3]


def test_nothing_is_found_where_nothing_is(predict, tiny):
    tree = generate("erdos-renyi", vertices=400, edges=399, seed=1)
    plan = plan_match(parse_pattern("clique-5"), tree.stats, counting=False)
    exactly, actual = predict(tree, plan)
    assert exactly[-1].rows == actual()[-1] == 0
    assert exactly[-1].exact
    sampled, _ = predict(tree, plan, effort=0)
    assert sampled[-1].rows == sampled[-1].low == 0
    assert sampled[-1].high > 0, "a sample cannot know that there is nothing"


def test_a_label_that_no_vertex_has_is_predicted(predict):
    graph = generate("rmat", scale=7, edge_factor=6, seed=3, **LABELLED)
    plan = plan_match(parse_pattern("triangle", (0, 1, 9)), graph.stats, counting=False)
    for effort in (0, prediction.EFFORT):
        assert predict(graph, plan, effort=effort)[0][-1].rows == 0


def test_bytes_are_those_of_the_table(predict):
    graph = generate("rmat", scale=7, edge_factor=6, seed=3)
    plan = plan_match(parse_pattern("clique-4"), graph.stats, counting=False)
    estimates, _ = predict(graph, plan)
    assert [one.bytes for one in estimates] == [
        round(one.rows) * size for one, size in zip(estimates, (12, 12, 12, 4), strict=True)
    ]
    plan = plan_match(parse_pattern("house"), graph.stats)
    assert [one.bytes > 0 for one in predict(graph, plan)[0]] == [True, True] + [False] * (plan.program.depth - 1)


@pytest.mark.parametrize("name", ["triangle", "diamond", "star-3", "clique-4"])
@pytest.mark.parametrize("counting", [False, True])
def test_predicted_rows_are_those_that_the_stages_report(lab, engine_kind, predict, name, counting):
    graph = generate("rmat", scale=7, edge_factor=6, seed=3)
    plan = plan_match(parse_pattern(name), graph.stats, counting=counting)
    context = lab.context(graph, engine=engine_kind)
    if counting:
        count_matches(plan, context)
    else:
        list_matches(plan, context)
    predicted = predicted_rows(plan, predict(graph, plan)[0])
    assert len(context.metrics.rows()) > 1
    for row in context.metrics.rows():
        assert predicted[row.level] == row.rows_out


@pytest.mark.slow
def test_memory_is_kept(lab):
    graph = generate("rmat", scale=10, edge_factor=8, seed=1)
    plan = plan_match(parse_pattern("house"), graph.stats, counting=False)
    context = lab.context(graph)
    arrays, _ = load_graph(context)
    wide = estimate_levels(plan, arrays, context.resources, 1 << 24)
    for memory in (1 << 18, 1 << 20, 1 << 22, 1 << 24):
        tracemalloc.start()
        estimates = estimate_levels(plan, arrays, context.resources, memory)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak <= memory
        assert estimates[-1].rows == pytest.approx(wide[-1].rows, rel=0.3)


def test_too_little_memory_is_one_message(lab):
    graph = generate("rmat", scale=10, edge_factor=8, seed=1)
    plan = plan_match(parse_pattern("house"), graph.stats, counting=False)
    context = lab.context(graph)
    arrays, _ = load_graph(context)
    with pytest.raises(InputError, match=r"memory\.host leaves .*: raise memory\.host"):
        estimate_levels(plan, arrays, context.resources, 1 << 10)
    with pytest.raises((InputError, RunError), match=r"raise memory\.host"):
        estimate_levels(plan, arrays, context.resources, 1 << 15)


def test_an_interrupted_engine_ends_the_prediction(lab):
    graph = generate("rmat", scale=7, edge_factor=6, seed=3)
    plan = plan_match(parse_pattern("diamond"), graph.stats, counting=False)
    context = lab.context(graph)
    context.engine.interrupt()
    with pytest.raises(RunError, match="interrupted"):
        estimate_levels(plan, load_graph(context)[0], context.resources, MEMORY)


def test_a_number_that_is_too_large_ends_the_prediction_with_its_message(lab, monkeypatch):
    graph = generate("rmat", scale=7, edge_factor=6, seed=3)
    plan = plan_match(parse_pattern("house"), graph.stats, counting=True)
    assert plan.suffix, "the last level is counted"
    context = lab.context(graph)
    arrays, _ = load_graph(context)

    def count_rows(*_):
        raise OverflowError("a number has more than 2291 bits")

    searcher = context.engine.kernels.searcher(context.engine.device, arrays, plan.program, MEMORY)
    monkeypatch.setattr(type(searcher), "count_rows", count_rows)
    with pytest.raises(RunError, match="more than 2291 bits"):
        estimate_levels(plan, arrays, context.resources, MEMORY)


@given(key=st.integers(0, 2**64 - 1), shift=st.integers(0, 12), first=st.integers(0, 2**40))
def test_each_block_keeps_one_of_its_positions(key, shift, first):
    kept = positions(key, shift, first, first + 20, np)
    assert np.array_equal(kept >> shift, np.arange(first, first + 20))
    if shift:
        finer = positions(key, shift - 1, 2 * first, 2 * first + 40, np)
        assert np.isin(kept, finer).all()


def test_each_position_of_a_block_is_as_likely_as_the_others():
    offsets = positions(5, 3, 0, 80_000, np) & 7
    counts = np.bincount(offsets, minlength=8)
    assert np.abs(counts - 10_000).max() < 4.5 * math.sqrt(10_000 * 7 / 8)
    by_key = np.array([positions(key, 3, 0, 2, np) for key in range(8_000)]) & 7
    joint = np.bincount(by_key[:, 0] * 8 + by_key[:, 1], minlength=64)
    assert np.abs(joint - 125).max() < 4.5 * math.sqrt(125)


@given(
    pieces=st.lists(st.integers(0, 50), max_size=12),
    limit=st.integers(1, 40),
    key=st.integers(0, 2**64 - 1),
)
def test_a_thinned_stream_does_not_depend_on_its_pieces(pieces, limit, key):
    total = sum(pieces)
    thinned = StratifiedSample(limit, key, 2, np)
    begin = 0
    for size in pieces:
        wanted = begin + thinned.offer(size).astype(np.uint32)
        thinned.keep(np.stack([wanted, wanted]))
        begin += size
    rows = thinned.rows()[0]
    shift = thinned.weight.bit_length() - 1
    expected = positions(key, shift, 0, -(-total >> shift), np)
    assert rows.tolist() == expected[expected < total].tolist()
    assert thinned.rows().flags.c_contiguous, "kernels are compiled per layout"
    assert thinned.seen == total
    assert len(rows) <= limit + 1
    assert thinned.weight == 1 or total > limit * thinned.weight // 2
