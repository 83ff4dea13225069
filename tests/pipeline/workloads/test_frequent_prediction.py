"""What `longwall explain` predicts of frequent patterns: exact where all fits the effort, near the truth elsewhere."""

from __future__ import annotations

import threading
import tracemalloc
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from run_configs import run_config

from longwall.pipeline.execution.environment import Workplace
from longwall.pipeline.inputs import open_graph
from longwall.pipeline.planning.stratified_sample import thinned
from longwall.pipeline.workloads.frequent.pattern_grower import PatternGrower
from longwall.pipeline.workloads.frequent.prediction import predict_levels as prediction
from longwall.pipeline.workloads.frequent.prediction.level_sample import fitting, images, spread
from longwall.pipeline.workloads.frequent.prediction.predict_levels import LevelPrediction, predict_levels
from longwall.storage.errors import InputError
from longwall.storage.generators.kinds import generate
from longwall.storage.graph.graph import Graph
from longwall.storage.observer import NullObserver

SECTIONS: dict[str, dict[str, Any]] = {
    "mni": {"min_support": 12, "max_edges": 3},
    "instances": {"support": "instances", "min_support": 30, "max_edges": 3},
    "written": {"min_support": 15, "max_edges": 2, "output": "embeddings"},
}


class Level(NamedTuple):
    """What a run finds of a level."""

    candidates: int
    patterns: int
    rows: int
    bytes: int


@pytest.fixture
def mined(lab: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The levels of a run, by their edges; candidates are counted where they are chosen."""

    def run(graph: Graph, engine: str = "cpu", **section: Any) -> dict[int, Level]:
        env = lab.context(graph, engine=engine, workload={"kind": "frequent"} | section)
        tried: dict[int, int] = {}
        real = PatternGrower.candidates

        def candidates(self: PatternGrower, extensions: Any, rows: Any) -> Any:
            found = real(self, extensions, rows)
            edges = extensions.patterns.num_edges + 1
            tried[edges] = tried.get(edges, 0) + len(found[0])
            return found

        with monkeypatch.context() as patched:
            patched.setattr(PatternGrower, "candidates", candidates)
            patterns = [
                one.pattern.count(",") + 1 for one in env.spec.workload.execute(env.spec.workload.plan(graph), env)
            ]
        env.close()
        rows = {one.level: one.rows_out for one in env.metrics.rows() if one.stage == "aggregate"}
        size = {one.level: one.bytes for one in env.metrics.rows() if one.stage == "extend"}
        return {
            edges: Level(tried.get(edges, 0), patterns.count(edges), rows[edges], size.get(edges, 0)) for edges in rows
        }

    return run


@pytest.fixture
def predicted(lab: Any) -> Any:
    """Predict levels; nothing stays reserved."""

    def predict(
        graph: Graph, engine: str = "cpu", *, threads: int = 1, host: int = 1 << 30, **given: Any
    ) -> tuple[LevelPrediction, ...]:
        options = {name: given.pop(name) for name in ("effort", "seed") if name in given}
        env = lab.context(graph, engine=engine, threads=threads, host=host, workload={"kind": "frequent"} | given)
        work = Workplace(graph=graph, resources=env.resources, observer=NullObserver(), cancel=threading.Event())
        used = env.resources.host.used
        found = predict_levels(env.spec.workload.plan(graph), work, **options)
        assert env.resources.host.used == used
        return found

    return predict


def database(path: Path, graphs: int, seed: int = 1) -> Graph:
    """Trees with a few more edges, of few labels."""
    rng, lines = np.random.default_rng(seed), []
    for number in range(graphs):
        size = int(rng.integers(8, 20))
        lines += [f"t # {number}", *(f"v {vertex} {rng.integers(4) ** 2 // 4}" for vertex in range(size))]
        lines += [
            f"e {vertex} {rng.integers(max(vertex - 3, 0), vertex)} {rng.integers(2)}" for vertex in range(1, size)
        ]
    path.write_text("\n".join([*lines, "t # -1", ""]))
    return open_graph(path)


@pytest.mark.parametrize("kind", SECTIONS)
def test_what_fits_the_effort_is_predicted_exactly(mined: Any, predicted: Any, engine_kind: str, kind: str) -> None:
    graph = generate("rmat", scale=7, edge_factor=4, seed=2, num_labels=3)
    truth, found = mined(graph, engine_kind, **SECTIONS[kind]), predicted(graph, engine_kind, **SECTIONS[kind])
    check_exact(truth, found)
    assert truth[2].patterns > 5


def check_exact(truth: dict[int, Level], found: tuple[LevelPrediction, ...]) -> None:
    assert [one.edges for one in found] == list(truth)
    for one in found:
        level = truth[one.edges]
        assert one.exact
        assert (one.candidates.value, one.patterns.value, one.rows.value) == level[:3]
        assert abs(one.bytes - level.bytes) <= 8 * (one.edges + 2)


def test_transactions_that_fit_are_predicted_exactly(mined: Any, predicted: Any, tmp_path: Path) -> None:
    graph, section = database(tmp_path / "graphs.gspan", 40), {"kind": "transactions", "min_support": 5}
    truth = mined(graph, **section)
    check_exact(truth, predicted(graph, **section))
    assert len(truth) > 3


def check_near(truth: dict[int, Level], found: tuple[LevelPrediction, ...], factor: float, least: int = 10) -> None:
    """Levels with more than a few patterns are within a factor of the truth; some of them were sampled."""
    levels = {one.edges: one for one in found}
    checked = 0
    for edges, level in truth.items():
        if level.patterns < least:
            continue
        one = levels[edges]
        pairs = [(one.candidates.value, level.candidates), (one.patterns.value, level.patterns)]
        pairs += [(one.rows.value, level.rows)] + ([(one.bytes, level.bytes)] if level.bytes else [])
        for value, true in pairs:
            assert true / factor <= value <= true * factor, (edges, one, level)
        checked += not one.exact
    assert checked


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("generator", "section"),
    [
        (
            {"kind": "erdos-renyi", "vertices": 4000, "edges": 16_000, "num_labels": 4},
            {"min_support": 120, "max_edges": 3},
        ),
        ({"kind": "rmat", "scale": 10, "edge_factor": 8, "num_labels": 3}, {"min_support": 30, "max_edges": 3}),
        (
            {"kind": "rmat", "scale": 10, "edge_factor": 6, "num_labels": 3},
            {"min_support": 500, "max_edges": 3, "support": "instances"},
        ),
    ],
    ids=["erdos-renyi", "rmat", "instances"],
)
def test_samples_of_random_graphs_are_within_a_factor_of_two(
    mined: Any, predicted: Any, generator: dict[str, Any], section: dict[str, Any], seed: int
) -> None:
    kind = dict(generator)
    graph = generate(kind.pop("kind"), seed=3, **kind)
    check_near(mined(graph, **section), predicted(graph, effort=1e6, seed=seed, **section), 2)


def test_samples_of_transactions_are_within_a_factor_of_two(mined: Any, predicted: Any, tmp_path: Path) -> None:
    """Some of the transactions are left out, and stand in for the others."""
    graph = database(tmp_path / "graphs.gspan", 2000)
    section = {"kind": "transactions", "min_support": 700, "max_edges": 5}
    check_near(mined(graph, **section), predicted(graph, effort=3e5, **section), 2, least=5)


@pytest.mark.parametrize(
    ("name", "section", "effort", "factor"),
    [
        ("hprd", {"min_support": 200, "max_edges": 3}, prediction.EFFORT, 1),
        ("hprd", {"min_support": 30, "max_edges": 3}, 1e6, 3),
        ("citeseer", {"min_support": 100, "max_edges": 4}, 1e6, 1.5),
        ("compounds", {"kind": "transactions", "min_support": 84}, prediction.EFFORT, 1),
        ("compounds", {"kind": "transactions", "min_support": 60, "max_edges": 9}, 1e7, 2),
    ],
)
@pytest.mark.slow
def test_real_graphs_are_near_the_truth(
    mined: Any, predicted: Any, data: Path, name: str, section: dict[str, Any], effort: float, factor: float
) -> None:
    if name == "compounds":
        graph = open_graph(data / "transactions" / "Compound_422.gz", file_format="transactions")
    else:
        graph = open_graph(data / "graphs" / f"{name}.edges.gz", data / "graphs" / f"{name}.labels.gz")
    truth, found = mined(graph, **section), predicted(graph, effort=effort, **section)
    if factor == 1:
        check_exact(truth, found)
    else:
        check_near(truth, found, factor)


def test_a_seed_names_a_sample(predicted: Any, engine_kind: str) -> None:
    """However many threads there are, and on any engine."""
    graph = generate("rmat", scale=9, edge_factor=6, seed=4, num_labels=3)
    section = {"min_support": 25, "max_edges": 3, "effort": 1e5}
    first = predicted(graph, **section)
    assert not first[-1].exact
    assert predicted(graph, engine_kind, threads=3, **section) == first
    assert predicted(graph, seed=1, **section) != first


def test_patterns_that_are_too_many_stand_for_others(
    mined: Any, predicted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = generate("erdos-renyi", vertices=600, edges=1800, seed=2, num_labels=4)
    section = {"support": "instances", "min_support": 1, "max_edges": 3}
    truth = mined(graph, **section)
    monkeypatch.setattr(prediction, "_PATTERNS", (16, 16))
    found = [predicted(graph, seed=seed, **section) for seed in range(12)]
    for at, edges in enumerate(truth):
        mean = np.mean(
            [(one[at].candidates.value, one[at].patterns.value, one[at].rows.value) for one in found], axis=0
        )
        assert np.all(np.abs(np.log(mean / truth[edges][:3])) < 0.35)
    assert not any(one[-1].exact for one in found)


def test_sampling_stays_in_its_budget(lab: Any, predicted: Any) -> None:
    graph = generate("rmat", scale=11, edge_factor=8, seed=4, num_labels=3)
    section = {"min_support": 60, "max_edges": 3}
    predicted(graph, effort=1e5, **section)  # kernels are loaded
    env = lab.context(graph, host=24 << 20, workload={"kind": "frequent"} | section)
    work = Workplace(graph=graph, resources=env.resources, observer=NullObserver(), cancel=threading.Event())
    before = env.resources.host.used
    tracemalloc.start()
    try:
        found = predict_levels(env.spec.workload.plan(graph), work)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert not found[-1].exact
    assert peak <= env.resources.host.peak - before + (1 << 19)
    assert env.resources.host.used == before


def test_too_little_memory_is_refused_with_a_message(predicted: Any) -> None:
    graph = generate("erdos-renyi", vertices=100, edges=300, seed=1)
    with pytest.raises(InputError, match=r"predicting patterns needs .*, memory.host leaves .*: raise memory.host"):
        predicted(graph, host=1 << 20, min_support=5)


def test_items_are_as_likely_as_the_others() -> None:
    sizes, shifts = np.array([5, 0, 64, 7]), np.array([0, 3, 3, 2])
    seen, runs = np.zeros(76), 4000
    for key in range(runs):
        places, blocks = thinned(key, sizes, shifts)
        assert (np.diff(places) > 0).all()
        assert (blocks >= 0).all()
        seen[places] += 1
    wanted = np.repeat(0.5**shifts, sizes)
    off = np.sqrt(wanted * (1 - wanted) / runs)
    assert (np.abs(seen / runs - wanted) <= 4.5 * off).all()


def test_long_sequences_are_thinned_out_first() -> None:
    sizes = np.array([3, 1000, 10, 100_000])
    assert fitting(sizes, 200_000).tolist() == [0, 0, 0, 0]
    shifts = fitting(sizes, 300)
    assert shifts[[0, 2]].tolist() == [0, 0]
    assert 100 <= (sizes >> shifts).sum() <= 300
    assert fitting(np.array([100, 100]), 1).tolist() == [8, 8]


def test_images_are_known_where_all_rows_are() -> None:
    five = np.array([5])
    assert images(five, five, five, five) == (five, np.zeros(1))
    # Of 1000 images each half has 100, and both have 10.
    found, error = images(np.array([0]), np.array([100]), np.array([100]), np.array([190]))
    assert 900 < found[0] < 1000
    assert 200 < error[0] < 300


def test_groups_say_how_far_a_sum_may_be_off() -> None:
    assert spread(7.0, np.zeros(8)).exact
    found = spread(10.0, np.array([9.0, 11, 10, 10, 9, 11, 10, 10]))
    assert found.value == 90
    assert 85 < found.low < found.value < found.high < 96


def config(**sections: Any) -> dict[str, Any]:
    given = {"kind": "erdos-renyi", "vertices": 300, "edges": 900, "seed": 1, "num_labels": 3}
    workload = {"kind": "frequent", "min_support": 10, "max_edges": 2}
    return run_config(None, {"generator": given}, workload, run={"name": "unused"}) | sections


def test_explain_predicts_levels() -> None:
    from explained import explain

    lines = explain(config()).splitlines()
    at = lines.index("prediction   exact: the patterns are few enough to be mined for it")
    assert lines[at + 1].split() == ["candidates", "frequent", "rows", "size"]
    assert [line.split()[:2] for line in lines[at + 2 : at + 4]] == [["1", "edge"], ["2", "edges"]]
    assert lines[at + 3].endswith("not written")
    assert lines[at + 4].startswith("patterns     up to about ")
    assert "; fits the " in lines[at + 5]


def test_levels_end_before_rows_that_integers_cannot_count(predicted: Any) -> None:
    """Without labels and without a largest size patterns get more embeddings with each edge."""
    graph = generate("rmat", scale=7, edge_factor=4, seed=1)
    levels = predicted(graph, min_support=20, effort=1e5)
    assert levels[0].rows.value == 2 * graph.num_edges
    assert all(0 < a.rows.value < b.rows.value < 2**63 for a, b in pairwise(levels))
    assert levels[-1].patterns.value > 0


def test_explain_says_that_patterns_are_too_many() -> None:
    from explained import explain

    given = {"kind": "rmat", "scale": 7, "edge_factor": 4, "seed": 1}
    lines = explain(config(graph={"generator": given}, workload={"kind": "frequent", "min_support": 20})).splitlines()
    (said,) = (line for line in lines if line.startswith("more edges"))
    assert "may not fit 64-bit integers; set workload.max_edges" in said


def test_explain_says_what_does_not_fit() -> None:
    from explained import explain

    many = {"kind": "erdos-renyi", "vertices": 1500, "edges": 6000, "seed": 1, "num_labels": 400}
    wanted = {"kind": "frequent", "min_support": 1, "max_edges": 2, "output": "embeddings"}
    given = config(graph={"generator": many}, workload=wanted)
    text = explain(given | {"memory": {"host": "12MiB", "disk": "150KiB"}})
    assert "in memory; does not fit the " in text
    assert "so tables are spilled; does not fit memory.disk" in text
