"""Generators: sizes, distributions, the same graph from the same seed, refused parameters."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from budgets import Budgets, make_budgets
from cases import each_case

from longwall.storage.errors import InputError
from longwall.storage.generators import random_edges
from longwall.storage.generators.kinds import GENERATORS, generate, generate_store
from longwall.storage.graph.graph import Graph
from longwall.storage.memory.reservations import BudgetExceeded, MemoryBudget
from longwall.storage.memory.spill_folder import SpillFolder

SMALL: dict[str, dict[str, int]] = {
    "rmat": {"scale": 10},
    "erdos-renyi": {"vertices": 300, "edges": 2000},
    "barabasi-albert": {"vertices": 300, "edges_per_vertex": 4},
}


@pytest.mark.parametrize("kind", SMALL)
def test_seed_decides(kind: str) -> None:
    first = generate(kind, seed=1, **SMALL[kind])
    assert generate(kind, seed=1, **SMALL[kind]).content_hash == first.content_hash
    assert generate(kind, seed=2, **SMALL[kind]).content_hash != first.content_hash


@pytest.mark.parametrize(
    ("kind", "hash_start"),
    [
        ("rmat", "26e495a842ccaf95"),
        ("erdos-renyi", "82ee3a12e3ac0ef0"),
        ("barabasi-albert", "6912cd709792a8c8"),
    ],
)
def test_same_graph_on_every_machine(kind: str, hash_start: str) -> None:
    graph = generate(kind, seed=2**64 - 1, num_labels=3, **SMALL[kind])
    assert digest(graph)[:16] == hash_start


def digest(graph: Graph) -> str:
    """A hash of its own of a graph's arrays, whatever the graph's is."""
    lines = ""
    for name in ("indptr", "indices", "original_ids", "labels"):
        array = getattr(graph, name)
        lines += f"{name} {array.dtype.str} {len(array)} {hashlib.sha256(array.tobytes()).hexdigest()}\n"
    return hashlib.sha256(lines.encode()).hexdigest()


@pytest.mark.parametrize("scale", [1, 5, 9])
def test_vertices_are_in_the_order_of_their_words(monkeypatch: pytest.MonkeyPatch, scale: int) -> None:
    monkeypatch.setattr(random_edges, "_BUCKET_BITS", 3)
    words = np.random.Philox(key=np.array([7, random_edges._PERMUTATION << 56], np.uint64)).random_raw(1 << scale)
    assert random_edges._permutation(7, scale).tolist() == np.argsort(words, kind="stable").tolist()


def test_rmat_has_the_known_size_and_skew() -> None:
    graph = generate("rmat", scale=14, seed=1)
    assert graph.num_edges == pytest.approx(213_000, rel=0.01)
    assert graph.stats.max_degree > 50 * graph.stats.mean_degree
    assert graph.original_ids.max() < 2**14


def test_rmat_without_skew_is_uniform() -> None:
    graph = generate("rmat", scale=12, a=0.25, b=0.25, c=0.25, seed=1)
    assert graph.num_edges == pytest.approx(16 * 2**12, rel=0.01)
    assert graph.stats.max_degree < 80


def test_rmat_quadrants() -> None:
    assert generate("rmat", scale=1, edge_factor=64, a=0, b=1, c=0, seed=1).num_edges == 1
    loops = generate("rmat", scale=5, a=1, b=0, c=0, seed=1)
    assert (loops.num_vertices, loops.num_edges) == (0, 0)


def test_rmat_of_many_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = generate("rmat", scale=10, edge_factor=4, seed=1)
    monkeypatch.setattr("longwall.storage.generators.random_edges._BLOCK", 1000)
    blocks = generate("rmat", scale=10, edge_factor=4, seed=1)
    assert blocks.num_edges == pytest.approx(whole.num_edges, rel=0.05)


@pytest.mark.parametrize(("vertices", "edges"), [(2, 1), (50, 1), (50, 600), (50, 613), (50, 1225), (2000, 5000)])
def test_erdos_renyi_has_exactly_its_edges(vertices: int, edges: int) -> None:
    graph = generate("erdos-renyi", vertices=vertices, edges=edges, seed=5)
    assert graph.num_edges == edges
    assert graph.original_ids.max() < vertices


@pytest.mark.slow
@pytest.mark.parametrize("edges", [2, 4])
def test_erdos_renyi_is_uniform(edges: int) -> None:
    # 4 vertices, 6 possible edges: C(6, 2) = C(6, 4) = 15 graphs.
    seen: dict[str, int] = {}
    for seed in range(750):
        key = generate("erdos-renyi", vertices=4, edges=edges, seed=seed).content_hash
        seen[key] = seen.get(key, 0) + 1
    assert len(seen) == 15
    assert min(seen.values()) > 25
    assert max(seen.values()) < 80


def test_barabasi_albert_grows_by_degree() -> None:
    graph = generate("barabasi-albert", vertices=5000, edges_per_vertex=3, seed=1)
    assert graph.num_vertices == 5000
    assert graph.num_edges == (5000 - 3) * 3
    assert graph.stats.max_degree > 60
    assert np.diff(graph.indptr).min() >= 1
    assert np.median(graph.original_ids[:20]) < 300  # the hubs are old


def test_labels_are_uniform() -> None:
    graph = generate("erdos-renyi", vertices=3000, edges=20_000, num_labels=3, seed=1)
    assert set(graph.stats.label_counts) == {0, 1, 2}
    assert min(graph.stats.label_counts.values()) > 900


@each_case(
    ("kind", "parameters", "says"),
    [
        ("rmta", {}, "'rmta' is unknown; choose one of rmat, erdos-renyi, barabasi-albert"),
        ("rmat", {}, "'scale' is missing"),
        ("rmat", {"scale": 4, "vertices": 3}, "'vertices' is unknown; it takes scale"),
        ("rmat", {"scale": 4.5}, "'scale' must be an integer"),
        ("rmat", {"scale": True}, "'scale' must be an integer"),
        ("rmat", {"scale": 0}, "'scale' is 0"),
        ("rmat", {"scale": 32}, "'scale' is 32"),
        ("rmat", {"scale": 4, "edge_factor": 0}, "'edge_factor' is 0"),
        ("rmat", {"scale": 4, "edge_factor": 2**62}, "'edge_factor' is 4611686018427387904"),
        ("rmat", {"scale": 4, "a": -0.1}, "'a' is -0.1"),
        ("rmat", {"scale": 4, "a": float("nan")}, "'a' is nan"),
        ("rmat", {"scale": 4, "b": 0.9}, "'a + b + c'"),
        ("rmat", {"scale": 4, "c": "x"}, "'c' must be a number"),
        ("rmat", {"scale": 4, "seed": -1}, "'seed' must be"),
        ("rmat", {"scale": 4, "seed": 2**64}, "'seed' must be"),
        ("rmat", {"scale": 4, "num_labels": -1}, "'num_labels' must be"),
        ("erdos-renyi", {"vertices": 1, "edges": 1}, "'vertices' is 1"),
        ("erdos-renyi", {"vertices": 4, "edges": 7}, "'edges' is 7, it must be from 1 to 6 for 4 vertices"),
        ("erdos-renyi", {"vertices": 4, "edges": 0}, "'edges' is 0"),
        ("barabasi-albert", {"vertices": 4, "edges_per_vertex": 4}, "'vertices' is 4"),
        ("barabasi-albert", {"vertices": 4, "edges_per_vertex": 0}, "'edges_per_vertex' is 0"),
    ],
)
def test_bad_parameters(kind: str, parameters: dict[str, int | float], says: str) -> None:
    with pytest.raises(InputError) as caught:
        generate(kind, **{"seed": 1, **parameters})  # type: ignore[arg-type]
    assert says in str(caught.value)


def test_generators_describe_themselves() -> None:
    for generator in GENERATORS.values():
        assert set(generator.defaults) <= set(generator.parameters)
        assert generator.summary


@pytest.mark.parametrize(
    ("kind", "parameters", "held"),
    [
        ("rmat", {"scale": 16, "edge_factor": 1}, 28 << 16),
        ("erdos-renyi", {"vertices": 40_000, "edges": 20_000}, 80 * 20_000),
        ("barabasi-albert", {"vertices": 20_000, "edges_per_vertex": 4}, 16 * 80_000),
    ],
)
def test_what_drawing_holds_may_be_most_of_the_budget(
    tmp_path: Path, kind: str, parameters: dict[str, int], held: int
) -> None:
    host = held * 9 // 4
    budgets = make_budgets(host, 1 << 30)
    with SpillFolder(tmp_path / "spill") as spill, pytest.MonkeyPatch.context() as patch:
        patch.setattr("longwall.storage.generators.random_edges._PIECE", 1 << 12)
        patch.setattr("longwall.storage.arrays.layout.CHUNK_BYTES", 1 << 12)
        generate_store(kind, tmp_path / "store", seed=1, resources=budgets.at(spill), **parameters)
    assert budgets.host.used == 0
    assert budgets.host.peak <= host


@pytest.mark.parametrize(
    ("kind", "parameters", "says"),
    [
        (
            "rmat",
            {"scale": 4, "edge_factor": 10**12},
            r"need 116 TiB .* lower parameter 'edge_factor' or .*, or raise --disk",
        ),
        ("rmat", {"scale": 31, "edge_factor": 1}, r"need 16 GiB to be sorted, --memory has .* left and --disk"),
        ("rmat", {"scale": 4, "edge_factor": 2**62 - 1}, "lower parameter 'edge_factor'"),
        ("erdos-renyi", {"vertices": 2**32 - 1, "edges": 10**12}, "raise --memory"),
        ("erdos-renyi", {"vertices": 10**6, "edges": 10**11}, "raise --memory"),
        ("barabasi-albert", {"vertices": 2**32 - 1, "edges_per_vertex": 2**31}, "raise --memory"),
    ],
)
def test_what_could_never_be_sorted_is_not_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, parameters: dict[str, int], says: str
) -> None:
    def draw(*arguments: object) -> None:
        raise AssertionError(arguments)

    monkeypatch.setattr("longwall.storage.generators.random_edges.draw_words", draw)
    monkeypatch.setattr("longwall.storage.generators.random_edges._attach", draw)
    budgets = Budgets(MemoryBudget("--memory", 1 << 30), MemoryBudget("--disk", 1 << 33))
    with SpillFolder(tmp_path / "spill") as spill, pytest.raises(BudgetExceeded, match=says):
        generate_store(kind, tmp_path / "store", seed=1, resources=budgets.at(spill), **parameters)
    assert budgets.host.used == 0
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_large_enough_is_no_reason_to_refuse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longwall.storage.generators.random_edges._PIECE", 1 << 12)
    budgets = Budgets(MemoryBudget("--memory", 3 << 20), MemoryBudget("--disk", 4 << 20))
    with SpillFolder(tmp_path / "spill") as spill:
        stats = generate_store(
            "rmat", tmp_path / "store", seed=1, scale=10, edge_factor=512, resources=budgets.at(spill)
        )
    assert stats.num_edges > 10_000


@pytest.mark.parametrize("kind", SMALL)
def test_a_failed_build_ends_the_drawing(tmp_path: Path, kind: str) -> None:
    budgets = make_budgets(1 << 26, 1 << 30)
    (tmp_path / "store").mkdir()
    with SpillFolder(tmp_path / "spill") as spill, pytest.raises(InputError, match="exists already"):
        generate_store(kind, tmp_path / "store", seed=1, resources=budgets.at(spill), **SMALL[kind])
    assert budgets.host.used == 0
