"""The plan of a config as text and as data, without running it: the function behind ``longwall explain``.

Searches are sampled (`longwall.pipeline.planning.prediction`) to predict how many rows and bytes they will make; phases
are (`longwall.pipeline.prediction`) to predict how long they take.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longwall.pipeline.cluster.devices import devices_of
from longwall.pipeline.cluster.machine_share import expected_streaming, share_of
from longwall.pipeline.config import RunSpec, load_config
from longwall.pipeline.inputs import describe_graph, open_beside, open_resources, plan_for, read_graph
from longwall.pipeline.quoting import round_number
from longwall.pipeline.run import COMPILING
from longwall.pipeline.run_facts import engine_facts
from longwall.storage.errors import InputError, RunError
from longwall.storage.memory.sizes import round_size
from longwall.storage.observer import NullObserver, Observer
from longwall.storage.system.arguments import brief
from longwall.storage.system.concurrency import core_count

if TYPE_CHECKING:
    from longwall.pipeline.execution.second_engine import SecondEngine
    from longwall.pipeline.planning.prediction import LevelEstimate
    from longwall.pipeline.planning.search.search_plan import MatchPlan
    from longwall.pipeline.prediction.predict import Where
    from longwall.pipeline.workloads.frequent.plan import FrequentPlan
    from longwall.storage.graph.graph import Graph
    from longwall.storage.memory.resources import Resources
    from longwall.storage.pages.placement import Placement
    from longwall.storage.streaming.stored_graph import StoredGraph

_LISTED = 3  # patterns that a line names

Part = tuple[list[str], dict[str, Any]]
"""Lines for people, and the same as data."""


@dataclass(frozen=True)
class Explanation:
    """How a config would be run."""

    text: str
    """The lines that ``longwall explain`` prints."""
    facts: dict[str, Any]
    """What JSON can hold of it; sizes are in bytes."""


def explain(
    config: Mapping[str, Any] | str | Path,
    *,
    overrides: Sequence[str] = (),
    observer: Observer | None = None,
    where: Where | None = None,
    methods: bool = False,
) -> Explanation:
    """Return the plan of a config; the graph is read and sampled, nothing is written.

    Parameters
    ----------
    config, overrides, observer
        As of `longwall.run`.
    where
        The machines for which to predict the time; None: it is not predicted.
    methods
        Whether all methods of counting are listed: which apply, and which is taken.

    Raises
    ------
    InputError
        If the config, the graph or the machine cannot do what is asked.
    """
    from longwall.kernels.jit.kernel_cache import cache_note
    from longwall.pipeline.prediction.clock import Clock
    from longwall.pipeline.prediction.describe_methods import describe_methods
    from longwall.stages.source import host_arrays
    from longwall.storage.pages.placement import place_graph
    from longwall.storage.streaming.stored_graph import StoredGraph

    observer = observer or NullObserver()
    try:
        spec = load_config(config, overrides)
        resources = open_resources(spec)
        engine = resources.engine
        if cache_note():
            observer.note(cache_note())
        with resources, engine.watch_compilation(lambda: observer.note(COMPILING)):
            resources.spill.check()
            clock = Clock()
            streaming = expected_streaming(spec, resources, devices_of(spec))
            graph = read_graph(spec, observer, resources, streaming=streaming)
            read_seconds = clock.stop().quiet(core_count())
            plan = plan_for(spec, graph)
            second = open_beside(spec, graph, resources)
            listed: list[Part] = [describe_methods(plan, spec, graph, resources)] if methods else []
            if isinstance(graph, StoredGraph):
                lies, prediction = [_describe_streaming(plan, graph, resources, streaming.processes)], []
                cost = [] if where is None else [_none("cost", "not predicted", "the graph stays in its store")]
            else:
                search = _search_of(plan)
                share = None if search is None or search.reads_whole_lists else 0.0
                placement = place_graph(host_arrays(graph), resources, spec.memory.access, share)
                lies = [*_describe_files(graph, resources), *_describe_placement(placement)]
                cost = [] if where is None else [_predict_cost(plan, spec, graph, resources, read_seconds, where)]
                prediction = _predict(plan, spec, graph, placement, resources)
    finally:
        observer.close()
    own = [_describe_plan(plan), *_describe_order(spec), *_describe_embeddings(plan, spec)]
    return _joined([_begin(spec, graph, resources, second), *lies, *own, *prediction, *cost, *listed])


def _begin(spec: RunSpec, graph: Graph, resources: Resources, second: SecondEngine | None) -> Part:
    """What is asked, and what there is to work with."""
    facts, limits, engine = describe_graph(spec, graph), resources.limits(), resources.engine
    sizes = ", ".join(f"{name} {'auto' if size is None else round_size(size)}" for name, size in limits.items())
    helped = "" if second is None else f", and cpu ({second.threads} threads) in long phases"
    lines = [
        f"workload     {spec.workload.kind}, output = {spec.workload.output}",
        f"graph        {facts['vertices']:,} vertices, {facts['edges']:,} edges, {facts['labels']} labels",
        f"engine       {engine.name} ({engine.device.name}){helped}",
        f"memory       {sizes}",
    ]
    return lines, {
        "workload": {"kind": spec.workload.kind, "output": spec.workload.output},
        "graph": facts,
        "engine": engine_facts(spec, engine, (), second),
        "memory": limits,
    }


def _describe_plan(plan: Any) -> Part:
    text = plan.describe()
    return [text], {"plan": plan.to_dict(), "plan_text": text}


def _describe_order(spec: RunSpec) -> list[Part]:
    """Return a line if the rows of a listing are sorted."""
    if not spec.export.sort:
        return []
    columns = spec.export.columns or spec.workload.column_names
    return [([f"sort         all rows by {', '.join(columns)}, once they are written"], {"sort": list(columns)})]


def _joined(parts: Sequence[Part]) -> Explanation:
    text = "\n".join(line for lines, _ in parts for line in lines)
    return Explanation(text, {key: value for _, found in parts for key, value in found.items()})


def _none(name: str, what: str, reason: object) -> Part:
    """Return the line and the fact that something is not known, and why."""
    return [f"{name:<13}{what}: {reason}"], {name: {"reason": str(reason)}}


def _describe_embeddings(plan: Any, spec: RunSpec) -> list[Part]:
    """Return a line if the patterns can have more embeddings than distinct subgraphs."""
    from longwall.pipeline.patterns.placements import labels_overlap
    from longwall.pipeline.workloads.match import Match, QueriesPlan

    if not isinstance(spec.workload, Match) or spec.workload.count != "embeddings":
        return []
    if isinstance(plan, QueriesPlan):
        found = [name for name, one in plan.queries if labels_overlap(one.pattern)]
        more = ", ..." if len(found) > _LISTED else ""
        whose = f"of {', '.join(map(brief, found[:_LISTED]))}{more} "
    else:
        found, whose = [""] * labels_overlap(plan.pattern), ""
    line = (
        f"embeddings   {whose}can be more than the distinct subgraphs: their labels fit one subgraph in several ways;\n"
        '             count = "subgraphs" counts each once'
    )
    return [([line], {"several_embeddings_per_subgraph": True})] if found else []


def _describe_placement(placement: Placement) -> list[Part]:
    """Where the graph will lie on a device; nothing where the engine works in host memory."""
    if placement.limit is None:
        return []
    pages = "" if placement.access == "resident" else f", {round_size(placement.pages)} for its pages"
    line = f"access       {placement.access}: on the device{pages}, {round_size(placement.memory)} for the work"
    facts = {"access": placement.access, "pages": placement.pages, "memory": placement.memory}
    return [([line], {"device": facts})]


def _predict_cost(
    plan: Any, spec: RunSpec, graph: Graph, resources: Resources, read_seconds: float, where: Where
) -> Part:
    """Return predicted seconds and bytes, or why there are none."""
    from longwall.pipeline.prediction.predict import (
        Unpredictable,
        cost_facts,
        cost_of,
        demand_of,
        describe_cost,
        sample_plan,
    )

    try:
        samples = sample_plan(plan, spec, graph, resources)
    except (InputError, RunError, Unpredictable) as refusal:
        return _none("cost", "not predicted", refusal)
    cost = cost_of(demand_of(samples, spec, graph, resources, read_seconds), where)
    limited = spec.limit is not None
    return describe_cost(cost, samples, limited=limited), {"cost": cost_facts(cost, samples, limited=limited)}


def _describe_files(graph: Graph, resources: Resources) -> list[Part]:
    """Say which files hold a graph that does not fit in memory."""
    if graph.files is None:
        return []
    size, options = round_size(graph.files.nbytes), resources.options
    line = (
        f"graph in     files in {options.spill}, {size}: it does not fit {resources.host.option}, "
        "so parts of the files are read when they are needed"
    )
    return [([line], {"graph_in": {"place": "files", "bytes": graph.files.nbytes}})]


def _describe_streaming(plan: Any, graph: StoredGraph, resources: Resources, processes: int) -> Part:
    """Say how a graph that stays in its store is read: by this process, or by workers that share a machine's memory."""
    from longwall.pipeline.execution.streaming.stream_phase import expected_reads

    phase = plan.streamed
    how = phase.count.describe()
    reads, lists = expected_reads(graph, phase, share_of(resources, processes)), round_size(4 * graph.num_edges)
    host, size, spill = resources.host, round_size(graph.nbytes), resources.options.spill
    budget, each, all_ = f"{host.option} is {round_size(host.limit)}", "", ""
    if processes > 1:
        budget = f"each worker has {round_size(host.limit // processes)} of {host.option}"
        each, all_ = " by each worker", ", by all workers together"
    lines = [
        f"graph in     its store: it takes {size}, and {budget}",
        f"streaming    {size} once from the store{each}, of which {lists} go to {spill}; from there about "
        f"{round_size(reads.size)} in {reads.windows:,} ranges of roots{all_}",
        *([] if how in plan.describe() else [f"streamed     {how.removeprefix('count').strip()}; the rest by degrees"]),
    ]
    return lines, {
        "graph_in": {"place": "store", "bytes": graph.nbytes, "read": reads.size, "ranges": reads.windows, "how": how}
    }


def _search_of(plan: Any) -> MatchPlan | None:
    """Return the search that a plan is, or counts by."""
    from longwall.pipeline.planning.methods.search import SearchPlan
    from longwall.pipeline.planning.plan import Choice
    from longwall.pipeline.planning.rewrites.label_partition import LabelPartitionPlan

    best = plan.best if isinstance(plan, Choice) else plan
    whole = best.inside if isinstance(best, LabelPartitionPlan) else best  # rows are as many on the graph of labels
    return whole.search if isinstance(whole, SearchPlan) else None


def _predict(plan: Any, spec: RunSpec, graph: Graph, placement: Placement, resources: Resources) -> list[Part]:
    """Return predicted rows and bytes; nothing for plans that are formulas."""
    from longwall.kernels.interface.engine import EngineLost, ShortOfMemory
    from longwall.pipeline.planning.prediction import estimate_levels
    from longwall.pipeline.workloads.frequent.plan import FrequentPlan
    from longwall.stages.source import host_arrays
    from longwall.storage.pages.placement import bring_graph

    if isinstance(plan, FrequentPlan):
        return [_predict_patterns(plan, graph, resources)]
    search = _search_of(plan)
    if search is None or search.joined:
        return []
    arrays = host_arrays(graph)
    try:
        capacity = placement.memory if placement.limit is None else placement.memory // 2
        loaded = bring_graph(arrays, resources, placement).graph
        with resources.engine.faults():
            estimates = estimate_levels(search, loaded, resources, capacity)
    except (InputError, RunError, ShortOfMemory, EngineLost) as fault:
        return [_none("prediction", "none", fault)]
    lines, facts = _describe_levels(search, estimates)
    if not search.suffix:
        more, totals = _describe_totals(search, estimates, spec, graph, resources, capacity)
        lines, facts = lines + more, facts | totals
    return [(lines, {"prediction": facts})]


def _predict_patterns(plan: FrequentPlan, graph: Graph, resources: Resources) -> Part:
    """The same for the levels of frequent patterns."""
    from longwall.kernels.interface.engine import EngineLost, ShortOfMemory
    from longwall.pipeline.execution.environment import Workplace
    from longwall.pipeline.workloads.frequent.prediction.describe_levels import describe_levels
    from longwall.pipeline.workloads.frequent.prediction.predict_levels import predict_levels

    work = Workplace(graph=graph, resources=resources, observer=NullObserver(), cancel=threading.Event())
    try:
        with resources.engine.faults():
            levels = predict_levels(plan, work)
            facts = {"exact": all(one.exact for one in levels), "levels": [asdict(one) for one in levels]}
            return describe_levels(plan, levels, resources), {"prediction": facts}
    except (InputError, RunError, ShortOfMemory, EngineLost) as fault:
        return _none("prediction", "none", fault)


def _describe_levels(plan: MatchPlan, estimates: Sequence[LevelEstimate]) -> Part:
    """Predicted rows and bytes as lines of a table, one per level."""
    exact = all(one.exact for one in estimates)
    table = [("", "rows", "" if exact else "95 % interval", "size")]
    for one in estimates:
        name = f"level {one.level}" if one.level < plan.program.depth else "count"
        interval = "" if exact else "exact" if one.exact else f"{round_number(one.low)} to {round_number(one.high)}"
        rows = f"{one.rows:,.0f}" if one.exact else round_number(one.rows)
        table.append((name, rows, interval, "not written" if plan.suffix and one.level > 1 else round_size(one.bytes)))
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    how = "exact: the search is small enough to be run for it" if exact else "by sampling"
    lines = [
        f"prediction   {how}",
        *(
            f"{name:<13}{rows:>{widths[1]}}   {interval:>{widths[2]}}   {size:>{widths[3]}}".rstrip()
            for name, rows, interval, size in table
        ),
    ]
    return lines, {"exact": exact, "levels": [asdict(one) for one in estimates]}


def _describe_totals(
    plan: MatchPlan,
    estimates: Sequence[LevelEstimate],
    spec: RunSpec,
    graph: Graph,
    resources: Resources,
    capacity: int,
) -> Part:
    """What a listing holds in memory, on disk, and writes; and whether there is room."""
    workers, option = resources.engine.workers, resources.work.option
    flight = _bytes_in_flight(estimates) * workers
    lines = [
        f"in flight    at most {round_size(flight)} in {workers} workers; "
        + (
            f"fits the {round_size(capacity)} that {option} leaves"
            if flight <= capacity
            else f"{option} leaves {round_size(capacity)}, so chunks will be shorter"
        )
    ]
    facts: dict[str, Any] = {"in_flight": flight}
    if spec.scheduler.order == "levels":
        levels, disk = _bytes_of_levels(estimates), resources.disk.limit
        fits = "fits" if levels <= disk else "does not fit"
        facts["levels_on_disk"] = levels
        lines.append(f"levels       up to {round_size(levels)} on disk, uncompressed; {fits} memory.disk")
    export = spec.export
    names = plan.pattern.columns
    chosen = export.columns or names
    written = [one for one, vertex in zip(estimates, plan.order, strict=True) if names[vertex] in chosen]
    rows = estimates[-1].rows
    size = _parquet_bytes(written, rows, graph.num_vertices)
    if spec.limit is not None and rows > spec.limit:
        size *= spec.limit / rows
    lines.append(f"export       up to about {round_size(size)} of Parquet{_fits(size, spec.run.directory)}")
    return lines, facts | {"export": round(size)}


def _bytes_in_flight(estimates: Sequence[LevelEstimate]) -> int:
    """Bytes of a worker's chunks, one per level, when they are as long as they get."""
    from longwall.pipeline.execution.worker_memory import LARGEST_CHUNK

    total = 0.0
    for level in range(1, len(estimates)):
        rows = max(estimates[level].rows, 1.0)
        # A part of the table: rows that share prefixes in the whole share them in a chunk.
        share = min(LARGEST_CHUNK / rows, 1.0)
        total += share * sum(one.bytes * min(rows / max(one.rows, 1.0), 1.0) for one in estimates[: level + 1])
    return round(total)


def _bytes_of_levels(estimates: Sequence[LevelEstimate]) -> int:
    """Most bytes of two neighbouring tables, which order = "levels" has on disk at once; the last one is exported."""
    tables = [sum(one.bytes for one in estimates[:columns]) for columns in range(2, len(estimates))]
    return max((a + b for a, b in pairwise([0, *tables])), default=0)


def _parquet_bytes(levels: Sequence[LevelEstimate], rows: float, num_vertices: int) -> float:
    """About how many bytes the exported columns take at most.

    Columns are dictionaries of ids and runs of the same value are short, so what counts is how often the value changes:
    once per node of the level. Repeated candidate sets compress further: measured were 0.25 to 1.1 times this.
    """
    return sum(min(one.rows, rows) for one in levels) * math.log2(max(num_vertices, 1)) / 8


def _fits(size: float, folder: Path | str) -> str:
    """Whether there is room for a given number of bytes, as far as that can be known."""
    if isinstance(folder, str):
        return f", to {folder}"
    free = _free_disk(folder)
    return f"; {'fits' if size <= free else 'may not fit'} the {round_size(free)} free in {folder}"


def _free_disk(folder: Path) -> int:
    import psutil

    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    return int(psutil.disk_usage(str(there)).free)
