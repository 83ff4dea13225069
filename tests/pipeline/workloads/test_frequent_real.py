"""Frequent patterns of real graphs and databases against published results, and against gspan-mining."""

import gzip
import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import pytest
from naive_frequent import LabelledGraph, found_by, frequent, gspan, key_of, pattern_of
from selection import on_device

import longwall

COMPOUNDS = {211: 29, 168: 56, 126: 120, 84: 932, 42: 15_966, 33: 28_551}
"""Minimum support -> patterns with at least one edge."""


@pytest.fixture
def mine(data: Path, tmp_path: Path, engine_kind: str):
    """Run a workload: count and support of each pattern, by `key_of`."""

    def run(graph: dict[str, Any], **workload: Any) -> dict[Hashable, tuple[int, int | None]]:
        config = {
            "graph": graph,
            "workload": workload,
            "engine": {"kind": engine_kind},
            "memory": {"spill": str(tmp_path / "spill")},
            "run": {"directory": str(tmp_path), "name": f"run-{len(list(tmp_path.iterdir()))}"},
        }
        return found_by(longwall.run(config))

    return run


def edges_of(key: Hashable) -> int:
    colours, _ = key  # type: ignore[misc]
    return sum(kind for kind, _ in colours)


@pytest.fixture(scope="module")
def citeseer(data: Path) -> dict[str, str]:
    folder = data / "graphs"
    return {"path": str(folder / "citeseer.edges.gz"), "labels": str(folder / "citeseer.labels.gz")}


@pytest.fixture(scope="module")
def published(data: Path, citeseer: dict[str, str]) -> dict[Hashable, int]:
    """MNI supports of every pattern of 2 to 4 edges as published, of single edges by brute force, which is tried."""
    supports = {}
    for line in (data / "truth" / "citeseer-fsm-mni-supports.txt").read_text().splitlines():
        text, support = line.split()
        labels: dict[int, int] = {}
        edges = {}
        for u, label, v, other in re.findall(r"\[(\d+),(\d+)-(\d+),(\d+)\]", text):
            labels |= {int(u): int(label), int(v): int(other)}
            edges[int(u), int(v)] = 0
        supports[key_of(pattern_of(labels, edges))] = int(support)
    assert len(supports) == 5344
    pairs = {}
    for name in ("path", "labels"):
        with gzip.open(citeseer[name], "rt") as file:
            pairs[name] = [(int(first), int(second)) for first, second in map(str.split, file)]
    graph = LabelledGraph(dict(pairs["labels"]), dict.fromkeys(pairs["path"], 0))
    counted = {key: support.mni for key, (_, support) in frequent(graph, 2).items()}
    assert all(supports[key] == support for key, support in counted.items() if edges_of(key) == 2)
    return supports | counted


@pytest.mark.slow
@pytest.mark.parametrize(
    ("edges", "least"),
    [
        (1, 1),
        (2, 1),
        pytest.param(3, 20, marks=pytest.mark.slow),
        pytest.param(4, 60, marks=pytest.mark.slow),
        pytest.param(3, 1, marks=pytest.mark.long),
        pytest.param(4, 1, marks=pytest.mark.long),
    ],
)
def test_the_mni_supports_of_citeseer_are_the_published_ones(mine, citeseer, published, edges: int, least: int) -> None:
    found = mine(citeseer, kind="frequent", support="mni", min_support=least, max_edges=edges)
    wanted = {key: support for key, support in published.items() if edges_of(key) <= edges and support >= least}
    assert {key: support for key, (_, support) in found.items()} == wanted


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("edges", [3, 4])
@pytest.mark.parametrize(("least", "number"), [(350, 5), (300, 9), (290, 10)])
def test_citeseer_has_the_published_number_of_frequent_patterns(
    mine, citeseer, least: int, number: int, edges: int
) -> None:
    assert len(mine(citeseer, kind="frequent", support="mni", min_support=least, max_edges=edges)) == number


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(("least", "number"), [(2000, 1), (1700, 3), (1500, 4)])
def test_citeseer_without_labels_has_the_published_number(mine, citeseer, least: int, number: int) -> None:
    """The fourth pattern at 1500 is the path of 4 edges."""
    graph = {"path": citeseer["path"]}
    assert len(mine(graph, kind="frequent", support="mni", min_support=least, max_edges=4)) == number


@pytest.fixture(scope="module")
def compounds(data: Path) -> dict[str, str]:
    return {"path": str(data / "transactions" / "Compound_422.gz")}


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(
    "least",
    [
        *(211, 168, 126),
        pytest.param(84, marks=pytest.mark.real_gpu("so many patterns take minutes")),
        *(pytest.param(least, marks=pytest.mark.long) for least in (42, 33)),
    ],
)
def test_the_compounds_have_the_published_number_of_frequent_patterns(mine, compounds, least: int) -> None:
    found = mine(compounds, kind="transactions", min_support=least)
    assert len(found) == COMPOUNDS[least]
    assert all(support is not None and least <= support <= count for count, support in found.values())


@pytest.mark.slow
@pytest.mark.real_gpu("so many patterns take minutes")
@pytest.mark.parametrize(("least", "vertices"), [(100, None), (60, 6)])
def test_the_compounds_have_the_patterns_of_gspan_mining(
    mine, compounds, tmp_path: Path, least: int, vertices: int | None
) -> None:
    text = tmp_path / "compounds.txt"
    text.write_bytes(gzip.decompress(Path(compounds["path"]).read_bytes()))
    bound = {} if vertices is None else {"max_vertices": vertices}
    found = mine(compounds, kind="transactions", min_support=least, **bound)
    assert {key: support for key, (_, support) in found.items()} == gspan(text, least, vertices)


def test_a_share_of_the_compounds_is_the_least_number_that_reaches_it(mine, compounds) -> None:
    assert len(mine(compounds, kind="transactions", min_support=0.5)) == COMPOUNDS[211]
    # 42.28 transactions: 43 have to hold a pattern.
    edges = on_device(3, 2)
    share = mine(compounds, kind="transactions", min_support=0.1002, max_edges=edges)
    assert share == mine(compounds, kind="transactions", min_support=43, max_edges=edges)
