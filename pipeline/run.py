"""One run from its config to its results: the function behind ``longwall run`` and `longwall.run`.

What is mined, and how, is in `longwall.pipeline.workloads`; this module brings graph, engine, budget and
workload together, and makes sure that a run ends whole, failed or interrupted, and says which.
"""

from __future__ import annotations

import gc
import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from pathlib import Path, PurePosixPath
from types import NoneType
from typing import TYPE_CHECKING, Any

from longwall.pipeline.cluster.devices import devices_of
from longwall.pipeline.config import MANY_PATTERNS, RunSpec, load_config, names_run
from longwall.pipeline.execution.environment import Environment, Metrics, PatternCount
from longwall.pipeline.progress.observers import NullObserver, Observer
from longwall.pipeline.run_store.run_directory import TOO_LARGE, RunDirectory, write_counts
from longwall.pipeline.signals import interrupted_by, interrupting, last_signal, undisturbed
from longwall.storage.arguments import brief, require_methods, require_texts, require_type
from longwall.storage.errors import FinalError, InputError, RunError, reason_of
from longwall.storage.paths import require_path
from longwall.storage.remote.remote_folder import RemoteFolder

if TYPE_CHECKING:
    import pyarrow as pa

    from longwall.kernels import Engine
    from longwall.storage.graph.graph import Graph
    from longwall.storage.memory.machine_budget import Budget
    from longwall.storage.memory.reservations import Accounts
    from longwall.storage.memory.spill_folder import SpillFolder


_FREE_SECTIONS = ("memory", "engine", "scheduler")
COMPILING = "compiling kernels: this takes a few seconds"


@dataclass(frozen=True)
class Result:
    """What a run found, and where it is."""

    path: Path | str
    """The run's folder, absolute; a string where it is a URL."""
    workload: str
    """The kind of workload."""
    count: int | None
    """The answer, where one number answers; at least so many, where `truncated`."""
    patterns: tuple[PatternCount, ...]
    """The answer per pattern."""
    seconds: float
    """Time of the whole run."""
    engine: str
    """The engine that ran it: ``cpu`` or ``cuda``."""
    timings: Mapping[str, float] = field(default_factory=dict)
    """Seconds of each part of the run: ``graph``, ``plan``, ``mine``, ``write``."""
    truncated: bool = False
    """Whether ``export.limit`` ended the run: the counts are of the rows written, and there may be more."""

    def table(self, name: str = "embeddings") -> pa.Table:
        """Read a table of results.

        Parameters
        ----------
        name
            ``"embeddings"``, ``"vertices"`` or ``"counts"``; a table may lie in several files.

        Returns
        -------
        pyarrow.Table
            All rows, vertices as ids of the input.

        Raises
        ------
        InputError
            If the run wrote no such table.
        RunError
            If a file of it is damaged.
        """
        import pyarrow as pa

        from longwall.storage.parquet_files import read_parquet

        require_type("name", name, str, 'the name of a table, such as "embeddings" or "counts"')
        folder = f"{self.path}/results"
        mirror = RemoteFolder(folder) if isinstance(self.path, str) else None
        files = sorted(mirror.sizes() if mirror else (file.name for file in Path(folder).glob("*")))
        tables = [(PurePosixPath(file).stem.partition("-")[0], file) for file in files if file.endswith(".parquet")]
        wanted = [file for table, file in tables if table == name]
        if not wanted:
            there = ", ".join(sorted({table for table, _ in tables})) or "nothing"
            raise InputError(f'{folder} holds no table "{name:.60}", only {there}')
        parts = []
        for file in wanted:
            with pa.BufferReader(mirror.read(file)) if mirror else Path(folder, file).open("rb") as source:
                parts.append(read_parquet(source, f"{folder}/{file}"))
        try:
            return pa.concat_tables(parts)
        except pa.ArrowException:
            raise RunError(f'{folder}: files of the table "{name}" differ in their columns: restore them') from None

    def to_json(self) -> dict[str, Any]:
        """Return the summary that ``longwall run --json`` prints."""
        summary: dict[str, Any] = {"run": str(self.path), "workload": self.workload}
        if self.count is not None:
            summary["count"] = self.count
            if self.truncated:
                summary["lower_bound"] = True
        summary["patterns"] = [
            {key: value for key, value in asdict(one).items() if value is not None and value is not False}
            for one in self.patterns
        ]
        summary |= {"seconds": round(self.seconds, 6), "engine": self.engine}
        return summary | ({"truncated": True} if self.truncated else {})


def run(
    config: Mapping[str, Any] | str | Path,
    *,
    overrides: Sequence[str] = (),
    observer: Observer | None = None,
) -> Result:
    """Run a config.

    Parameters
    ----------
    config
        A TOML file, or the same sections as a mapping. A mapping without ``run.name`` gets one that no run has yet.
    overrides
        ``"section.key=value"`` each, applied on top of `config`.
    observer
        Told about progress; nobody is unless given.

    Returns
    -------
    Result
        The counts, and the folder with the result tables.

    Raises
    ------
    InputError
        If the config, the graph or the machine cannot do what is asked; nothing is left behind.
    RunError
        If a valid run fails; its folder says why, and `resume` goes on with it.
    KeyboardInterrupt
        If the user interrupts, or SIGTERM or SIGHUP comes that the caller does not handle; its folder says so, and
        `resume` goes on with it.
    """
    _require_observer(observer)
    spec = load_config(config, overrides)
    fresh_name = isinstance(config, Mapping) and not names_run(config, overrides)
    directory = RunDirectory.create(spec, fresh_name=fresh_name)
    return _whole(directory, spec, observer or NullObserver(), fresh=True)


def resume(path: str | Path, *, overrides: Sequence[str] = (), observer: Observer | None = None) -> Result:
    """Go on with a run that failed, was interrupted or was killed; the results are those of an undisturbed run.

    Parameters
    ----------
    path
        The run's folder, or its URL.
    overrides
        ``"section.key=value"`` each, for the sections ``memory``, ``engine`` and ``scheduler``, which no result depends
        on; ``"section.key="`` takes a key away.
    observer
        Told about progress; nobody is unless given.

    Raises
    ------
    InputError
        If there is no such run, it is finished or going on, or its graph, its config or its plan changed.
    RunError, KeyboardInterrupt
        As `run`.
    """
    require_path("path", path, "the folder of a run, or its URL")
    require_texts("overrides", overrides, '["memory.host=8GiB"]')
    _require_observer(observer)
    for override in overrides:
        if override.partition(".")[0].strip() not in _FREE_SECTIONS:
            raise InputError(f"--set {brief(override)}: a resumed run may change only {', '.join(_FREE_SECTIONS)}")
    directory, spec = RunDirectory.reopen(path, overrides)
    return _whole(directory, spec, observer or NullObserver(), fresh=False)


def _require_observer(observer: object) -> None:
    methods = ("phase", "advance", "note", "close")
    if observer is not None:
        require_methods("observer", observer, methods, f"an object with the methods {', '.join(methods)}")


def _whole(directory: RunDirectory, spec: RunSpec, observer: Observer, *, fresh: bool) -> Result:
    """Run to one of the ends of a run, and say in the folder which one it was."""
    began = time.perf_counter()
    metrics, cancel = Metrics(), threading.Event()
    how = f"go on with: longwall resume {directory.where}"
    with interrupting(), ExitStack() as ending:
        try:
            try:
                return _run(spec, directory, metrics, cancel, observer, began)
            finally:
                ending.enter_context(undisturbed())
        except InputError as error:
            if fresh and not directory.has_finished_work:
                directory.discard()
            else:
                directory.abandon("failed", str(error), metrics)
            raise
        except KeyboardInterrupt:
            cancel.set()
            directory.abandon("interrupted", f"interrupted by {last_signal().name}", metrics)
            raise KeyboardInterrupt(str(directory.where)) from None
        except (RunError, MemoryError, OSError) as error:
            cancel.set()
            reason = reason_of(error)
            directory.abandon("failed", reason, metrics)
            if isinstance(error, FinalError):
                raise
            raise RunError(f"{reason}; once that is mended, {how}") from error
        except BaseException as error:
            cancel.set()
            directory.abandon("failed", f"{type(error).__name__}: {error}", metrics)
            raise
        finally:
            directory.close()
            observer.close()
            gc.collect()  # arrays in cycles would keep the engine's device memory from the next run


def _run(
    spec: RunSpec,
    directory: RunDirectory,
    metrics: Metrics,
    cancel: threading.Event,
    observer: Observer,
    began: float,
) -> Result:
    from longwall.kernels.kernel_cache import cache_note
    from longwall.pipeline.execution.thread_executor import user_errors
    from longwall.pipeline.workloads import get_workload
    from longwall.storage.memory.allocator import return_freed_memory
    from longwall.storage.memory.reservations import Accounts
    from longwall.storage.memory.spill_folder import SpillFolder
    from longwall.storage.pages.paged_graph import GraphPages

    return_freed_memory()
    timings: dict[str, float] = {}
    devices = devices_of(spec)
    on_cluster = spec.scheduler.kind == "dask" or bool(devices)
    # The coordinator of a cluster deals work out, and needs no device.
    engine = choose_engine(spec.on_host() if on_cluster else spec)
    if cache_note():
        observer.note(cache_note())
    budget = resolve_budget(spec)
    accounts = Accounts.of(budget)
    with SpillFolder(spec.memory.spill) as spill, ExitStack() as opened:
        spill.check()
        if on_cluster:
            from longwall.pipeline.cluster.connect import cluster_of, scheduler_of

            # Before the graph is read: its workers read it at the same time.
            cluster = opened.enter_context(
                cluster_of(spec, directory.where, engine.workers, spill.path, observer, devices)
            )
        say_compiling = cache(lambda: observer.note(COMPILING))
        notes: list[str] = []
        with engine.watch_compilation(say_compiling), user_errors(engine), _timed(timings, "graph"):
            graph = read_graph(spec, observer, accounts, spill, engine, notes)
        workload = get_workload(spec.workload.kind)
        with _timed(timings, "plan"):
            plan = workload.plan(spec.workload, graph)
        _settle(
            directory,
            {
                "engine": _engine_facts(spec, engine, devices),
                "graph": describe_graph(spec, graph) | ({"columns": notes} if notes else {}),
                "plan": plan.to_dict(),
            },
        )
        directory.manifest["budget"] = asdict(budget)
        directory.save()
        checkpoint = directory.open_checkpoint()
        context = Environment(
            spec, graph, engine, budget, accounts, spill, checkpoint, directory.results, observer, metrics, cancel
        )
        if on_cluster:
            context.scheduler = opened.enter_context(scheduler_of(context, cluster, plan))
        try:
            with (
                engine.watch_compilation(say_compiling),
                user_errors(engine),
                _timed(timings, "mine"),
                interrupted_by(partial(_stop, cancel, engine)),
            ):
                counts = workload.execute(plan, context)
        finally:
            directory.manifest["memory"] = {
                name: {"limit": account.limit, "peak": account.peak}
                for name, account in (("host", accounts.host), ("disk", accounts.disk))
            }
            peak = engine.memory_peak()
            if peak is not None:
                device = {"limit": budget.device, "peak": peak.allocator, "driver": peak.driver, "before": peak.before}
                directory.manifest["memory"]["device"] = device
                metrics.record("device memory", 0, 0, 0, 0.0, peak.allocator)
            if context.on_engine is not None:
                directory.manifest["memory"]["graph"] = asdict(context.on_engine.placement)
    _require_fitting(counts, spec)
    engine_name = engine.name if context.scheduler is None else "+".join(sorted(context.scheduler.engines)) or "cluster"
    truncated = any(one.lower_bound for one in counts)
    with _timed(timings, "write"):
        if context.on_engine is not None and isinstance(context.on_engine.graph.pages, GraphPages):
            context.on_engine.graph.pages.write_heat(directory.path / "heat.parquet")
        write_counts(counts, directory.results / "counts.parquet")
        directory.manifest |= {"timings": timings, "truncated": truncated}
        directory.finish(metrics)
    return Result(
        path=directory.where,
        workload=spec.workload.kind,
        count=None if spec.workload.kind in MANY_PATTERNS else counts[0].count,
        patterns=tuple(counts),
        seconds=time.perf_counter() - began,
        engine=engine_name,
        timings=timings,
        truncated=truncated,
    )


def _settle(directory: RunDirectory, facts: dict[str, Any]) -> None:
    """Put what results depend on into the manifest; a resumed run must find there what it has.

    Raises
    ------
    InputError
        If it does not.
    """
    facts = json.loads(json.dumps(facts))
    before = directory.manifest
    if "plan" in before:
        began, now = before["engine"]["name"], facts["engine"]["name"]
        if began != now and "cluster" in (began, now):
            where, kind = ("on a", "dask") if began == "cluster" else ("without a", "local")
            raise InputError(
                f'{directory.where}: the run began {where} cluster: resume it with scheduler.kind = "{kind}", or start '
                "a new run"
            )
        kinds = (
            ("engine", began != now),
            ("graph", before["graph"]["hash"] != facts["graph"]["hash"]),
            ("plan", before["plan"] != facts["plan"]),
        )
        for what, differs in kinds:
            if differs:
                raise InputError(
                    f"{directory.where}: the run cannot be resumed, its {what} is not the one that it began with; "
                    "start a new run"
                )
    directory.manifest |= facts


def _require_fitting(counts: Sequence[PatternCount], spec: RunSpec) -> None:
    """See that the results can hold the counts, which are sums over ranges, and may be products.

    Raises
    ------
    FinalError
        If they cannot.
    """
    for one in counts:
        if one.count is not None and one.count >= TOO_LARGE:
            raise FinalError(f"about {one.count:.3g} {spec.workload.count} of {one.pattern} do not fit 64-bit integers")


def _engine_facts(spec: RunSpec, engine: Engine, devices: Sequence[str]) -> dict[str, Any]:
    """What the manifest says of the engine: of a cluster only that it is one, so that its workers may change."""
    if spec.scheduler.kind == "dask":
        return {"name": "cluster", "device": None}
    if devices:
        return {"name": "cuda", "device": f"{len(devices)} devices"}
    return {"name": engine.name, "device": engine.device}


def choose_engine(spec: RunSpec) -> Engine:
    """Return the engine that the config asks for.

    Raises
    ------
    InputError
        If this machine does not have it, or far fewer cores than threads are wanted.
    """
    from longwall.kernels import Ablation, EngineUnavailable, select_engine
    from longwall.storage.concurrency import core_count, most_threads

    if spec.engine.threads > most_threads():
        raise InputError(
            f"engine.threads: {spec.engine.threads} threads are too many for {core_count()} cores: give at most "
            f"{most_threads()}, or 0 for one per core"
        )
    plain = spec.engine.ablation
    ablation = Ablation(
        two_pass="two-pass" in plain, grouped="ungrouped" not in plain, page_order="unordered" not in plain
    )
    try:
        return select_engine(spec.engine.kind, spec.engine.threads, ablation)
    except EngineUnavailable as error:
        raise InputError(f'engine.kind = "{spec.engine.kind}": {error}') from None


def resolve_budget(spec: RunSpec) -> Budget:
    """Return the budgets of a config, what it leaves open filled in from this machine."""
    from longwall.storage.memory.machine_budget import Budget

    memory = spec.memory
    return Budget.resolve(device=memory.device, host=memory.host, disk=memory.disk, spill=memory.spill)


def read_graph(
    spec: RunSpec,
    observer: Observer,
    accounts: Accounts,
    spill: SpillFolder,
    engine: Engine,
    notes: list[str] | None = None,
) -> Graph:
    """Read, open or generate the data graph of a config, for an engine; it is booked in the host's account.

    What the observer hears of the columns that are read is appended to `notes`.

    Raises
    ------
    InputError
        If it cannot be read, naming the file and the line, or generated, naming the parameter; or it does not fit
        a budget.
    """
    from longwall.storage.memory.reservations import BudgetExceeded

    try:
        return _read_graph(spec, observer, accounts, spill, engine, [] if notes is None else notes)
    except BudgetExceeded as error:
        raise InputError(str(error)) from None  # the budgets are the user's


def _read_graph(
    spec: RunSpec, observer: Observer, accounts: Accounts, spill: SpillFolder, engine: Engine, notes: list[str]
) -> Graph:
    from longwall.storage.pages.placement import adjacency_maker

    adjacency = adjacency_maker(engine, spec.memory.access, spec.memory.device)
    if spec.graph.generator is not None:
        from longwall.storage.generators.kinds import generate

        parameters = dict(spec.graph.generator)
        kind = parameters.pop("kind")
        observer.phase(f"generating the {kind} graph", None, "edges")
        return generate(kind, **parameters, accounts=accounts, spill=spill, adjacency=adjacency)
    from longwall.storage.ingest.ingest import Reading, load_graph

    def note(text: str) -> None:
        notes.append(text)
        observer.note(text)

    assert spec.graph.path is not None
    return load_graph(
        spec.graph.path,
        spec.graph.labels,
        Reading(observer, str(spec.graph.path).rpartition("/")[2]),
        transactions=spec.graph.transactions,
        file_format=spec.file_format,
        columns=spec.graph.columns,
        accounts=accounts,
        spill=spill,
        adjacency=adjacency,
        note=note,
    )


def open_graph(
    path: str | Path,
    labels: str | Path | None = None,
    observer: Observer | None = None,
    *,
    transactions: str | Path | None = None,
    file_format: str | None = None,
    columns: tuple[str, str] | None = None,
) -> Graph:
    """Open a graph store, or read a graph file of any known format.

    Parameters
    ----------
    path
        A store made by ``longwall ingest``, or an edge list, Matrix Market, Parquet, ``.lg``, ``.graph`` or
        ``.gspan`` file, compressed (``.gz``, ``.zst``) or not.
    labels
        A file of "vertex label" lines; those of vertices without an edge are ignored.
    observer
        Told how many bytes have been read.
    transactions
        A file of "vertex transaction" lines.
    file_format
        How to read a file whose name does not say it, such as ``"transactions"`` for a database of graphs.
    columns
        The names of the two columns of an edge list or a Parquet file that hold the edges, where their names do not
        say it.

    Returns
    -------
    Graph
        Undirected and simple.

    Raises
    ------
    InputError
        If it cannot be read, naming the file and the line.
    """
    from longwall.storage.ingest.ingest import Reading, load_graph

    in_memory = "write edges that are in memory to a Parquet or text file first"
    require_path("path", path, "the path or the URL of a graph file or a graph store", in_memory)
    require_path("labels", labels, 'a file of "vertex label" lines', optional=True)
    require_path("transactions", transactions, 'a file of "vertex transaction" lines', optional=True)
    require_type("file_format", file_format, (str, NoneType), 'the name of a format, such as "edge-list"')
    _require_observer(observer)
    observer = observer or NullObserver()
    return load_graph(
        path,
        labels,
        Reading(observer, Path(path).name),
        transactions=transactions,
        file_format=file_format,
        columns=columns,
        note=observer.note,
    )


def describe_graph(spec: RunSpec, graph: Graph) -> dict[str, Any]:
    """Return what identifies the data graph, for the manifest and for ``longwall explain``."""
    source = spec.graph.generator or {"path": str(spec.graph.path)}
    return source | {
        "vertices": graph.num_vertices,
        "edges": graph.num_edges,
        "labels": graph.stats.num_labels,
        "hash": graph.content_hash,
    }


def _stop(cancel: threading.Event, engine: Engine) -> None:
    """Let the worker threads end, so that the main thread does not wait for them in vain."""
    cancel.set()
    engine.interrupt()


@contextmanager
def _timed(timings: dict[str, float], name: str) -> Iterator[None]:
    began = time.perf_counter()
    yield
    timings[name] = time.perf_counter() - began
