"""Every phase is data: it can be pickled, and its result depends neither on who does its ranges nor on their cuts."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
import pkgutil
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import networkx as nx
import numpy as np
import pyarrow.parquet as pq
import pytest
from cases import each_case
from sharing import share_every_phase
from stored import store_of

import longwall.pipeline.phases
import longwall.pipeline.workloads
import longwall.stages
from longwall.kernels.host.queries.candidate_space import QueryGraph
from longwall.kernels.interface.homomorphism_program import CodegreePattern
from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import MergingPhase, NotEnoughMemory, Phase, prepared_tasks
from longwall.pipeline.execution.second_engine import SecondEngine
from longwall.pipeline.execution.thread_executor import ThreadExecutor, begin_phase
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.phases.by_label.laid_out import ByLabel
from longwall.pipeline.phases.by_label.layouts import clique_layout, search_layout
from longwall.pipeline.phases.cores.in_core import KCore
from longwall.pipeline.phases.cores.leaf_count import LeafCount
from longwall.pipeline.phases.count_per_edge import CountPerEdge
from longwall.pipeline.phases.count_per_vertex import CountPerVertex
from longwall.pipeline.phases.degree_sums import CountTails
from longwall.pipeline.phases.derived_graph import OnDerivedGraph
from longwall.pipeline.phases.homomorphisms.count import WORD, HomomorphismCount, RowCount
from longwall.pipeline.phases.hubs.hub_free import WithoutHubs
from longwall.pipeline.phases.list_by_levels import ListLastLevel, WriteLevel
from longwall.pipeline.phases.maximal_cliques.counting import CliqueSizes, CliquesPerVertex
from longwall.pipeline.phases.maximal_cliques.limited import CliquesUpTo
from longwall.pipeline.phases.maximal_cliques.listing import CliqueList
from longwall.pipeline.phases.queries.search import QueryCount
from longwall.pipeline.phases.queries.sums import QueryTerms
from longwall.pipeline.phases.range_count import RangeCount
from longwall.pipeline.phases.search_count import SearchCount
from longwall.pipeline.phases.search_list import SearchList
from longwall.pipeline.phases.star_count import Star, StarCount
from longwall.pipeline.planning.homomorphisms.pattern_core import PassCosts
from longwall.pipeline.planning.homomorphisms.sums import plan_homomorphisms
from longwall.pipeline.planning.leaves.leaf_sums import plan_leaf_sums
from longwall.pipeline.planning.motifs.orbits_by_counting import CountHomomorphismsOfVertices
from longwall.pipeline.planning.search.search_plan import MatchPlan
from longwall.pipeline.planning.search.search_planner import plan_match
from longwall.pipeline.run_store.commit_log import PhaseRecord, checkpoint_bytes
from longwall.pipeline.run_store.run_files import RunFiles
from longwall.pipeline.workloads.custom.loading import AlgorithmClass, find_class
from longwall.pipeline.workloads.custom.phase import RunAlgorithm, stages_of
from longwall.stages.cliques.leaves import (
    CountCliquesByPivots,
    CountCliqueSizes,
    CountCliquesOfVertices,
    CountLargeCliques,
)
from longwall.stages.cliques.maximal import CountMaximalCliques, CountMaximalCliquesOfVertices
from longwall.stages.edge_counting import CountOfEdges
from longwall.stages.four_vertices import CountDiamondsOfArcs, CountFourCycles
from longwall.stages.homomorphisms.listed import CountAlmostCliques, CountListed, CountWheels
from longwall.stages.homomorphisms.pairs import CountPairs
from longwall.stages.homomorphisms.rows import CountHomomorphisms
from longwall.stages.motif_counting import CountMotifClasses, CountOrbits
from longwall.stages.orbit_counting import CountOrbitHomomorphisms
from longwall.stages.range_counting import (
    CountCliques,
    CountDiamonds,
    CountFiveCycles,
    CountOfVertices,
    CountPrisms,
    CountRanges,
    CountTrianglesOfVertices,
)
from longwall.storage.graph.derived.label_layout import LabelLayout
from longwall.storage.memory.resources import EngineChoice, open_resources
from longwall.storage.observer import NullObserver
from longwall.storage.tables.chunk_file import read_chunk

if TYPE_CHECKING:
    from longwall.storage.graph.graph import Graph

MOST_BYTES = 1 << 15  # of a pickled phase: every request to a worker of a cluster carries one
PROCESSES = 4
PLEXES = Path(__file__).parents[3] / "examples" / "plexes.py"
NOT_HERE = ("longwall.pipeline.workloads.frequent",)  # phases that need each other: see test_frequent_partitions.py


class Example(NamedTuple):
    """A phase of a class, and how its results are read."""

    make: Callable[[Coordinator], Phase]
    result: Callable[[Coordinator, Any, Sequence[Any], Sequence[dict[str, Any]]], Any]
    """Of the phase, the values of its commits, and their files."""


def plan(env: Coordinator, pattern: str, *, counting: bool) -> MatchPlan:
    return plan_match(parse_pattern(pattern), env.graph.stats, induced=False, counting=counting)


def homomorphisms(text: str) -> RangeCount:
    sums = plan_homomorphisms((parse_pattern(text),), PassCosts(1.0, 1.0, 1.0))
    assert sums is not None
    count = HomomorphismCount(sums)
    return [*count.listed.values(), *count.phases(WORD)][-1]


def stars(env: Coordinator, *, induced: bool) -> StarCount:
    star = Star.of(parse_pattern("(a)-(b:0), (a)-(c:0), (a)-(d)"), induced=induced)
    return StarCount(star, (2**31 - 1, 2**31 - 19), 1 << 40)


def with_leaves(text: str) -> RangeCount:
    sums = plan_leaf_sums((parse_pattern(text),), PassCosts(1.0, 1.0, 1.0))
    assert sums is not None
    return LeafCount(sums).phases(WORD)[-1]


def last_level(env: Coordinator) -> Phase:
    diamond = plan(env, "diamond", counting=False)
    files: tuple[dict[str, Any], ...] | None = None
    for columns in range(2, diamond.program.depth):
        files = tuple(env.run(WriteLevel(diamond, columns, files)).files())
    return ListLastLevel(diamond, diamond.program.depth, files, None)


def rows_of(env: Coordinator, phase: Phase, values: Sequence[int], files: Sequence[dict[str, Any]]) -> Any:
    found = [row for file in files for row in pq.read_table(env.results.parent / file["name"]).to_pylist()]
    assert sum(values) == len(found)
    return sorted(tuple(row.values()) for row in found)


def chunks_of(env: Coordinator, phase: Phase, values: Sequence[int], files: Sequence[dict[str, Any]]) -> Any:
    found: list[list[int]] = []
    for file in files:
        with env.files.opened(file) as path:
            table = read_chunk(path, checksum=file["checksum"], below=env.graph.num_vertices)
            found += table.columns().T.tolist()
    assert sum(values) == len(found)
    return sorted(found)


def vertex_counts(env: Coordinator, phase: Phase, values: Any, files: Sequence[dict[str, Any]]) -> Any:
    return sum(env.files.read_array(file) for file in files).tolist()  # type: ignore[union-attr]


def aggregated(env: Coordinator, phase: Any, values: Sequence[Any], files: Any) -> Any:
    return phase.aggregation.result(values)


def close_totals(env: Coordinator, phase: RangeCount, values: Sequence[Any], files: Any) -> Any:
    counts, magnitudes = phase.aggregation.result(values)
    return counts, [pytest.approx(one) for one in magnitudes]


def counts(count: CountRanges) -> Example:
    """An example of a stage that counts ranges."""
    if isinstance(count, CountOfVertices):
        return Example(lambda env: CountPerVertex(count, 1e6), vertex_counts)
    return Example(lambda env: RangeCount(count, 1e6), aggregated)


def labelled_count(env: Coordinator) -> Phase:
    search = plan_match(parse_pattern("0-1,0-2,1-2,2-3", [0, 1, 1, 0]), env.graph.stats)
    return on_layout(search_layout(search), SearchCount(search))


def labelled_list(env: Coordinator) -> Phase:
    search = plan_match(parse_pattern("0-1,0-2,1-2,2-3", [0, 1, 1, 0]), env.graph.stats, counting=False)
    return on_layout(search_layout(search), SearchList(search, None))


def diamonds(env: Coordinator) -> Phase:
    return SearchCount(plan(env, "diamond", counting=True))


def labelled_cliques(env: Coordinator) -> Phase:
    layout = clique_layout(parse_pattern("clique-4", [0, 1, 1, 0]), env.graph.stats)
    return on_layout(layout, RangeCount(CountCliques(4), 1e6))


def on_layout(layout: LabelLayout | None, phase: Phase) -> OnDerivedGraph:
    assert layout is not None
    return OnDerivedGraph(phase, ByLabel(layout))


def algorithm(env: Coordinator) -> Phase:
    name = f"{PLEXES}:Plexes"
    found, sha256 = find_class(name)
    return RunAlgorithm(AlgorithmClass(name, sha256), '{"k": 2, "size": 3}', 1e6, stages_of(found))


def found_rows(env: Coordinator, phase: RunAlgorithm, values: Sequence[Any], files: Sequence[dict[str, Any]]) -> Any:
    whole = phase.aggregation.combine(values)
    rows = rows_of(env, phase, [whole["rows"]], files)
    assert whole["found"] == len(rows)
    return rows


def clique_vertices(env: Coordinator, phase: CliquesPerVertex, values: Any, files: Sequence[dict[str, Any]]) -> Any:
    counts = np.stack([env.files.read_array(file) for file in files])
    return counts[:, [0, 2]].sum(axis=0).tolist(), counts[:, 1].max(axis=0).tolist()


COUNTS = [
    CountCliques(4),
    CountCliquesByPivots(4),
    CountLargeCliques(5),
    CountCliqueSizes(),
    CountCliquesOfVertices(4, 1),
    CountDiamondsOfArcs(),
    CountFourCycles(),
    CountDiamonds(),
    homomorphisms("0-1,1-2,2-3,3-4").count,
    CountFiveCycles(),
    CountWheels(),
    CountAlmostCliques(),
    CountPairs(CodegreePattern.CHERRY),
    CountPrisms(),
    CountMotifClasses(4),
    CountTrianglesOfVertices(),
    CountOrbits(4),
]
ORDERED_COUNTS = [
    CountMaximalCliques(2),
    CountMaximalCliquesOfVertices(2),
    CountOrbitHomomorphisms(),
    CountOfEdges("triangle", 0, 400),
]
QUERY = QueryGraph((0b0110, 0b0101, 0b1011, 0b0100), (-1, -1, -1, -1))
EXAMPLES: dict[type[Phase], list[Example]] = {
    SearchCount: [Example(lambda env: SearchCount(plan(env, "0-1,0-2,1-2,2-3", counting=True)), aggregated)],
    RangeCount: [
        counts(one)
        for one in COUNTS
        if not isinstance(one, (CountOfVertices, CountHomomorphisms, CountFiveCycles, CountListed))
    ]
    # Only their sums over all ranges are right, those of triangles included.
    + [Example(lambda env: RangeCount(CountFiveCycles(), 1e6), aggregated)],
    RowCount: [
        Example(lambda env, text=text: homomorphisms(text), close_totals)
        for text in ("0-1,1-2,2-3,3-4", "0-1,0-2,0-3,0-4,1-2,2-3,3-4,1-4,0-5,1-5", "0-1,0-2,0-3,1-2,1-3,2-4,3-4")
    ]
    + [
        Example(lambda env, text=text: homomorphisms(text), aggregated)
        for text in ("0-1,0-2,0-3,0-4,1-2,1-4,2-3,3-4", "0-1,0-2,0-3,0-4,1-2,1-3,1-4,2-3,3-4")
    ],
    CountTails: [Example(lambda env: CountTails(CountTrianglesOfVertices(), 1e6), aggregated)],
    CountPerVertex: [counts(one) for one in COUNTS if isinstance(one, CountOfVertices)],
    QueryCount: [Example(lambda env: QueryCount(QUERY, "0-1,0-2,1-2,2-3"), aggregated)],
    OnDerivedGraph: [
        Example(labelled_count, aggregated),
        Example(labelled_list, rows_of),
        Example(labelled_cliques, aggregated),
        Example(lambda env: OnDerivedGraph(diamonds(env), KCore(9)), aggregated),
        Example(lambda env: OnDerivedGraph(with_leaves("0-1,0-2,1-2,1-3,2-3,3-4"), KCore(2)), close_totals),
        Example(lambda env: OnDerivedGraph(homomorphisms("0-1,0-2,0-3,1-2,1-3,2-4,3-4"), KCore(9)), close_totals),
        Example(
            lambda env: OnDerivedGraph(SearchCount(plan(env, "diamond", counting=True)), WithoutHubs(2)), aggregated
        ),
        Example(lambda env: OnDerivedGraph(labelled_count(env), WithoutHubs(1)), aggregated),
    ],
    QueryTerms: [Example(lambda env, m=m: QueryTerms(QUERY, "0-1,0-2,1-2,2-3", m), aggregated) for m in (0, 2**31 - 1)],
    SearchList: [Example(lambda env: SearchList(plan(env, "diamond", counting=False), None), rows_of)],
    WriteLevel: [Example(lambda env: WriteLevel(plan(env, "diamond", counting=False), 2, None), chunks_of)],
    ListLastLevel: [Example(last_level, rows_of)],
    RunAlgorithm: [Example(algorithm, found_rows)],
    CliqueSizes: [Example(lambda env: CliqueSizes(CountMaximalCliques(2), 1e6), aggregated)],
    CliquesPerVertex: [Example(lambda env: CliquesPerVertex(CountMaximalCliquesOfVertices(2), 1e6), clique_vertices)],
    CountPerEdge: [
        Example(lambda env: CountPerEdge(CountOfEdges("clique-4", 0, 400), 1e6), vertex_counts),
        Example(lambda env: CountPerEdge(CountOfEdges("cycle-4", 100, 100), 1e6), vertex_counts),
    ],
    CountHomomorphismsOfVertices: [
        Example(lambda env: CountHomomorphismsOfVertices(CountOrbitHomomorphisms(), 1e6), vertex_counts)
    ],
    StarCount: [Example(partial(stars, induced=induced), aggregated) for induced in (False, True)],
    CliqueList: [Example(lambda env: CliqueList(2, None), rows_of)],
    CliquesUpTo: [Example(lambda env: CliquesUpTo(2, 10**6), aggregated)],
}


def left_out(module: str) -> bool:
    return module.startswith(NOT_HERE)


def classes_below(base: type[Any], *packages: ModuleType) -> set[type[Any]]:
    """Return the classes below another one that can be made, of some packages."""
    for package in packages:
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not left_out(module.name):
                import_module(module.name)
    found, classes = set(), [base]
    while classes:
        one = classes.pop()
        classes += one.__subclasses__()
        if not inspect.isabstract(one) and one.__module__.startswith("longwall.") and not left_out(one.__module__):
            found.add(one)
    return found


def test_every_phase_and_every_count_has_an_example() -> None:
    phases = classes_below(Phase, longwall.pipeline.phases, longwall.pipeline.workloads)
    assert phases == EXAMPLES.keys(), "change EXAMPLES"
    assert classes_below(CountRanges, longwall.stages) == {type(one) for one in [*COUNTS, *ORDERED_COUNTS]}, (
        "change COUNTS"
    )


ALL = [one for examples in EXAMPLES.values() for one in examples]
NAMES = [f"{phase.__name__}-{number}" for phase, examples in EXAMPLES.items() for number in range(len(examples))]


@pytest.fixture(scope="module")
def graph(lab: Any) -> Graph:
    made: Graph = lab.graph(nx.gnm_random_graph(60, 400, seed=1).edges, {vertex: vertex % 2 for vertex in range(60)})
    return made


class Apart:
    """Deals ranges to environments of their own, each with its own copy of the phase, as a cluster may."""

    def __init__(self) -> None:
        self.engines: set[str] = set()
        self._numbers = random.Random(1)

    def run(self, phase: Phase, env: Coordinator) -> PhaseRecord:
        pickled = pickle.dumps(phase)
        record, _, missing = begin_phase(phase, env)
        cuts = [(task.first, (task.first + task.last) // 2, task.last) for task in missing]
        ranges = [pair for cut in cuts for pair in pairwise(cut) if pair[0] < pair[1]]
        self._numbers.shuffle(ranges)
        shares = [ranges[number::PROCESSES] for number in range(PROCESSES)]
        assert all(shares)
        for share in shares:
            with self._process(env) as apart:
                mine: Phase = pickle.loads(pickled)
                mine.prepare(apart)
                with mine.open(apart) as make_worker:
                    worker = make_worker()
                    for first, last in share:
                        worker.run(first, last)
                    found = worker.take_partial()
                    worker.close()
                apart.resources.disk.charge(-checkpoint_bytes(found.files), "")
            env.resources.disk.charge(checkpoint_bytes(found.files), "what the run has finished")
            record.commit(share, found)
        return record

    @contextmanager
    def _process(self, env: Coordinator) -> Iterator[Environment]:
        """Have an environment that shares nothing with others but the config, the graph, and files."""
        store = env.files.store
        resources = open_resources(
            host=1 << 28, disk=1 << 28, device=None, spill=store.folder / "spill", engine=EngineChoice("cpu", 2)
        )
        with resources:
            made = Environment(
                spec=env.spec,
                graph=env.graph,
                resources=resources,
                files=RunFiles(store, resources.disk, lambda prefix: self._numbers.getrandbits(60), env.results),
                observer=NullObserver(),
                cancel=threading.Event(),
                alone=False,
            )
            yield made
            made.close()
            assert resources.host.used == resources.disk.used == 0


@each_case("example", ALL, ids=NAMES)
def test_a_phase_is_data(example: Example, graph: Graph, lab: Any, tmp_path: Path) -> None:
    phase = example.make(lab.context(graph, threads=2, folder=tmp_path))
    assert dataclasses.is_dataclass(phase)
    for field in dataclasses.fields(phase):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(phase, field.name, None)
    pickled = pickle.dumps(phase)
    assert pickle.loads(pickled) == phase
    assert len(pickled) <= MOST_BYTES


@each_case("example", ALL, ids=NAMES)
def test_tasks_cover_the_roots(example: Example, graph: Graph, lab: Any, tmp_path: Path) -> None:
    phase = example.make(lab.context(graph, folder=tmp_path))
    totals = set()
    for threads in (1, 3):
        tasks = prepared_tasks(phase, lab.context(graph, threads=threads, folder=tmp_path))
        assert [task.first for task in tasks] == [0, *(task.last for task in tasks[:-1])]
        assert all(task.first < task.last for task in tasks)
        assert all(task.size >= 0 for task in tasks)
        totals.add(tasks[-1].last)
    assert len(totals) == 1


class Snapshot(NamedTuple):
    """The state of a process that a phase can change."""

    used: tuple[int, ...]
    """Bytes of the budgets."""
    on_engine: tuple[int, ...]
    """The graphs on the engine: of the run, and the derived ones."""
    derived: tuple[tuple[Any, int], ...]
    files: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, env: Environment) -> Snapshot:
        resources, environments = env.resources, [env]
        environments += [one.env for one in env.derived.values() if getattr(one, "env", None) is not None]
        return cls(
            (resources.host.used, resources.work.used, resources.disk.used),
            tuple(id(one.device_graph) for one in environments),
            tuple((what, id(made)) for one in environments for what, made in one.derived.items()),
            tuple((str(path), path.stat().st_size) for path in sorted(env.results.parent.rglob("*")) if path.is_file()),
        )


def demand_no_effects(phase: Phase, env: Coordinator) -> None:
    before = Snapshot.of(env)
    with suppress(AssertionError, KeyError):  # what it reads may be missing yet
        phase.tasks(env)
    assert Snapshot.of(env) == before
    phase.prepare(env)
    before = Snapshot.of(env)
    tasks = phase.tasks(env)
    assert tasks
    assert phase.tasks(env) == tasks
    assert Snapshot.of(env) == before
    phase.prepare(env)  # again, as another phase may have been between
    assert Snapshot.of(env).used == before.used
    assert phase.tasks(env) == tasks


@each_case("example", ALL, ids=NAMES)
def test_asking_for_tasks_changes_nothing(example: Example, graph: Graph, lab: Any, tmp_path: Path) -> None:
    env = lab.context(graph, threads=2, folder=tmp_path)
    demand_no_effects(example.make(env), env)


@pytest.mark.parametrize("count", [CountCliques(3), CountTrianglesOfVertices()], ids=lambda one: one.method)
def test_asking_for_tasks_of_a_graph_that_stays_in_its_store_changes_nothing(
    count: CountRanges, graph: Graph, lab: Any, tmp_path: Path
) -> None:
    env = lab.context(store_of(graph, tmp_path / "store"), threads=2, folder=tmp_path)
    demand_no_effects(RangeCount(count, 1e6), env)


@pytest.mark.gpu
@each_case("example", ALL, ids=NAMES)
@pytest.mark.parametrize("access", ["resident", "adaptive"])
def test_asking_for_tasks_changes_nothing_on_a_device(
    example: Example, access: str, graph: Graph, lab: Any, tmp_path: Path
) -> None:
    env = lab.context(graph, engine="cuda", folder=tmp_path, memory={"access": access})
    phase = example.make(env)
    try:
        demand_no_effects(phase, env)
    except NotEnoughMemory:
        assert access == "adaptive"  # tables of arcs are for graphs that a device holds


@each_case("count", COUNTS, ids=lambda one: one.method)
def test_little_work_is_cut_into_few_tasks(count: CountRanges, graph: Graph, lab: Any, tmp_path: Path) -> None:
    env = lab.context(graph, threads=2, folder=tmp_path)
    few, many = (prepared_tasks(RangeCount(count, cost), env) for cost in (1e3, 1e9))
    assert len(few) <= 2 * (2 * graph.num_edges // 256)  # motifs: at equal lengths and at equal work
    assert len(many) > 30
    assert (few[0].first, few[-1].last) == (many[0].first, many[-1].last)


@pytest.mark.parametrize("example", ALL, ids=NAMES)
def test_a_result_does_not_depend_on_the_executor(
    example: Example, graph: Graph, lab: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    share_every_phase(monkeypatch)
    results = []
    second = SecondEngine(2)
    for name, threads, executor in (
        ("one", 2, ThreadExecutor()),
        ("apart", 2, Apart()),
        ("two", 1, ThreadExecutor(second)),
    ):
        folder = tmp_path / name
        folder.mkdir()
        env: Coordinator = lab.context(graph, threads=threads, folder=folder)
        env.executor = executor
        phase = example.make(env)
        record = env.run(phase)
        assert record.complete
        values, files = record.values, record.files()
        results.append(example.result(env, phase, values, files))
        if phase.aggregation is not None:
            results.append(example.result(env, phase, [phase.aggregation.combine(values)], files))
        if isinstance(phase, MergingPhase):
            merged = phase.merge(env, files)
            assert set(merged.replaces) == {file["name"] for file in files}
            results.append(example.result(env, phase, values, merged.files))
    assert not second.lost
    ranges = [row for row in env.metrics.rows() if row.stage == "ranges of cpu"]
    assert (len(ranges) > 1) != phase.on_host, "the other engine did nothing, or works on the same cores"
    assert all(row.tasks for row in ranges)
    assert all(result == results[0] for result in results)
    assert results[0]
