"""Graphs that are laid out by label where an engine works, against the host's threads."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from longwall.kernels.cpu import label_rows
from longwall.pipeline.execution.device_graph import load_graph
from longwall.pipeline.phases.by_label.on_device import lay_out_on_device
from longwall.storage.generators.kinds import generate
from longwall.storage.graph.derived.label_layout import ANY, LabelLayout, lay_out, lay_out_with
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


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_rows_are_those_of_the_host(lab: Any, engine_kind: str, graph: Graph, layout: LabelLayout, monkeypatch: Any):
    want, _ = lay_out(graph, layout, MemoryBudget("memory.host", 1 << 24), np.empty)
    monkeypatch.setattr(label_rows, "LEAST_ARCS", 100)
    env = lab.context(graph, engine=engine_kind, threads=2)
    loaded, _ = load_graph(env)
    make = partial(_make_rows, env.engine, loaded)
    with env.engine.faults():
        made, _, rows = lay_out_with(make, graph, layout, MemoryBudget("memory.host", 1 << 24), np.empty)
    assert arrays_of(made) == arrays_of(want)
    there = {name: getattr(rows, name) for name in ("indptr", "indices", "split", "labels")}
    assert {name: (array.get() if hasattr(array, "get") else array).tolist() for name, array in there.items()} == {
        name: getattr(want, name).tolist() for name in there
    }


def _make_rows(engine: Any, graph: Any, vertices: Any, kept: Any, sliced: bool) -> Any:
    return engine.kernels.rows_by_label(engine.device, graph, vertices, kept, sliced=sliced)


def test_the_whole_graph_leaves_a_device_that_has_its_layout(lab: Any, engine_kind: str, graph: Graph):
    env = lab.context(graph, engine=engine_kind)
    before = env.resources.work.used
    made = lay_out_on_device(env, LAYOUTS["slices"])
    assert env.device_graph is None
    if engine_kind == "cpu":
        assert made is None
        return
    assert made is not None
    assert env.resources.work.used == before
    assert "indices" not in vars(made.graph)  # they come to the host when it reads them
    assert (made.graph.num_edges, made.graph.nbytes) == (len(made.there.indices) // 2, made.reserved.size)
    assert "indices" not in vars(made.graph)
    want, _ = lay_out(graph, LAYOUTS["slices"], MemoryBudget("memory.host", 1 << 24), np.empty)
    assert made.there.indices.get().tolist() == made.graph.indices.tolist() == want.indices.tolist()
    assert made.graph.nbytes == want.nbytes
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
