"""Frequent patterns of small random graphs and databases against brute force and gspan-mining; what is refused."""

import tempfile
from collections.abc import Hashable
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest
from cases import each_case
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from naive_frequent import LabelledGraph, Support, found_by, frequent, gspan, key_of, pattern_of
from strategies import SmallGraph, graphs

import longwall
from longwall.storage.errors import InputError
from longwall.storage.ingest.ingest import ingest

quick = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)

GrownPatterns = dict[Hashable, tuple[int, int | None]]


def mine(engine: str, folder: Path, graph: dict[str, Any], **workload: Any) -> GrownPatterns:
    """Run a workload: count and support of each pattern, by `key_of`."""
    config = {
        "graph": graph,
        "workload": workload,
        "engine": {"kind": engine},
        "memory": {"spill": str(folder / "spill")},
        "run": {"directory": str(folder), "name": f"run-{len(list(folder.iterdir()))}"},
    }
    return found_by(longwall.run(config))


def write_lg(path: Path, graph: LabelledGraph, *, edge_labels: bool) -> None:
    lines = ["t # 1", *(f"v {vertex} {label}" for vertex, label in graph.labels.items())]
    lines += [f"e {u} {v}" + (f" {label}" if edge_labels else "") for (u, v), label in graph.edges.items()]
    path.write_text("\n".join([*lines, ""]))


@dataclass(frozen=True)
class Case:
    """A graph, and the patterns that are wanted."""

    graph: LabelledGraph
    edge_labels: bool
    max_edges: int
    max_vertices: int | None

    def keys(self) -> dict[str, int]:
        bound = {} if self.max_vertices is None else {"max_vertices": self.max_vertices}
        return {"max_edges": self.max_edges, **bound}

    def supports(self) -> dict[Hashable, Support]:
        found = frequent(self.graph, self.max_edges, self.max_vertices)
        return {key: support for key, (_, support) in found.items()}


def labelled(small: SmallGraph, edge_label: Any = lambda u, v: 0) -> LabelledGraph:
    return LabelledGraph(small.labels, {(u, v): edge_label(u, v) for u, v in small.edges})


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Small graphs with labels of vertices and perhaps of edges; fewer edges a pattern where there are many edges."""
    small = draw(graphs(max_vertices=8, num_labels=draw(st.integers(1, 3))))
    edge_labels = draw(st.booleans())
    given_labels = draw(st.lists(st.integers(0, 2), min_size=len(small.edges), max_size=len(small.edges)))
    edges = dict(zip(small.edges, given_labels if edge_labels else [0] * len(small.edges), strict=True))
    most = 4 if len(edges) <= 14 else 3
    return Case(
        LabelledGraph(small.labels, edges),
        edge_labels,
        draw(st.integers(1, most)),
        draw(st.sampled_from([None, None, 2, 3, 4, 5])),
    )


K5 = Case(labelled(SmallGraph(tuple(combinations(range(5), 2)), dict.fromkeys(range(5), 0))), False, 4, None)
K33 = Case(labelled(SmallGraph(tuple(product(range(3), range(3, 6))), {v: v // 3 for v in range(6)})), False, 4, None)
STAR = Case(labelled(SmallGraph(tuple((0, leaf) for leaf in range(1, 7)), dict.fromkeys(range(7), 0))), False, 4, None)
ALTERNATING = Case(
    labelled(SmallGraph(tuple((v, (v + 1) % 6) for v in range(6)), {v: v % 3 for v in range(6)}), lambda u, v: u % 2),
    True,
    4,
    4,
)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("support", ["mni", "instances"])
@given(case=cases(), least=st.integers(1, 4))
@example(case=K5, least=1)
@example(case=K33, least=3)
@example(case=STAR, least=1)
@example(case=STAR, least=7)
@example(case=ALTERNATING, least=1)
@quick
def test_supports_and_counts_in_one_graph_are_those_of_brute_force(
    engine_kind: str, support: str, case: Case, least: int
) -> None:
    least = min(least, len(case.graph.labels))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.lg"
        write_lg(path, case.graph, edge_labels=case.edge_labels)
        found = mine(
            engine_kind,
            Path(folder),
            {"path": str(path)},
            kind="frequent",
            support=support,
            min_support=least,
            **case.keys(),
        )
    wanted = {key: (one.instances, getattr(one, support)) for key, one in case.supports().items()}
    assert found == {key: (count, of) for key, (count, of) in wanted.items() if of >= least}


@given(small=graphs(max_vertices=8), least=st.integers(1, 4), edges=st.integers(1, 3))
@quick
def test_an_unlabelled_graph_has_one_label(engine_kind: str, small: SmallGraph, least: int, edges: int) -> None:
    least = min(least, len(small.labels))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.txt"
        path.write_text("".join(f"{u} {v}\n" for u, v in small.edges))
        found = mine(
            engine_kind,
            Path(folder),
            {"path": str(path)},
            kind="frequent",
            support="mni",
            min_support=least,
            max_edges=edges,
        )
    graph = labelled(SmallGraph(small.edges, dict.fromkeys(small.labels, 0)))
    supports = {key: support for key, (_, support) in frequent(graph, edges).items()}
    assert found == {key: (one.instances, one.mni) for key, one in supports.items() if one.mni >= least}


Compound = tuple[list[int], dict[tuple[int, int], int]]
"""Labels of vertices 0, 1, ..., and edges with their labels."""


@st.composite
def compounds(draw: st.DrawFn) -> Compound:
    """A small tree with a few more edges, or no edge at all."""
    size = draw(st.integers(1, 7))
    labels = draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
    edges = {(draw(st.integers(0, v - 1)), v): draw(st.integers(0, 1)) for v in range(1, size)}
    for edge in draw(st.lists(st.sampled_from(list(combinations(range(size), 2))), max_size=2)) if size > 1 else []:
        edges.setdefault(edge, draw(st.integers(0, 1)))
    return labels, edges


@st.composite
def databases(draw: st.DrawFn) -> list[Compound]:
    """A few compounds, some of them alike; one has an edge."""
    kinds = draw(st.lists(compounds(), min_size=1, max_size=4))
    some = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=6))
    return some if any(edges for _, edges in some) else [*some, ([0, 1], {(0, 1): 1})]


def write_database(path: Path, database: list[Compound]) -> None:
    lines = []
    for number, (labels, edges) in enumerate(database):
        lines += [f"t # {number}", *(f"v {vertex} {label}" for vertex, label in enumerate(labels))]
        lines += [f"e {u} {v} {label}" for (u, v), label in edges.items()]
    path.write_text("\n".join([*lines, "t # -1", ""]))


def union_of(database: list[Compound]) -> LabelledGraph:
    """The whole database as one graph; a vertex is its transaction times 100, plus its number."""
    labels, edges, transactions = {}, {}, {}
    for number, (of_vertices, of_edges) in enumerate(database):
        labels |= {100 * number + vertex: label for vertex, label in enumerate(of_vertices)}
        edges |= {(100 * number + u, 100 * number + v): label for (u, v), label in of_edges.items()}
        transactions |= dict.fromkeys((100 * number + vertex for vertex in range(len(of_vertices))), number)
    return LabelledGraph(labels, edges, transactions)


def wanted_of(graph: LabelledGraph, least: int, edges: int, vertices: int | None = None) -> GrownPatterns:
    found = {key: one for key, (_, one) in frequent(graph, edges, vertices).items()}
    return {key: (one.instances, one.transactions) for key, one in found.items() if one.transactions >= least}


@given(
    database=databases(),
    least=st.integers(1, 4),
    edges=st.integers(1, 4),
    vertices=st.sampled_from([None, None, 2, 3, 4]),
)
@quick
def test_supports_in_a_database_are_those_of_brute_force(
    engine_kind: str, database: list[Compound], least: int, edges: int, vertices: int | None
) -> None:
    least = min(least, len(database))
    bound = {"max_edges": edges} | ({} if vertices is None else {"max_vertices": vertices})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "database.txt"
        write_database(path, database)
        found = mine(engine_kind, Path(folder), {"path": str(path)}, kind="transactions", min_support=least, **bound)
    assert found == wanted_of(union_of(database), least, edges, vertices)


@given(database=databases(), least=st.integers(1, 4), vertices=st.sampled_from([None, None, 2, 3, 5]))
@quick
def test_a_database_has_the_patterns_of_gspan_mining_whatever_their_size(
    engine_kind: str, database: list[Compound], least: int, vertices: int | None
) -> None:
    least = min(least, len(database))
    bound = {} if vertices is None else {"max_vertices": vertices}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "database.txt"
        write_database(path, database)
        found = mine(engine_kind, Path(folder), {"path": str(path)}, kind="transactions", min_support=least, **bound)
        assert {key: support for key, (_, support) in found.items()} == gspan(path, least, vertices)


@given(database=databases(), least=st.integers(1, 3))
@quick
def test_transactions_of_an_ordinary_graph_are_counted_alike(
    engine_kind: str, database: list[Compound], least: int
) -> None:
    least = min(least, len(database))
    graph = union_of(database)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_lg(folder / "graph.lg", graph, edge_labels=True)
        (folder / "in.txt").write_text("".join(f"{v} {number}\n" for v, number in graph.transactions.items()))
        source = {"path": str(folder / "graph.lg"), "transactions": str(folder / "in.txt")}
        found = mine(
            engine_kind, folder, source, kind="frequent", support="transactions", min_support=least, max_edges=3
        )
        assert found == wanted_of(graph, least, 3)
        assert found == mine(engine_kind, folder, source, kind="transactions", min_support=least, max_edges=3)


EDGE, OTHER = ([1, 2], {(0, 1): 0}), ([3, 3], {(0, 1): 0})
EDGE_KEY = key_of(pattern_of(*EDGE))


@pytest.mark.parametrize(("share", "support"), [(0.07, 7), (0.069, 7), (0.0701, 8), (0.001, 1)])
def test_a_share_of_the_transactions_is_the_least_number_that_reaches_it(
    engine_kind: str, tmp_path: Path, share: float, support: int
) -> None:
    """0.07 * 100 is more than 7 in floating point; empty transactions count."""
    for number in (support - 1, support):
        database = [EDGE] * number + [OTHER]
        database += [([5], {})] * (100 - len(database))
        write_database(tmp_path / f"{number}.gspan", database)
        found = mine(
            engine_kind, tmp_path, {"path": str(tmp_path / f"{number}.gspan")}, kind="transactions", min_support=share
        )
        wanted = {EDGE_KEY: (number, number)} if number == support else {}
        assert found == wanted | ({key_of(pattern_of(*OTHER)): (1, 1)} if support == 1 else {})


def test_a_share_for_mni_is_of_the_vertices_with_an_edge(engine_kind: str, tmp_path: Path) -> None:
    path = tmp_path / "graph.lg"
    lines = [f"v {v} {v % 2}" for v in range(10)] + ["v 99 0"] + [f"e {v} {v + 1}" for v in range(0, 10, 2)]
    path.write_text("\n".join(lines))
    for share, number in ((0.5, 1), (0.51, 0)):
        found = mine(
            engine_kind, tmp_path, {"path": str(path)}, kind="frequent", support="mni", min_support=share, max_edges=2
        )
        assert [support for _, support in found.values()] == [5] * number


@pytest.fixture
def refused(tmp_path: Path, engine_kind: str):
    """Run a workload that cannot be: the message."""
    (tmp_path / "graph.txt").write_text("1 2\n2 3\n1 3\n")
    (tmp_path / "labels.txt").write_text("1 0\n2 0\n3 1\n")
    write_database(tmp_path / "database.gspan", [EDGE, EDGE])

    def run(path: str = "graph.txt", labels: str | None = None, **workload: Any) -> str:
        graph = {"path": str(tmp_path / path)} | ({} if labels is None else {"labels": str(tmp_path / labels)})
        with pytest.raises(InputError) as caught:
            mine(engine_kind, tmp_path, graph, **workload)
        message = str(caught.value)
        assert "\n" not in message
        assert not [run for run in tmp_path.iterdir() if run.name.startswith("run-")]
        return message

    return run


@each_case("least", [0, -1, 0.0, -0.5, 1.5, True, "many"])
@each_case("kind", ["frequent", "transactions"])
def test_supports_that_mean_nothing_are_refused(refused, kind: str, least: Any) -> None:
    more = {"support": "mni"} if kind == "frequent" else {}
    path = "graph.txt" if kind == "frequent" else "database.gspan"
    assert "min_support" in refused(path, kind=kind, min_support=least, max_edges=3, **more)


def test_supports_above_the_graph_are_refused(refused) -> None:
    message = refused(kind="frequent", support="mni", min_support=4, max_edges=2)
    assert "min_support" in message
    assert "3" in message
    message = refused("database.gspan", kind="transactions", min_support=3)
    assert "min_support" in message
    assert "2" in message


def test_a_share_of_instances_is_refused(refused) -> None:
    assert "min_support" in refused(kind="frequent", support="instances", min_support=0.5, max_edges=2)


def test_a_graph_without_transactions_is_refused_where_they_are_counted(
    engine_kind: str, tmp_path: Path, refused
) -> None:
    ingest(tmp_path / "graph.txt", tmp_path / "store")
    for workload in ({"kind": "transactions"}, {"kind": "frequent", "support": "transactions"}):
        message = refused("store", min_support=1, max_edges=2, **workload)
        assert "transactions" in message


def test_malformed_transactions_are_refused_with_their_line(tmp_path: Path, refused) -> None:
    (tmp_path / "database.txt").write_text("t # 0\nv 0 1\nv 1 1\ne 0 2 1\n")
    message = refused("database.txt", kind="transactions", min_support=1)
    assert message.startswith(f"{tmp_path / 'database.txt'}, line 4: vertex 2 of transaction 0 is not declared")


def test_a_support_is_needed(refused) -> None:
    assert "min_support" in refused(kind="frequent", support="mni", max_edges=2)
    assert "support" in refused(kind="frequent", support="most", min_support=2, max_edges=2)
