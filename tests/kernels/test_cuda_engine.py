"""The CUDA engine returns exactly what the CPU engine returns; its sources compile, with or without a device."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from budgets import table_memory
from engines import make_engine
from selection import on_device

from longwall.kernels.cpu.engine import CpuEngine
from longwall.kernels.cuda.device import fetch, send
from longwall.kernels.cuda.frequent.pattern_growth import growth_header
from longwall.kernels.cuda.homomorphisms.pairs import pair_header
from longwall.kernels.cuda.homomorphisms.rows import row_header
from longwall.kernels.cuda.homomorphisms.tables import table_header
from longwall.kernels.cuda.kcliques.bitmaps import clique_header
from longwall.kernels.cuda.kcliques.leaves import leaf_header
from longwall.kernels.cuda.local_counts.motifs import motif_header
from longwall.kernels.cuda.local_counts.orbits import orbit_header
from longwall.kernels.cuda.maximal_cliques.finders import COUNT, LIST, VERTICES, clique_finder_header
from longwall.kernels.cuda.runtime.compile import forget, source_text
from longwall.kernels.cuda.search import search as cuda_search
from longwall.kernels.cuda.search.search_header import Variant, program_header
from longwall.kernels.cuda.sorting.sorters import TILE, sort_header
from longwall.kernels.exact_numbers import PRIMES
from longwall.kernels.interface.engine import EngineUnavailable, WorkspaceTooLarge
from longwall.kernels.interface.frontier import row_lists
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.homomorphism_program import FLOATING, WORD, CodegreePattern
from longwall.kernels.interface.search_program import emitted_set, to_extend
from longwall.kernels.interface.sorting import KeyLayout
from longwall.kernels.jit.compile_clock import COMPILING
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.patterns.pattern import ANY_LABEL, Pattern
from longwall.pipeline.phases.by_label.label_sums import plan_label_sums
from longwall.pipeline.planning.homomorphisms.pattern_core import PassCosts
from longwall.pipeline.planning.homomorphisms.sums import plan_homomorphisms
from longwall.pipeline.planning.search.search_plan import MatchPlan
from longwall.pipeline.planning.search.search_planner import plan_match
from longwall.stages.homomorphisms.tables import make_tables
from longwall.stages.source import edge_source
from longwall.storage.generators.kinds import generate
from longwall.storage.graph.graph import Graph
from longwall.storage.ingest.build import build_graph

PLENTY = 1 << 30
NAMES = [
    "edge",
    "triangle",
    "diamond",
    "cycle-4",
    "tailed-triangle",
    "path-4",
    "star-3",
    "clique-4",
    "house",
    "cycle-5",
]
NAMES += ["bowtie", "wheel-5", "quasi-clique-5", "star-4"]
LABELS = (0, 1, 1, 0, 1)


def arrays(graph: Graph) -> GraphArrays:
    labels = graph.labels if graph.labels is not None else np.zeros(1, np.int32)
    return GraphArrays(
        graph.indptr, graph.indices, graph.split, labels, graph.stats.max_degree, graph.stats.max_out_degree
    )


@pytest.fixture(scope="module")
def cpu() -> CpuEngine:
    return CpuEngine(1)


@pytest.fixture(
    scope="module",
    params=[
        {"kind": "erdos-renyi", "seed": 5, "vertices": on_device(90, 36), "edges": on_device(900, 180)},
        {"kind": "rmat", "seed": 6, "scale": on_device(9, 6), "edge_factor": on_device(8, 4)},
        {"kind": "rmat", "seed": 7, "scale": on_device(9, 6), "edge_factor": on_device(8, 4), "num_labels": 2},
    ],
    ids=["erdos-renyi", "rmat", "labelled"],
)
def graph(request: pytest.FixtureRequest) -> Graph:
    return generate(**request.param)


def plan(name: str, graph: Graph, *, induced: bool, counting: bool) -> MatchPlan:
    pattern = parse_pattern(name)
    if graph.has_labels:
        pattern = parse_pattern(name, LABELS[: pattern.num_vertices])
    return plan_match(pattern, graph.stats, induced=induced, counting=counting)


def edges(found: MatchPlan, graph: GraphArrays) -> Any:
    levels = (found.program.levels[0], found.program.levels[1])
    return edge_source(graph, levels, 0, graph.num_arcs, np).columns()


@pytest.mark.gpu
@pytest.mark.parametrize("induced", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_count_rows(
    cuda: Any, cpu: CpuEngine, graph: Graph, name: str, induced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, device = arrays(graph), cuda.load(arrays(graph))
    found = plan(name, graph, induced=induced, counting=True)
    rows = edges(found, host)
    expected = cpu.kernels.searcher(cpu.device, host, found.program, PLENTY).count_rows(rows)
    on_device = cuda.xp.asarray(rows)
    assert cuda.kernels.searcher(cuda.device, device, found.program, PLENTY).count_rows(on_device) == expected
    least = cuda_search.RING_BYTES + len(found.program.sets) * 4 * host.max_degree
    one_warp = cuda.kernels.searcher(cuda.device, device, found.program, least)
    assert one_warp.count_rows(on_device[:, : rows.shape[1] // 8]) == cpu.kernels.searcher(
        cpu.device, host, found.program, PLENTY
    ).count_rows(rows[:, : rows.shape[1] // 8])
    # Work is handed over at every chance.
    monkeypatch.setattr(cuda_search, "PATIENCE", 0)
    searcher = cuda.kernels.searcher(cuda.device, device, found.program, PLENTY)
    assert [searcher.count_rows(on_device) for _ in range(3)] == [expected] * 3


@pytest.mark.gpu
@pytest.mark.parametrize("induced", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_extend_rows(cuda: Any, cpu: CpuEngine, graph: Graph, name: str, induced: bool) -> None:
    host, device = arrays(graph), cuda.load(arrays(graph))
    found = plan(name, graph, induced=induced, counting=False)
    rows = edges(found, host)
    theirs, ours = (
        cpu.kernels.searcher(cpu.device, host, found.program, PLENTY),
        cuda.kernels.searcher(cuda.device, device, found.program, PLENTY),
    )
    for capacity, few in ((9, 40), (host.max_degree + 1, 10**6), (10**6, 10**6)):
        level = rows[:, :few]
        while level.shape[0] < found.program.depth and level.shape[1]:
            counts, values = drain(theirs, level, capacity)
            got_counts, got_values = drain(ours, cuda.xp.asarray(level), capacity)
            np.testing.assert_array_equal(got_counts, counts)
            np.testing.assert_array_equal(got_values, values)
            assert got_values.dtype == np.uint32
            level = np.vstack([np.repeat(level, counts, axis=1), values[None]])[:, : min(few, 3000)].astype(np.uint32)


def drain(searcher: Any, rows: Any, capacity: int) -> tuple[Any, Any]:
    """Extend all rows, as often as it takes. Return counts and values on the host."""
    counts = np.full(rows.shape[1], -1)
    values: list[Any] = [None] * rows.shape[1]
    waiting, first = np.arange(rows.shape[1]), 0
    while waiting.size:
        part = searcher.extend_rows(rows[:, waiting], capacity, first)
        found = to_host(part.counts)
        assert len(found) == len(waiting)
        assert len(part.values) == found[found > 0].sum() <= capacity
        done = np.flatnonzero(found >= 0)
        assert done.size
        for row, own in zip(waiting[done], np.split(to_host(part.values), np.cumsum(found[done])[:-1]), strict=True):
            goes_on = first and row == waiting[0]
            values[row] = np.concatenate([values[row], own]) if goes_on else own
            counts[row] = len(values[row])
        assert part.begun == 0 or (part.begun > first and done.tolist() == [0])
        waiting = waiting if part.begun else waiting[found < 0]
        first = part.begun
    return counts, np.concatenate([np.empty(0, np.uint32), *values])


def to_host(array: Any) -> Any:
    return array if isinstance(array, np.ndarray) else array.get()


def cuts(end: int) -> list[tuple[int, int]]:
    return [(0, end), (end // 3, end // 2 + 5), (7, 8)]


@pytest.mark.gpu
@pytest.mark.parametrize("k", [3, 4, 5, 6, 7, 8])
def test_cliques(cuda: Any, cpu: CpuEngine, graph: Graph, k: int) -> None:
    host, device = arrays(graph), cuda.load(arrays(graph))
    theirs, ours = (
        cpu.kernels.clique_counter(cpu.device, host, k, PLENTY),
        cuda.kernels.clique_counter(cuda.device, device, k, PLENTY),
    )
    for first, last in cuts(host.num_arcs):
        assert ours.count(first, last) == theirs.count(first, last)


@pytest.mark.gpu
@pytest.mark.parametrize(("vertices", "num_edges", "sizes"), [(700, 220_000, (3,)), (260, 22_000, (4, 5, 6))])
def test_cliques_of_dense_graphs(
    cuda: Any, cpu: CpuEngine, vertices: int, num_edges: int, sizes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vertices that are a block's work, and tables in global memory."""
    host = arrays(generate("erdos-renyi", seed=1, vertices=vertices, edges=num_edges))
    device = cuda.load(host)
    for k in sizes:
        expected = cpu.kernels.clique_counter(cpu.device, host, k, PLENTY).count(0, host.num_arcs)
        assert cuda.kernels.clique_counter(cuda.device, device, k, PLENTY).count(0, host.num_arcs) == expected
        if k > 3:
            monkeypatch.setattr(cuda.device, "shared_memory", 12_000)
            assert cuda.kernels.clique_counter(cuda.device, device, k, PLENTY).count(0, host.num_arcs) == expected
            monkeypatch.undo()
    theirs, ours = (
        cpu.kernels.triangle_vertex_counter(cpu.device, host, PLENTY),
        cuda.kernels.triangle_vertex_counter(cuda.device, device, PLENTY),
    )
    for first, last in cuts(host.num_arcs):
        theirs.add(first, last)
        ours.add(first, last)
    np.testing.assert_array_equal(ours.counts(), theirs.counts())


@pytest.mark.gpu
def test_triangles_per_vertex(cuda: Any, cpu: CpuEngine, graph: Graph) -> None:
    host, device = arrays(graph), cuda.load(arrays(graph))
    theirs, ours = (
        cpu.kernels.triangle_vertex_counter(cpu.device, host, PLENTY),
        cuda.kernels.triangle_vertex_counter(cuda.device, device, PLENTY),
    )
    for first, last in cuts(host.num_arcs):
        theirs.add(first, last)
        ours.add(first, last)
    np.testing.assert_array_equal(ours.counts(), theirs.counts())


@pytest.mark.gpu
@pytest.mark.parametrize("share", [0.1, 0.3, 0.9])
def test_triangles_per_vertex_where_few_vertices_fit(cuda: Any, cpu: CpuEngine, graph: Graph, share: float) -> None:
    host, device = arrays(graph), cuda.load(arrays(graph))
    theirs = cpu.kernels.triangle_vertex_counter(cpu.device, host, PLENTY)
    ours = cuda.kernels.triangle_vertex_counter(cuda.device, device, int(8 * host.num_vertices * share) + 8)
    for first, last in cuts(host.num_arcs):
        theirs.add(first, last)
        ours.add(first, last)
        np.testing.assert_array_equal(ours.counts(), theirs.counts())
    assert ours.workspace_bytes >= 8 * host.num_vertices or host.num_vertices < 16


@pytest.mark.gpu
@pytest.mark.parametrize("shared_memory", [None, 2000])
def test_four_cycles(
    cuda: Any, cpu: CpuEngine, graph: Graph, shared_memory: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, device = arrays(graph), cuda.load(arrays(graph))
    if shared_memory:
        monkeypatch.setattr(cuda.device, "shared_memory", shared_memory)
    theirs, ours = (
        cpu.kernels.four_cycle_counter(cpu.device, host, PLENTY),
        cuda.kernels.four_cycle_counter(cuda.device, device, PLENTY),
    )
    for first, last in cuts(host.num_vertices) * 2:
        assert ours.count(first, last) == theirs.count(first, last)


@pytest.mark.gpu
@pytest.mark.parametrize("shared_memory", [None, 20_000])
@pytest.mark.parametrize("modulus", [FLOATING, WORD, PRIMES[0]])
@pytest.mark.parametrize(
    "name",
    [
        "house",
        "path-5",
        "cycle-6",
        "0-1,0-2,0-3,0-4,1-2,2-3,3-4,1-4,0-5,1-5",
        "0-1,0-2,0-3,1-2,1-3,2-4,3-4",
        "0-1,0-2,0-4,0-5,1-2,1-4,1-5,2-3,2-5,3-4",
        "0-2,0-3,0-5,1-2,1-3,2-3,2-4,3-4,4-5",
        "0-1,0-2,0-3,0-4,0-5,1-2,1-3,1-5,2-3,2-4,3-4,3-5,4-5",
        "0-1,0-4,0-5,1-2,1-5,2-3,2-5,3-4,3-5,4-5",
    ],
)
def test_row_programs(
    cuda: Any,
    cpu: CpuEngine,
    graph: Graph,
    name: str,
    modulus: int,
    shared_memory: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host, device = arrays(graph), cuda.load(arrays(graph))
    if shared_memory:
        monkeypatch.setattr(cuda.device, "shared_memory", shared_memory)
    for lists in (True, False):
        found = plan_homomorphisms((parse_pattern(name),), PassCosts(1.0, 1.0, 1.0, lists))
        if found is None:
            continue
        program = found.program
        theirs, ours = (
            make_tables(*pair, program, modulus, table_memory(PLENTY)) for pair in ((cpu, host), (cuda, device))
        )
        np.testing.assert_allclose(ours.vertices.get(), theirs.vertices, rtol=1e-12)
        np.testing.assert_allclose(ours.arcs.get(), theirs.arcs, rtol=1e-12)
        np.testing.assert_array_equal(ours.common.get(), theirs.common)
        for domain, rows in program.totals:
            expected = cpu.kernels.row_counter(cpu.device, host, theirs, rows, domain, PLENTY)
            counter = cuda.kernels.row_counter(cuda.device, device, ours, rows, domain, PLENTY)
            for first, last in cuts(host.num_vertices if domain == "vertices" else host.num_arcs):
                expected.add(first, last)
                counter.add(first, last)
            if modulus != FLOATING:
                bound = modulus or 2**64
                assert [int(n) % bound for n in counter.totals()[0]] == [int(n) % bound for n in expected.totals()[0]]
            if modulus <= WORD:
                np.testing.assert_allclose(counter.totals()[1], expected.totals()[1], rtol=1e-9)


@pytest.mark.gpu
@pytest.mark.parametrize("shared_memory", [None, 600])
def test_five_cycles(
    cuda: Any, cpu: CpuEngine, graph: Graph, shared_memory: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, device = arrays(graph), cuda.load(arrays(graph))
    if shared_memory:
        monkeypatch.setattr(cuda.device, "shared_memory", shared_memory)
    theirs = cpu.kernels.five_cycle_counter(cpu.device, host, PLENTY)
    ours = cuda.kernels.five_cycle_counter(cuda.device, device, PLENTY)
    for first, last in cuts(host.num_vertices):
        assert ours.count(first, last) == theirs.count(first, last)


@pytest.mark.gpu
def test_a_workspace_that_does_not_fit_is_refused(cuda: Any) -> None:
    host = arrays(generate("rmat", seed=1, scale=10))
    device = cuda.load(host)
    found = plan_match(parse_pattern("wheel-5"), generate("rmat", seed=1, scale=10).stats)
    with pytest.raises(WorkspaceTooLarge):
        cuda.kernels.searcher(cuda.device, device, found.program, 100)
    with pytest.raises(WorkspaceTooLarge):
        cuda.kernels.triangle_vertex_counter(cuda.device, device, host.num_vertices // 16 * 8 - 1)


@pytest.mark.gpu
def test_seconds_of_compiling_are_left_out(cuda: Any) -> None:
    forget()
    before = COMPILING.seconds()
    out = cuda.xp.zeros(1, cuda.xp.uint64)
    ones = cuda.xp.ones(4, cuda.xp.uint32)
    cuda.device.launch_over("step_rate.cu", "look_up", 4, (ones, cuda.xp.ones(4096, cuda.xp.uint8), 4, 1, out))
    compiled = COMPILING.seconds()
    assert compiled > before
    cuda.device.launch_over("step_rate.cu", "look_up", 4, (ones, cuda.xp.ones(4096, cuda.xp.uint8), 4, 1, out))
    assert COMPILING.seconds() == compiled


@pytest.mark.gpu
def test_interrupt_ends_a_long_kernel() -> None:
    import threading
    import time

    from longwall.kernels.cuda.engine import CudaEngine

    try:
        own = CudaEngine()
    except EngineUnavailable as reason:
        pytest.skip(str(reason))
    graph = generate("rmat", seed=1, scale=15, edge_factor=32)
    host = arrays(graph)
    found = plan_match(parse_pattern("path-7"), graph.stats, induced=True)
    searcher = own.kernels.searcher(own.device, own.load(host), found.program, PLENTY)
    rows = own.xp.asarray(edges(found, host))
    threading.Timer(2, own.interrupt).start()
    began = time.monotonic()
    searcher.count_rows(rows)
    assert time.monotonic() - began < 20


@pytest.fixture(scope="module")
def bushy() -> Graph:
    """One place for `OUTGROWING`, its vertices of many leaves, beside a random graph."""
    pattern = [(0, 1), (0, 2), (0, 5), (1, 2), (1, 3), (1, 4), (2, 5), (3, 4), (3, 5), (4, 5)]
    leaves = [(v, 6 + 70 * v + i) for v in range(6) for i in range(60 + v % 3)]
    beside = generate("rmat", seed=6, scale=9, edge_factor=8)
    owners = np.repeat(np.arange(beside.num_vertices), np.diff(beside.indptr))
    ends = np.concatenate([np.array(pattern + leaves), np.stack([owners, beside.indices], axis=1) + 1000])
    return build_graph(ends[:, 0], ends[:, 1])


OUTGROWING = "0-1,0-2,0-5,1-2,1-3,1-4,2-5,3-4,3-5,4-5"


@pytest.mark.gpu
def test_sets_are_as_short_as_their_bounds_make_them(cuda: Any, cpu: CpuEngine, bushy: Graph) -> None:
    """Workspace for sets inside the orientation is for the largest out-degree, whatever they are made from."""
    host, device = arrays(bushy), cuda.load(arrays(bushy))
    found = plan_match(parse_pattern(OUTGROWING), bushy.stats, induced=True)
    rows = edges(found, host)
    rows = rows[:, (bushy.original_ids[rows] < 6).all(axis=0)]
    expected = cpu.kernels.searcher(cpu.device, host, found.program, PLENTY).count_rows(rows)
    assert expected > 0
    assert (
        cuda.kernels.searcher(cuda.device, device, found.program, PLENTY).count_rows(cuda.xp.asarray(rows)) == expected
    )


@pytest.mark.gpu
def test_many_stored_sets_share_what_shared_memory_there_is(cuda: Any, cpu: CpuEngine) -> None:
    graph = generate("rmat", seed=6, scale=7, edge_factor=8, num_labels=2)
    host, device = arrays(graph), cuda.load(arrays(graph))
    text = "0-6,1-5,1-7,2-5,2-6,2-7,3-4,3-5,3-6,4-6,4-7,5-6,5-7"
    pattern = parse_pattern(text, (0, 1, 1, 1, 1, 0, 0, 0))
    found = plan_match(pattern, graph.stats, induced=True, counting=False)
    theirs, ours = (
        cpu.kernels.searcher(cpu.device, host, found.program, PLENTY),
        cuda.kernels.searcher(cuda.device, device, found.program, PLENTY),
    )
    level = edges(found, host)[:, :200]
    while level.shape[0] < found.program.depth and level.shape[1]:
        counts, values = drain(theirs, level, 10**6)
        got_counts, got_values = drain(ours, cuda.xp.asarray(level), 10**6)
        np.testing.assert_array_equal(got_counts, counts)
        np.testing.assert_array_equal(got_values, values)
        level = np.vstack([np.repeat(level, counts, axis=1), values[None]])[:, :200].astype(np.uint32)


def units() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Every source with generated headers as the engine makes them: (name, text, options)."""
    graph = generate("rmat", seed=1, scale=8)
    for name, induced in (("house", False), ("wheel-5", True)):
        program = plan_match(parse_pattern(name), graph.stats, induced=induced).program
        for pooled in (False, True):
            header = program_header(program, 2, Variant(pooled=pooled))
            yield f"search/count_rows-{name}-{pooled}", *source_text("search/count_rows.cu", header)
    program = plan_match(parse_pattern("house", (0, 1, 0, 1, 1)), graph.stats, counting=False).program
    for columns in (2, 4):
        part = to_extend(program, columns)
        variant = Variant(emitted=emitted_set(part, columns), grouped=columns == 2, shared_capacity=512)
        for name in ("extend_rows", "extend_two_pass"):
            yield f"search/{name}-{columns}", *source_text(f"search/{name}.cu", program_header(part, columns, variant))
        staged = Variant(emitted=emitted_set(part, columns), lists=row_lists(part, columns)[1])
        yield (
            f"search/extend_rows-{columns}-staged",
            *source_text("search/extend_rows.cu", program_header(part, columns, staged)),
        )
    alone = (
        "homomorphisms/almost_cliques",
        "homomorphisms/arc_cliques",
        "homomorphisms/diamonds",
        "homomorphisms/five_cycles",
        "homomorphisms/inner_counts",
        "homomorphisms/prisms",
        "homomorphisms/wheels",
        "kcliques/heavy_tasks",
        "kcliques/tables",
        "label_rows",
        "local_counts/arc_diamonds",
        "local_counts/arc_triangles",
        "local_counts/column_cycles",
        "local_counts/edges",
        "local_counts/four_cycles",
        "local_counts/owners",
        "local_counts/reverse_adjacency",
        "local_counts/triangles",
        "local_counts/warp_triangles",
        "maximal_cliques/order",
        "page_bytes",
        "row_checks",
        "runtime/page_buffer",
        "runtime/staging/stage_lists",
        "search/edge_extension",
        "search/gather_blocks",
        "search/prefix_tree",
        "search/search_start",
        "step_rate",
    )
    for name in alone:
        yield name, *source_text(f"{name}.cu")
    for codegree in CodegreePattern:
        yield f"homomorphisms/pairs-{codegree.name}", *source_text("homomorphisms/pairs.cu", pair_header(codegree))
    for k in (4, 5, 6, 7, 9):
        yield f"kcliques/bitmaps-{k}", *source_text("kcliques/bitmaps.cu", clique_header(k))
    for limbs in (0, 1, 3):
        yield f"kcliques/leaves-{limbs}", *source_text("kcliques/leaves.cu", leaf_header(limbs))
    for mode, longest in ((COUNT, 64), (VERTICES, 128), (LIST, 192)):
        yield (
            f"maximal_cliques/finders-{longest}",
            *source_text("maximal_cliques/finders.cu", clique_finder_header(mode, longest)),
        )
    names = (
        "cycle-6",
        "0-1,0-2,0-3,0-4,1-2,2-3,3-4,1-4,0-5,1-5",
        "0-1,0-2,0-3,1-2,1-3,2-4,3-4",
        "0-2,0-3,0-5,1-2,1-3,2-3,2-4,3-4,4-5",
    )
    for name, modulus in product(names, (FLOATING, WORD, PRIMES[0])):
        sums = plan_homomorphisms((parse_pattern(name),), PassCosts(1.0, 1.0, 1.0))
        assert sums is not None
        for number, (domain, rows) in enumerate(sums.program.totals):
            header = row_header(rows, domain, modulus, 100)
            source = f"homomorphisms/{'rows' if rows.num_dense else 'flat_rows'}"
            yield f"{source}-{name}-{number}-{modulus}", *source_text(f"{source}.cu", header)
        header = table_header(exact=modulus != FLOATING, modulus=max(modulus, 0))
        yield f"homomorphisms/tables-{name}-{modulus}", *source_text("homomorphisms/tables.cu", header)
    labelled = Pattern(
        8, ((0, 1), (0, 3), (1, 2), (1, 5), (2, 6), (3, 4), (4, 7), (5, 6)), (4, 1, 3, ANY_LABEL, 4, 4, 5, ANY_LABEL)
    )
    sums = plan_label_sums(labelled, PassCosts(1e6, 1e6, 1e9))
    assert sums is not None
    (domain, rows), *_ = sums.program.totals
    assert len(rows.ops) > 200
    header = row_header(rows, domain, WORD, 100)
    yield "homomorphisms/rows-many", *source_text("homomorphisms/rows.cu", header)
    for layout in (KeyLayout(), KeyLayout(reduce="distinct"), KeyLayout(2, True, "sum"), KeyLayout(2, reduce="count")):
        for name in ("sorting/merge_keys", "sorting/reduce_keys"):
            header = sort_header(layout, tile=TILE, both_ways=layout.words == 1, count=layout.reduce == "count")
            yield f"{name}-{layout.words}-{layout.reduce}", *source_text(f"{name}.cu", header)
    for vertices in (2, 5, 65):
        header = growth_header(vertices)
        yield f"frequent/pattern_growth-{vertices}", *source_text("frequent/pattern_growth.cu", header)
    for k, classes in ((3, 1), (5, 6), (8, 853)):
        yield (
            f"local_counts/motifs-{k}",
            *source_text("local_counts/motifs.cu", motif_header(k, classes, per_vertex=False)),
        )
    for residues in (False, True):
        yield f"local_counts/orbits-{residues}", *source_text("local_counts/orbits.cu", orbit_header(residues=residues))
    yield "local_counts/motifs-orbits", *source_text("local_counts/motifs.cu", motif_header(4, 1, per_vertex=True))


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_sources_compile(arch: str) -> None:
    nvrtc = pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed: pip install 'longwall[test]'")
    for name, text, options in units():
        failure = compile_unit(nvrtc, text, options, arch)
        assert not failure, f"{name}: {failure}"


def test_no_source_is_left_out() -> None:
    folder = Path(str(files("longwall.kernels.cuda")))
    there = {path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.cu")}
    assert {name.partition("-")[0] for name, _, _ in units()} == there


def compile_unit(nvrtc: Any, text: str, options: tuple[str, ...], arch: str) -> str:
    """Compile for an architecture, without a device. Return the compiler's error."""
    status, program = nvrtc.nvrtcCreateProgram(text.encode(), b"unit.cu", 0, [], [])
    assert int(status) == 0
    flags = [option.encode() for option in (*options, f"--gpu-architecture={arch}")]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(flags), flags)
    if int(status) == 0:
        return ""
    _, size = nvrtc.nvrtcGetProgramLogSize(program)
    log = b" " * size
    nvrtc.nvrtcGetProgramLog(program, log)
    return log.decode()


@pytest.mark.gpu
@pytest.mark.parametrize("number", [3, 5_000])
def test_numbers_come_back_as_they_were_sent(cuda: Any, number: int) -> None:
    """A few numbers go through a page-locked page, more do not."""
    one, other = np.arange(number), np.arange(number) + (1 << 40)
    with cuda.faults():
        there = [cuda.xp.empty(number, np.int64) for _ in range(2)]
        for values, array in zip((one, other), there, strict=True):
            send(values, array.data.ptr)
        for values, array in zip((one, other), there, strict=True):
            np.testing.assert_array_equal(fetch(array), values)


@pytest.mark.gpu
def test_engines_share_the_shared_memory_that_a_kernel_may_have(cuda: Any) -> None:
    other = make_engine("cuda")
    for engine, kib in ((cuda, 100), (other, 60), (cuda, 100)):
        device = engine.device
        words = device.result()
        arguments = (words.view(np.uint32), 0, 1, words, words)  # of no lists
        device.launch("local_counts/arc_triangles.cu", "sum_lists", arguments, blocks=1, threads=256, shared=kib << 10)
        assert fetch(words).tolist() == [0, 0]
