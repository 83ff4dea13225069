"""Listing: every embedding once, in the ids of the input, whatever the room that it is given."""

import json
from itertools import combinations
from pathlib import Path

import naive
import networkx as nx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import set_free_writers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from run_configs import write_edges
from strategies import graphs, queries

import longwall
from longwall.pipeline.execution import search_context, worker_memory
from longwall.pipeline.execution.phase import equal_tasks
from longwall.pipeline.patterns.pattern import make_pattern
from longwall.pipeline.phases import listing
from longwall.pipeline.planning.search.search_planner import plan_match
from longwall.storage.errors import InputError

relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
DENSE = tuple(pair for pair in combinations(range(20), 2) if (pair[0] * 7 + pair[1] * 11) % 5 < 3)


def read(folder: Path) -> pa.Table:
    return pa.concat_tables(
        [pq.read_table(file) for file in sorted((folder / "results.partial").glob("embeddings-*.parquet"))]
    )


def images(table: pa.Table, size: int) -> list[tuple[int, ...]]:
    return list(zip(*(table.column(f"v{v}").to_pylist() for v in range(size)), strict=True))


def workload_of(query: naive.Query) -> dict:
    labels = {} if query.labels is None else {"pattern_labels": list(query.labels)}
    shared = {"kind": "match", "pattern": query.text, "induced": query.induced, "output": "embeddings"}
    return shared | labels


def check_rows(found: list[tuple[int, ...]], edges, query, labels) -> None:
    """Every row is an embedding, every embedding is one row."""
    near = naive.adjacency(edges)
    for image in found:
        assert len(set(image)) == query.size
        for u, v in combinations(range(query.size), 2):
            if (u, v) in query.edges:
                assert image[v] in near[image[u]]
            elif query.induced:
                assert image[v] not in near[image[u]]
        if query.labels is not None:
            assert tuple(labels[v] for v in image) == query.labels
    sets = [naive.edge_set(image, query) for image in found]
    assert len(sets) == len(set(sets)), "an embedding was written twice"
    assert set(sets) == naive.embeddings(edges, query, labels)


@pytest.fixture(scope="session")
def listed(lab, engine_kind, tmp_path_factory):
    """List the embeddings of a query into Parquet. Return the number of rows and the table."""

    def by_plan(edges, query, labels=None, **context):
        folder = tmp_path_factory.mktemp("listing")
        graph = lab.graph(edges, labels if query.labels is not None else None)
        pattern = make_pattern(query.edges, query.labels)
        plan = plan_match(pattern, graph.stats, induced=query.induced, counting=False)
        context["workload"] = workload_of(query)
        rows = listing.list_matches(plan, lab.context(graph, engine=engine_kind, folder=folder, **context))
        return rows, read(folder)

    return by_plan


@settings(relaxed, max_examples=100)
@given(small=graphs(max_vertices=8), query=queries(max_size=5))
def test_rows_are_the_embeddings(listed, small, query):
    rows, table = listed(small.edges, query, small.labels)
    assert rows == len(table)
    check_rows(images(table, query.size), small.edges, query, small.labels)


@settings(relaxed, max_examples=40)
@given(small=graphs(max_vertices=8), query=queries(min_size=6, max_size=6, labelled=False, induced=True))
def test_rows_of_six_vertices(listed, small, query):
    _, table = listed(small.edges, query)
    check_rows(images(table, query.size), small.edges, query, None)


@settings(relaxed, max_examples=60)
@given(
    small=graphs(max_vertices=9),
    query=queries(max_size=4),
    threads=st.sampled_from([1, 2, 4]),
    tasks=st.sampled_from([1, 3, 1000]),
    chunk=st.sampled_from([1, 3, 1 << 20]),
)
def test_threads_tasks_and_chunks_change_nothing(listed, small, query, threads, tasks, chunk):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search_context, "equal_tasks", lambda total, _: equal_tasks(total, tasks))
        patch.setattr(worker_memory, "LARGEST_CHUNK", chunk)
        _, table = listed(small.edges, query, small.labels, threads=threads)
    check_rows(images(table, query.size), small.edges, query, small.labels)


@pytest.mark.slow
@pytest.mark.parametrize("induced", [False, True])
def test_every_pattern_of_four_vertices_in_a_dense_graph(listed, induced):
    for found in naive.connected_patterns(4):
        query = naive.Query(4, found.edges, None, induced)
        _, table = listed(DENSE, query, threads=2)
        check_rows(images(table, 4), DENSE, query, None)


@pytest.mark.parametrize("limit", [1, 2, 10, 10**6])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_limit_writes_that_many_distinct_embeddings(listed, limit, threads):
    query = naive.Query(3, ((0, 1), (0, 2)))
    everything = naive.embeddings(DENSE, query)
    rows, table = listed(DENSE, query, threads=threads, export={"limit": limit})
    assert rows == len(table) == min(limit, len(everything))
    sets = [naive.edge_set(image, query) for image in images(table, 3)]
    assert len(set(sets)) == rows
    assert set(sets) <= everything


def test_chosen_columns_are_written_in_the_chosen_order(listed):
    query = naive.Query(4, ((0, 1), (1, 2), (2, 3), (0, 2)))
    _, whole = listed(DENSE, query)
    _, part = listed(DENSE, query, export={"columns": ["v3", "v0"]})
    assert part.column_names == ["v3", "v0"]
    key = [("v3", "ascending"), ("v0", "ascending")]
    assert part.sort_by(key).equals(whole.select(["v3", "v0"]).sort_by(key))


def test_an_empty_result_has_its_columns(listed):
    rows, table = listed(((1, 2), (2, 3)), naive.Query(4, tuple(combinations(range(4), 2))))
    assert rows == 0
    assert table.column_names == ["v0", "v1", "v2", "v3"]
    assert all(field.type == pa.int64() for field in table.schema)


def test_the_schema_says_what_was_searched_for(listed):
    query = naive.Query(3, ((0, 1), (1, 2)), (1, 0, 1), True)
    _, table = listed(((5, 6), (6, 7)), query, {5: 1, 6: 0, 7: 1})
    metadata = json.loads(table.schema.metadata[b"longwall"])
    assert metadata["pattern"] == "0-1,1-2"
    assert metadata["labels"] == [1, 0, 1]
    assert metadata["induced"] is True
    assert len(metadata["graph"]) == 64
    assert metadata["version"]
    assert sorted(images(table, 3)[0]) == [5, 6, 7]


def test_long_results_are_cut_into_several_files(lab, engine_kind, tmp_path, monkeypatch):
    from longwall.stages import export

    monkeypatch.setattr(export, "ROWS_PER_FILE", 50)
    monkeypatch.setattr(worker_memory, "LARGEST_CHUNK", 20)
    query = naive.Query(3, ((0, 1), (0, 2)))
    graph = lab.graph(DENSE)
    plan = plan_match(make_pattern(query.edges), graph.stats, counting=False)
    written = listing.list_matches(plan, lab.context(graph, engine=engine_kind, folder=tmp_path, threads=2))
    sizes = [pq.read_metadata(file).num_rows for file in (tmp_path / "results.partial").glob("embeddings-*.parquet")]
    assert min(sizes) >= 1
    assert max(sizes) == 50, "however many rows come at a time"
    assert sum(sizes) == written > 10 * 50
    check_rows(images(read(tmp_path), 3), DENSE, query, None)


@pytest.mark.slow
def test_intermediate_results_of_a_hundred_times_the_budget(lab, engine_kind, tmp_path, monkeypatch):
    """Paths through a dense graph pass through a budget that holds less than a hundredth of them."""
    set_free_writers(monkeypatch)
    edges = [(u, v) for u, v in combinations(range(80), 2) if (u * 31 + v * 17 + u * v) % 7 < 3]
    graph = lab.graph(edges)
    query = naive.Query(4, ((0, 1), (1, 2), (2, 3)))
    plan = plan_match(make_pattern(query.edges), graph.stats, counting=False)
    context = lab.context(
        graph,
        engine=engine_kind,
        folder=tmp_path,
        host=graph.nbytes + (76 << 10),
        threads=2,
        workload=workload_of(query),
        export={"columns": ["v0"]},
    )
    rows = listing.list_matches(plan, context)
    near = naive.adjacency(edges)
    middles = sum((len(near[u]) - 1) * (len(near[v]) - 1) for u, v in edges)
    assert rows == middles - sum(naive.triangles_per_vertex(edges).values())
    metrics = [row for row in context.metrics.rows() if row.tasks]
    assert sum(row.bytes for row in metrics) > 100 * context.resources.host.limit
    assert max(row.bytes / row.tasks for row in metrics) < context.resources.host.limit / 2


def run(tmp_path, engine_kind, edges, workload, **sections):
    write_edges(tmp_path, edges)
    return longwall.run(
        {
            "graph": {"path": tmp_path / "graph.txt"},
            "workload": workload,
            "engine": {"kind": engine_kind},
            "run": {"directory": tmp_path / "runs"},
            **sections,
        }
    )


@settings(relaxed, max_examples=25)
@given(small=graphs(max_vertices=14))
def test_triangles_per_vertex_equal_networkx(engine_kind, tmp_path_factory, small):
    result = run(tmp_path_factory.mktemp("run"), engine_kind, small.edges, {"kind": "triangles", "output": "vertices"})
    table = result.table("vertices")
    found = dict(zip(table.column("vertex").to_pylist(), table.column("triangles").to_pylist(), strict=True))
    assert found == nx.triangles(nx.Graph(list(small.edges)))
    assert found == naive.triangles_per_vertex(small.edges)
    assert result.count == sum(found.values()) // 3


@pytest.mark.parametrize("k", [3, 4, 5])
def test_a_run_lists_cliques(engine_kind, tmp_path, k):
    edges = [(u + 1000, v + 1000) for u, v in DENSE]
    result = run(tmp_path, engine_kind, edges, {"kind": "cliques", "k": k, "output": "embeddings"})
    found = [frozenset(image) for image in images(result.table(), k)]
    assert len(found) == len(set(found)) == result.count
    assert set(found) == naive.cliques(edges, k)


def test_a_run_lists_triangles(engine_kind, tmp_path):
    result = run(tmp_path, engine_kind, DENSE, {"kind": "triangles", "output": "embeddings"})
    found = [frozenset(image) for image in images(result.table(), 3)]
    assert len(found) == len(set(found)) == result.count
    assert set(found) == naive.cliques(DENSE, 3)


def test_a_column_that_the_pattern_does_not_have_is_refused(engine_kind, tmp_path):
    workload = {"kind": "match", "pattern": "wedge", "output": "embeddings"}
    with pytest.raises(InputError, match="v3"):
        run(tmp_path, engine_kind, DENSE, workload, export={"columns": ["v0", "v3"]})
    assert not (tmp_path / "runs").exists()


def test_a_budget_that_is_too_small_is_refused(engine_kind, tmp_path):
    workload = {"kind": "match", "pattern": "wedge", "output": "embeddings"}
    with pytest.raises(InputError, match=r"memory\.host"):
        run(tmp_path, engine_kind, DENSE, workload, memory={"host": "2KiB"})
    assert not (tmp_path / "runs").exists()
