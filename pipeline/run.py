"""One run from its config to its results: the function behind ``longwall run`` and `longwall.run`.

What is mined, and how, is in `longwall.pipeline.workloads`; this module brings graph, engine, budget and
workload together, and makes sure that a run ends whole, failed or interrupted, and says which.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longwall.pipeline.cluster.devices import devices_of, in_processes, prepare_for
from longwall.pipeline.config import RunSpec, load_config, names_run
from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.execution.environment import Metrics, PatternCount
from longwall.pipeline.finished_run import finished_result
from longwall.pipeline.functions.kept_engine import keep_engine, release_cached, take_engine
from longwall.pipeline.garbage import collecting
from longwall.pipeline.inputs import (
    describe_graph,
    open_beside,
    open_resources,
    plan_for,
    read_graph,
    require_observer,
    require_packages,
    thread_note,
)
from longwall.pipeline.label_names import with_label_names
from longwall.pipeline.memory_graph import how_to_resume, shared_graph, with_graph_again
from longwall.pipeline.progress.event_log import LOG, LoggedObserver
from longwall.pipeline.progress.history import History
from longwall.pipeline.report.publish import importing_report, publish_report
from longwall.pipeline.result import Result
from longwall.pipeline.result_tables import write_counts
from longwall.pipeline.run_facts import engine_facts, memory_facts
from longwall.pipeline.run_store.run_directory import RunDirectory
from longwall.pipeline.sort_tables import sort_embeddings
from longwall.storage.errors import FinalError, InputError, Interrupted, RunError, reason_of
from longwall.storage.observer import NullObserver, Observer
from longwall.storage.system.arguments import brief, require_texts
from longwall.storage.system.paths import require_path
from longwall.storage.system.signals import interrupted_by, interrupting, last_signal, undisturbed, unwrapped

if TYPE_CHECKING:
    from longwall.kernels.jit.compile_pool import CompilePool
    from longwall.pipeline.cluster.connect import ComingCluster
    from longwall.pipeline.execution.rows.row_stream import RowStream
    from longwall.pipeline.execution.second_engine import SecondEngine
    from longwall.pipeline.functions.kept_engine import KeptEngine
    from longwall.storage.graph.graph import Graph
    from longwall.storage.memory.resources import Resources
    from longwall.storage.memory.spill_folder import SpillFolder

_FREE_SECTIONS = ("memory", "engine", "scheduler")
COMPILING = "compiling kernels: this takes a few seconds"
_COMPILER_BYTES = 256 << 20  # of a process that compiles


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
        A TOML file, or the same sections as a mapping, in which ``"graph"`` may be a `longwall.Graph`. A mapping
        without ``run.name`` gets one that no run has yet.
    overrides
        ``"section.key=value"`` each, applied on top of `config`.
    observer
        Receives the progress; None: it is not reported.

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
        If the user interrupts, or SIGTERM or SIGHUP comes that the caller does not handle; its folder, which is the
        attribute `run` of the error, says so, and `resume` goes on with it.

    Examples
    --------
    >>> import longwall, networkx
    >>> karate = longwall.graph(networkx.karate_club_graph())
    >>> result = longwall.run({"graph": karate, "workload": {"kind": "triangles", "output": "vertices"}})
    >>> result.count, result.path.name
    (45, 'triangles')
    >>> result.table("vertices").column_names
    ['vertex', 'triangles']
    """
    with running(config, overrides=overrides, observer=observer) as result:
        return result


@contextmanager
def running(
    config: Mapping[str, Any] | str | Path, *, overrides: Sequence[str] = (), observer: Observer | None = None
) -> Iterator[Result]:
    """Run a config as `run` does. The report is written as the context ends: the answer need not wait for it."""
    require_observer(observer)
    spec = load_config(config, overrides)
    prepare_for(spec)
    fresh_name = isinstance(config, Mapping) and not names_run(config, overrides)
    directory = RunDirectory.create(spec, fresh_name=fresh_name)
    with _whole(directory, spec, observer or NullObserver(), fresh=True) as result:
        yield result


def answer(spec: RunSpec, spill: SpillFolder, observer: Observer, rows: RowStream | None = None) -> Result:
    """Run a checked config for its answer alone: nothing of the run is kept but its tables, in a spill folder.

    Parameters
    ----------
    spec
        The config.
    spill
        Has the tables of the result, if there are some, until it is closed.
    observer
        Receives the progress.
    rows
        Takes the rows of a listing; None: they are in a table of the result.

    Raises
    ------
    InputError, RunError, KeyboardInterrupt
        As `run`; there is nothing to resume.
    """
    prepare_for(spec)
    with _whole(RunDirectory.transient(spill, rows), spec, observer, fresh=True) as result:
        release_cached()
        return result


def resume(
    path: str | Path,
    *,
    overrides: Sequence[str] = (),
    observer: Observer | None = None,
    graph: Graph | None = None,
) -> Result:
    """Go on with a run that failed, was interrupted or was killed; the results are those of an undisturbed run.

    If the run is finished, its result is returned, without `Result.notes`; its report is written if it is missing.

    Parameters
    ----------
    path
        The run's folder, or its URL.
    overrides
        ``"section.key=value"`` each, for the sections ``memory``, ``engine`` and ``scheduler``, which no result depends
        on; ``"section.key="`` takes a key away.
    observer
        Receives the progress; None: it is not reported.
    graph
        The graph of the run, if it was one in memory.

    Raises
    ------
    InputError
        If the run does not exist or is still going on, or its graph, its config or its question changed.
    RunError, KeyboardInterrupt
        As `run`.

    Examples
    --------
    >>> import longwall
    >>> config = {
    ...     "graph": {"generator": {"kind": "rmat", "scale": 8, "edge_factor": 8, "seed": 1}},
    ...     "workload": {"kind": "match", "pattern": "diamond", "output": "embeddings"},
    ...     "scheduler": {"order": "levels"},
    ...     "memory": {"disk": "8KiB"},
    ...     "run": {"name": "diamonds"},
    ... }
    >>> longwall.run(config)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    longwall.storage.errors.RunError: no room for a spilled chunk ... raise memory.disk; fix that, then go on with: ...
    >>> longwall.resume("runs/diamonds", overrides=["memory.disk=1GiB"]).count
    82944
    """
    with resuming(path, overrides=overrides, observer=observer, graph=graph) as result:
        return result


@contextmanager
def resuming(
    path: str | Path,
    *,
    overrides: Sequence[str] = (),
    observer: Observer | None = None,
    graph: Graph | None = None,
) -> Iterator[Result]:
    """Go on with a run as `resume` does. The report is written as the context ends."""
    require_path("path", path, "the folder of a run, or its URL")
    require_texts("overrides", overrides, '["memory.host=8GiB"]')
    require_observer(observer)
    for override in overrides:
        if override.partition(".")[0].strip() not in _FREE_SECTIONS:
            raise InputError(f"--set {brief(override)}: a resumed run may change only {', '.join(_FREE_SECTIONS)}")
    directory, spec = RunDirectory.reopen(path, overrides)
    observer = observer or NullObserver()
    if note := directory.replacement_note():
        observer.note(note)
    if spec is None:
        with closing(directory):
            yield finished_result(directory.store, observer)
        return
    try:
        spec = with_graph_again(spec, graph, directory.where)
    except InputError:
        directory.close()
        raise
    with _whole(directory, spec, observer, fresh=False) as result:
        yield result


@contextmanager
def _whole(directory: RunDirectory, spec: RunSpec, observer: Observer, *, fresh: bool) -> Iterator[Result]:
    """Run to one of the ends of a run, and say in the folder which one it was; then report it."""
    with closing(directory), ExitStack() as later:
        metrics = Metrics()
        history = History(LoggedObserver(observer), watching=spec.run.report)
        result = _ended(directory, spec, metrics, history, later, fresh=fresh)
        try:
            yield result
        finally:
            if spec.run.report:
                publish_report(directory.store, history, metrics, values=[one.value for one in result.patterns])


def _ended(
    directory: RunDirectory, spec: RunSpec, metrics: Metrics, history: History, later: ExitStack, *, fresh: bool
) -> Result:
    """Return the result of a run that is done; of others the folder says why, and what is raised.

    `later` has what the answer need not wait for: the end of worker processes.
    """
    began, cancel = time.perf_counter(), threading.Event()
    LOG.info("%s %s in %s", "running" if fresh else "resuming", spec.workload.kind, directory.where)
    how = f"go on with: {how_to_resume(spec, directory.where)}"

    def abandon(status: str, reason: str) -> None:
        LOG.error("%s: %s", status, reason)
        if directory.abandon(status, reason, metrics) and spec.run.report:
            publish_report(directory.store, history, metrics)

    # Garbage is collected before the stack lets interrupts in again. With a reader it is not: the reader's own objects
    # must not be set apart meanwhile.
    with interrupting(), ExitStack() as ending, collecting() if directory.rows is None else nullcontext():
        try:
            try:
                with unwrapped():
                    return _run(spec, directory, metrics, cancel, history, later, began)
            finally:
                ending.enter_context(undisturbed())
        except InputError as error:
            if fresh and not directory.log.begun:
                directory.discard()
            else:
                abandon("failed", str(error))
            raise
        except KeyboardInterrupt:
            cancel.set()
            if directory.rows is not None and directory.rows.closed:
                LOG.info("ended early: no more rows are wanted")
                raise
            abandon("interrupted", f"interrupted by {last_signal().name}")
            interrupt = Interrupted(f"the finished part is kept; {how}")
            interrupt.run = str(directory.where)
            raise interrupt from None
        except (RunError, MemoryError, OSError) as error:
            cancel.set()
            reason = reason_of(error)
            abandon("failed", reason)
            if isinstance(error, FinalError):
                raise
            failure = RunError(f"{reason}; fix that, then {how}")
            failure.run = str(directory.where)
            raise failure from error
        except BaseException as error:
            cancel.set()
            reason = f"{type(error).__name__}: {error}".removesuffix(": ")
            abandon("failed", reason)
            if isinstance(error, SystemExit):  # which would end the program as if all was well
                raise FinalError(f"code that the run called raised {reason}") from error
            raise
        finally:
            history.close()


def _run(
    spec: RunSpec,
    directory: RunDirectory,
    metrics: Metrics,
    cancel: threading.Event,
    observer: History,
    later: ExitStack,
    began: float,
) -> Result:
    from longwall.pipeline.execution.engine_errors import user_errors

    require_packages(spec)
    devices = devices_of(spec)
    on_cluster = spec.scheduler.kind == "dask" or bool(devices)
    kept = None if directory.recorded else take_engine(spec)
    resources = _resources(spec.on_host() if on_cluster else spec, kept, observer)  # a coordinator needs no device
    engine = resources.engine
    with resources, ExitStack() as opened, observer.watch(resources.in_use):
        resources.spill.check()
        # Before the graph is read: the workers of a cluster are started, or read it, at the same time.
        starting = _cluster(spec, directory, resources, observer, devices, later) if on_cluster else nullcontext()
        cluster = opened.enter_context(starting)
        say_compiling = cache(lambda: observer.note(COMPILING))
        pool = opened.enter_context(_compile_pool(resources, on_cluster=on_cluster))
        _compile_beforehand(pool, spec, resources, say_compiling)
        with engine.watch_compilation(say_compiling), user_errors(engine), observer.timed("graph"):
            graph = _graph(spec, observer, resources, cluster)
        with observer.timed("plan"):
            plan = plan_for(spec, graph)
            read_on_device = _compile_for_plan(pool, plan, graph, resources, observer)
        second = open_beside(spec, graph, resources)
        engines = engine_facts(spec, engine, devices, second)
        if directory.recorded:
            facts = describe_graph(spec, graph) | {"degrees": graph.degree_powers()}
            _record(directory, {"engine": engines, "graph": facts}, plan, resources)
        env = _coordinator(directory, spec, graph, resources, observer, metrics, cancel, second)
        stop = partial(_stop, cancel, resources, second)
        env.alone, env.device_graph = not on_cluster, None if kept is None else kept.device_graph
        opened.callback(env.end)
        _bring_ahead(env, observer, wanted=read_on_device)
        if cluster is not None:
            from longwall.pipeline.cluster.connect import executor_of

            env.executor = opened.enter_context(executor_of(env, cluster))
        try:
            with (
                engine.watch_compilation(say_compiling),
                user_errors(engine),
                observer.timed("mine"),
                importing_report(wanted=directory.recorded and spec.run.report and resources.on_device),
                interrupted_by(stop, how_to_resume(spec, directory.where) if directory.recorded else ""),
                nullcontext() if directory.rows is None else directory.rows.searching(graph.notes, stop),
            ):
                counts = with_label_names(spec.workload.execute(plan, env), graph)
                sort_embeddings(env)
            _note_unless_verified(spec, counts, observer)
        finally:
            if directory.recorded:
                directory.manifest["memory"] = memory_facts(env)
    result = _publish(counts, spec, env, directory, observer, engines["name"] if on_cluster else engine.name, began)
    if not directory.recorded:
        keep_engine(spec, env)
    return result


def _resources(spec: RunSpec, kept: KeptEngine | None, observer: History) -> Resources:
    """Return the engine and the budgets of a run, those that are kept if there are some; tell what to know of them."""
    from longwall.kernels.jit.kernel_cache import cache_note
    from longwall.storage.memory.allocator import return_freed_memory

    return_freed_memory()
    resources = open_resources(spec) if kept is None else kept.resources
    threads = "" if in_processes(spec) else thread_note(spec)
    for note in filter(None, (threads, cache_note(), resources.device_note())):
        observer.note(note)
    observer.watch_budgets(resources.usage)
    return resources


def _note_unless_verified(spec: RunSpec, counts: Sequence[PatternCount], observer: Observer) -> None:
    """Tell a user who wants counts verified that no other method could."""
    workload = spec.workload
    if spec.run.verify and all(one.method is None for one in counts):
        observer.note(f"not verified: one method alone answers {workload.kind}, output = {workload.output}")


def _compile_pool(resources: Resources, *, on_cluster: bool) -> CompilePool:
    """Return the processes that compile kernels beside a run."""
    from longwall.kernels.jit.compile_pool import CompilePool

    return CompilePool(0 if on_cluster else _compilers(resources))


def _compilers(resources: Resources) -> int:
    """Return how many kernels are compiled at a time: one for each core, as far as memory allows."""
    from longwall.storage.system.concurrency import core_count

    return min(core_count(), resources.host.limit // _COMPILER_BYTES)


def _compile_beforehand(
    pool: CompilePool, spec: RunSpec, resources: Resources, say_compiling: Callable[[], None]
) -> None:
    """Compile the kernels that the source and the workload name, while the graph is read."""
    from longwall.pipeline.planning.named_kernels import kernels_of_source, kernels_of_workload

    table = None if resources.on_device else resources.engine.kernels
    if pool.add([*kernels_of_source(spec), *kernels_of_workload(spec.workload, table)]):
        say_compiling()


def _compile_for_plan(pool: CompilePool, plan: Any, graph: Graph, resources: Resources, observer: Observer) -> bool:
    """Compile the kernels that a plan names, and show the progress; return whether a device has some of them."""
    from longwall.kernels.jit.compile_pool import compile_in_threads
    from longwall.pipeline.planning.named_kernels import calls_of_plan, kernels_of_plan

    engine = resources.engine
    if resources.on_device:
        calls = calls_of_plan(plan, graph.stats.max_degree)
        compile_in_threads(engine.compilations(calls), max(_compilers(resources), 1), observer)
        return bool(calls)
    if pool.add(kernels_of_plan(plan, engine.kernels)):
        pool.show(observer)
    return False


def _bring_ahead(env: Coordinator, observer: History, *, wanted: bool) -> None:
    """Bring a small graph to the device if the plan's kernels read it there and it has not come yet."""
    from longwall.pipeline.execution.device_graph import bring_small
    from longwall.pipeline.execution.engine_errors import user_errors

    if wanted and env.device_graph is None:
        with user_errors(env.engine), observer.timed("graph"):
            bring_small(env)


def _cluster(
    spec: RunSpec,
    directory: RunDirectory,
    resources: Resources,
    observer: Observer,
    devices: Sequence[str],
    later: ExitStack,
) -> AbstractContextManager[ComingCluster]:
    """Return the cluster of a run, which is started as its context is entered; see `coming_cluster`."""
    from longwall.pipeline.cluster.connect import coming_cluster

    cores, folder = resources.engine.workers, resources.spill.path
    return coming_cluster(shared_graph(spec, resources), directory.where, cores, folder, observer, devices, later)


def _graph(spec: RunSpec, observer: Observer, resources: Resources, cluster: ComingCluster | None) -> Graph:
    """Read the graph of a run, and let the workers of its cluster have it."""
    if cluster is None:
        return read_graph(spec, observer, resources)
    graph = read_graph(spec, observer, resources, cluster.adjacency, cluster.streaming(resources.host.limit))
    cluster.share(graph, resources.host)
    return graph


def _publish(
    counts: Sequence[PatternCount],
    spec: RunSpec,
    env: Coordinator,
    directory: RunDirectory,
    history: History,
    engine: str,
    began: float,
) -> Result:
    """Write the last tables, and let the run be done."""
    from longwall.storage.pages.paged_graph import GraphPages

    workload, truncated = spec.workload, any(one.lower_bound for one in counts)
    engine = "+".join(sorted(env.executor.engines)) or engine
    with env.answer, history.timed("write"):
        if directory.recorded:
            if env.device_graph is not None and isinstance(env.device_graph.graph.pages, GraphPages):
                env.device_graph.graph.pages.write_heat(directory.path / "heat.parquet")
            write_counts(counts, env.results / "counts.parquet")
        directory.manifest |= {"timings": history.timings, "truncated": truncated}
        if methods := Counter(one.method for one in counts if one.method is not None):
            directory.manifest["methods"] = dict(methods)
        if workload.adds_up and (count := _sum(counts)) is not None:
            directory.manifest["count"] = count
        directory.finish(env.metrics)
    LOG.debug("seconds by part: %s", ", ".join(f"{name} {took:.3f}" for name, took in history.timings.items()))
    LOG.info("done in %.3f s on %s", time.perf_counter() - began, engine)
    return Result(
        path=directory.where,
        workload=workload.kind,
        count=_sum(counts) if workload.adds_up else None,
        patterns=tuple(counts),
        seconds=time.perf_counter() - began,
        engine=engine,
        timings=history.timings,
        truncated=truncated,
        notes=env.graph.notes,
        total_seconds=directory.total_seconds if "resumed" in directory.manifest else None,
    )


def _sum(counts: Sequence[PatternCount]) -> int | None:
    """Return the sum of all counts; None where one of them is no number."""
    return None if any(one.value is not None for one in counts) else sum(one.count or 0 for one in counts)


def _coordinator(
    directory: RunDirectory,
    spec: RunSpec,
    graph: Graph,
    resources: Resources,
    observer: Observer,
    metrics: Metrics,
    cancel: threading.Event,
    second: SecondEngine | None,
) -> Coordinator:
    """Return what the plan works with; what an earlier attempt finished is checked first."""
    from longwall.pipeline.execution.thread_executor import ThreadExecutor
    from longwall.pipeline.run_store.run_files import RunFiles

    log = directory.log
    log.restore(resources.disk)
    return Coordinator(
        spec=spec,
        graph=graph,
        resources=resources,
        files=RunFiles(log.store, resources.disk, log.next_number),
        observer=observer,
        cancel=cancel,
        log=log,
        metrics=metrics,
        executor=ThreadExecutor(second),
        rows=directory.rows,
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
    if "question" in before:
        began, now = before["engine"]["name"], facts["engine"]["name"]
        if began != now and "cluster" in (began, now):
            where, kind = ("on a", "dask") if began == "cluster" else ("without a", "local")
            raise InputError(
                f'{directory.where}: the run began {where} cluster: resume it with scheduler.kind = "{kind}", or start '
                "a new run"
            )
        kinds = (
            # The host may join or leave a device: both do the same tasks.
            ("engine", began.removeprefix("cpu+") != now.removeprefix("cpu+")),
            ("graph", before["graph"]["hash"] != facts["graph"]["hash"]),
            ("question", before["question"] != facts["question"]),
        )
        for what, differs in kinds:
            if differs:
                raise InputError(
                    f"{directory.where}: the run cannot be resumed, its {what} is not the one that it began with; "
                    "start a new run"
                )
    directory.manifest |= facts


def _record(directory: RunDirectory, facts: dict[str, Any], plan: Any, resources: Resources) -> None:
    """Save in the manifest what results depend on, the budgets, and the plan as text."""
    question = getattr(plan, "question", None) or plan.to_dict()
    _settle(directory, facts | {"question": question})
    budget = resources.limits()
    directory.manifest |= {"budget": budget, "plan": plan.to_dict(), "plan_text": plan.describe()}
    LOG.debug("plan: %s", directory.manifest["plan_text"])
    directory.save()


def _stop(cancel: threading.Event, resources: Resources, second: SecondEngine | None) -> None:
    """Let the worker threads end, so that the main thread does not wait for them in vain."""
    cancel.set()
    resources.engine.interrupt()
    if second is not None:
        second.interrupt()
