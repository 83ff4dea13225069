"""Graphs that are laid out by label where an engine works, against the host's threads."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from longwall.kernels.cpu import label_rows
from longwall.kernels.cuda.device import fetch
from longwall.pipeline.execution.device_graph import load_graph
from longwall.pipeline.phases.by_label import on_device
from longwall.pipeline.phases.by_label.on_device import lay_out_on_device
from longwall.storage.generators.kinds import generate
from longwall.storage.graph.derived.label_layout import ANY, LabelLayout, kept_edges, lay_out, roles_of
from longwall.storage.graph.graph import Graph
from longwall.storage.memory.reservations import MemoryBudget

LAYOUTS = {
    "slices": LabelLayout((1, 0), ((0, 0, ANY), (0, 1, ANY))),
    "slices without edges inside": LabelLayout((0, 2, 1), ((0, 1, ANY), (1, 2, ANY))),
    "others in a slice": LabelLayout((2, ANY), ((0, 0, ANY), (0, 1, ANY), (1, 1, ANY))),
    "a label that no vertex has": LabelLayout((0, 7), ((0, 0, ANY), (0, 1, ANY))),
    "no edge": LabelLayout((7,), ((0, 0, ANY),)),
    "one label": LabelLayout((1,), ((0, 0, ANY),), sliced=False),
    "cliques": LabelLayout(
        (0, 0, 0, 1), ((0, 1, ANY), (0, 2, ANY), (0, 3, ANY), (1, 2, ANY), (1, 3, ANY)), sliced=False
    ),
}


@pytest.fixture(scope="module")
def graph() -> Graph:
    """A graph with three labels, vertices of few neighbours and of more than a warp has lanes."""
    made = generate("rmat", seed=3, scale=8, edge_factor=8)
    labels = np.random.default_rng(5).integers(0, 3, made.num_vertices, np.int32)
    counts = dict(enumerate(np.bincount(labels).tolist()))
    return replace(made, labels=labels, stats=replace(made.stats, num_labels=3, label_counts=counts))


def arrays_of(graph: Graph) -> dict[str, Any]:
    there = {name: getattr(graph, name).tolist() for name in ("indptr", "indices", "split", "labels", "original_ids")}
    return there | {"stats": graph.stats} | ({} if graph.slices is None else {"slices": graph.slices.starts.tolist()})


@pytest.mark.parametrize("small", [True, False], ids=["one wait", "two waits"])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_rows_are_those_of_the_host(
    lab: Any, engine_kind: str, graph: Graph, layout: LabelLayout, small: bool, monkeypatch: Any
):
    want, _ = lay_out(graph, layout, MemoryBudget("memory.host", 1 << 24), np.empty)
    monkeypatch.setattr(label_rows, "LEAST_ARCS", 100)
    if engine_kind == "cuda" and not small:
        monkeypatch.setattr("longwall.kernels.cuda.label_rows.SMALL", 0)
    env = lab.context(graph, engine=engine_kind, threads=2)
    loaded, _ = load_graph(env)
    with env.engine.faults():
        rows = rows_of(env, loaded, graph, layout)
    there = {name: on_host(getattr(rows, name)) for name in ("indptr", "indices", "split", "labels")}
    assert there == {name: getattr(want, name).tolist() for name in there}
    assert graph.original_ids[on_host(rows.origin)].tolist() == want.original_ids.tolist()
    assert (rows.max_degree, rows.max_out_degree) == (want.stats.max_degree, want.stats.max_out_degree)
    assert rows.sum_degree_squared == want.stats.sum_degree_squared
    assert (rows.slices is None) == (want.slices is None)
    if want.slices is not None:
        assert on_host(rows.slices) == want.slices.starts.tolist()
        assert rows.role_arcs == want.slices.arcs
    arrays = (rows.origin, rows.indptr, rows.split, rows.indices, rows.labels, rows.slices)
    assert rows.capacity >= sum(array.nbytes for array in arrays if array is not None)


def rows_of(env: Any, loaded: Any, graph: Graph, layout: LabelLayout) -> Any:
    roles, kept = roles_of(graph, layout), kept_edges(layout, graph.edge_labels is not None)
    make = env.engine.kernels.rows_by_label
    return make(env.engine.device, loaded, roles, kept, sliced=layout.sliced, new_array=new_array)


def new_array(length: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    return np.empty(length, dtype)


def on_host(array: Any) -> list[int]:
    found: list[int] = (array.get() if hasattr(array, "get") else array).tolist()
    return found


def test_a_small_graph_waits_once_for_the_device(lab: Any, engine_kind: str, graph: Graph, monkeypatch: Any):
    if engine_kind == "cpu":
        pytest.skip("nothing is waited for")
    env, waits = lab.context(graph, engine=engine_kind), []
    loaded, _ = load_graph(env)
    monkeypatch.setattr(env.engine.device, "synchronize", lambda: waits.append("device"))
    fetched = "longwall.kernels.cuda.label_rows.fetch"
    monkeypatch.setattr(fetched, lambda array: waits.append("totals") or fetch(array))
    with env.engine.faults():
        rows_of(env, loaded, graph, LAYOUTS["slices"])
    assert waits == ["totals"]


def test_labels_that_statistics_miscount_are_left_to_the_host(lab: Any, engine_kind: str, graph: Graph):
    if engine_kind == "cpu":
        pytest.skip("it counts them itself")
    layout = LAYOUTS["slices"]
    counts = dict(graph.stats.label_counts)
    want, _ = lay_out(graph, layout, MemoryBudget("memory.host", 1 << 24), np.empty)
    for change in (-3, 3):
        wrong = replace(graph, stats=replace(graph.stats, label_counts=counts | {0: counts[0] + change}))
        assert lay_out_on_device(lab.context(wrong, engine=engine_kind), layout) is None
        made, _ = lay_out(wrong, layout, MemoryBudget("memory.host", 1 << 24), np.empty)
        assert made.indices.tolist() == want.indices.tolist()


@pytest.mark.parametrize("share", [0, 1 / 64])
def test_a_whole_graph_that_is_not_small_leaves_a_device_that_has_its_layout(
    lab: Any, engine_kind: str, graph: Graph, share: float, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(on_device, "_KEPT_SHARE", share)
    env = lab.context(graph, engine=engine_kind)
    before = env.resources.work.used
    made = lay_out_on_device(env, LAYOUTS["slices"])
    if engine_kind == "cpu":
        assert made is None
        return
    assert made is not None
    assert (env.device_graph is None) == (share == 0)
    assert env.resources.work.used == before + (0 if env.device_graph is None else env.device_graph.charged[1])
    assert (made.graph.num_edges, made.graph.nbytes) == (len(made.there.indices) // 2, made.reserved.size)
    assert not {"indptr", "indices", "split", "labels", "original_ids", "slices"} & vars(made.graph).keys()
    want, _ = lay_out(graph, LAYOUTS["slices"], MemoryBudget("memory.host", 1 << 24), np.empty)
    assert made.there.indices.get().tolist() == made.graph.indices.tolist() == want.indices.tolist()
    assert made.graph.nbytes == want.nbytes
    assert arrays_of(made.graph) == arrays_of(want)  # they come to the host when it reads them
    assert replace(made.graph, labels=None).num_edges == want.num_edges


def test_threads_that_read_at_once_wait_for_one_copy(lab: Any, engine_kind: str, graph: Graph):
    if engine_kind == "cpu":
        pytest.skip("its rows are on the host")
    made = lay_out_on_device(lab.context(graph, engine=engine_kind), LAYOUTS["cliques"])
    assert made is not None
    with ThreadPoolExecutor(4) as pool:
        read = list(pool.map(lambda _: made.graph.indices.tolist(), range(8)))
    assert read == [made.there.indices.get().tolist()] * 8


def test_a_device_with_no_room_for_both_graphs_has_the_host_do_it(lab: Any, engine_kind: str, graph: Graph):
    if engine_kind == "cpu":
        pytest.skip("it has no memory of its own")
    env = lab.context(graph, engine=engine_kind)
    size = graph.indices.nbytes * 2
    with env.resources.work.reserve(env.resources.work.free - size, "something else"):
        assert lay_out_on_device(env, LAYOUTS["slices"]) is None
    assert env.device_graph is None
