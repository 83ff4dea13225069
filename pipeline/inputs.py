"""What a config names: the resources to work with, and the data graph."""

from __future__ import annotations

import sys
import warnings
from contextlib import contextmanager, suppress
from threading import Lock, Thread
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal

from longwall.pipeline.cluster.devices import devices_of, in_processes, require_dask
from longwall.pipeline.cluster.machine_share import Streaming, share_of
from longwall.pipeline.config import RunSpec
from longwall.pipeline.workloads.sections import example_file
from longwall.storage.errors import InputError
from longwall.storage.ingest.data_notes import CHOICE, DataNote, counts_line, warn_of
from longwall.storage.observer import NullObserver, Observer
from longwall.storage.system.arguments import brief, require_methods, require_type
from longwall.storage.system.paths import require_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from longwall.pipeline.execution.second_engine import SecondEngine
    from longwall.storage.graph.graph import Graph
    from longwall.storage.graph.graph_data import Ahead, NewAdjacency, Puts
    from longwall.storage.graph.graph_store import GraphTooLarge
    from longwall.storage.mapping.mapped_arrays import MappedArrays
    from longwall.storage.memory.resources import Resources
    from longwall.storage.streaming.stored_graph import StoredGraph

# A thread that imports keeps others waiting this long at a time; Python's default is 5 ms, a fifth of a block's time.
_SWITCH_SECONDS = 0.0002
_SWITCHING = Lock()
_PLAN_ALONE = ("frequent", "transactions", "custom")  # kinds of workloads that ask no planner
_NEEDS_LEAST = ("triangles", "cliques")  # kinds of workloads that a graph in its store suffices for


def open_resources(spec: RunSpec, *, processes: int = 1, per_device: int = 1) -> Resources:
    """Open the resources that a config asks for; what it leaves open is a share of what this machine has free.

    Parameters
    ----------
    spec
        The config.
    processes, per_device
        See :func:`longwall.storage.memory.resources.open_resources`.

    Raises
    ------
    InputError
        If this machine does not have the engine, or far fewer cores than threads are wanted.
    """
    from longwall.kernels.interface.engine import Ablation
    from longwall.pipeline.functions.kept_engine import release_engine
    from longwall.storage.memory import resources
    from longwall.storage.system.concurrency import core_count, most_threads

    if spec.engine.threads > most_threads():
        raise InputError(
            f"engine.threads = {spec.engine.threads} is too many for {core_count()} cores: use at most "
            f"{most_threads()}, or 0 for one per core"
        )
    release_engine()
    plain, memory = spec.engine.ablation, spec.memory
    kind = "cuda" if spec.engine.kind == "both" else spec.engine.kind
    ablation = Ablation(
        two_pass="two-pass" in plain, grouped="ungrouped" not in plain, page_order="unordered" not in plain
    )
    _import_store_modules()
    return resources.open_resources(
        host=memory.host,
        disk=memory.disk,
        device=memory.device,
        spill=memory.spill,
        engine=resources.EngineChoice(kind, spec.engine.threads, ablation),
        processes=processes,
        per_device=per_device,
    )


def _import_store_modules() -> None:
    """Import the modules that open a store, before this thread waits for the one that opens the device."""
    import longwall.storage.ingest.ingest
    import longwall.storage.pages.placement  # noqa: F401
    from longwall.kernels.jit.machine_code import import_linker

    import_linker()


def require_packages(spec: RunSpec) -> None:
    """Refuse a run for which a package is missing, before any work is done (InputError); an engine checks its own."""
    from longwall.storage.remote.urls import file_system, is_url

    if spec.scheduler.kind == "dask" or devices_of(spec):
        require_dask(spec.scheduler)
    graph = spec.graph
    paths = graph.path if isinstance(graph.path, tuple) else (graph.path,)
    for address in (*paths, graph.labels, graph.vertices, graph.transactions):
        if isinstance(address, str) and is_url(address):
            file_system(address)


def thread_note(spec: RunSpec) -> str:
    """Say that a config asks for more threads than this process has cores; "" if it does not."""
    from longwall.storage.system.concurrency import core_count

    threads, cores = spec.engine.threads, core_count()
    if threads <= cores:
        return ""
    have = f"{cores} cores" if cores > 1 else "one core"
    return f"engine.threads = {threads}, but this process has {have}: more threads take memory and save no time"


def open_beside(spec: RunSpec, graph: Graph, resources: Resources) -> SecondEngine | None:
    """Return the engine of the host that joins long phases beside that of a device, where there shall be one.

    One core is left to the thread that waits for the device.
    """
    from longwall.pipeline.execution.second_engine import SecondEngine
    from longwall.storage.streaming.stored_graph import StoredGraph
    from longwall.storage.system.concurrency import core_count

    if spec.engine.kind != "both" or in_processes(spec) or not resources.on_device or isinstance(graph, StoredGraph):
        return None
    return SecondEngine(spec.engine.threads or max(core_count() - 1, 1))


def plan_for(spec: RunSpec, graph: Graph) -> Any:
    """Plan the workload of a config for its graph.

    Raises
    ------
    InputError
        If the graph does not have what the workload needs.
    """
    if not spec.engine.without:
        return spec.workload.plan(graph)
    from longwall.pipeline.planning.planner import PLANNER

    return spec.workload.plan(graph, PLANNER.but(*spec.engine.without))


def read_graph(
    spec: RunSpec,
    observer: Observer,
    resources: Resources,
    adjacency: NewAdjacency | None = None,
    streaming: Streaming = Streaming(),  # noqa: B008 - a tuple
) -> Graph:
    """Read, open or generate the data graph of a config, for the engine; it is reserved in the host's budget.

    A graph that does not fit the budget lies in files of the spill folder, see `MappedArrays`. If parts of it suffice,
    it stays in its store: a `StoredGraph`.

    The observer gets a note of data that is guessed, dropped or merged. `adjacency` makes the array of the neighbours;
    by default it is made where the engine wants it. `streaming` describes the processes that do the work.

    Raises
    ------
    InputError
        If it cannot be read, naming the file and the line, or generated, naming the parameter; or it does not fit
        a budget.
    """
    graph = _read_or_stream(spec, observer, resources, adjacency, streaming)
    if (read := spec.graph.source) is not None and (line := counts_line(shown_path(read), graph.notes)):
        observer.note(line)
    directions = next((note for note in graph.notes if note.kind == "directions"), None)
    if spec.graph.strict and directions is not None:
        source = "the graph" if read is None else shown_path(read)
        raise InputError(f"{source}: {directions.text}; remove graph.strict to allow it")
    return graph


def _read_or_stream(
    spec: RunSpec, observer: Observer, resources: Resources, adjacency: NewAdjacency | None, streaming: Streaming
) -> Graph:
    from longwall.storage.graph.graph_store import GraphTooLarge, open_store
    from longwall.storage.mapping.mapped_arrays import MappedArrays
    from longwall.storage.memory.reservations import BudgetExceeded
    from longwall.storage.pages.placement import adjacency_maker, copier_ahead

    files = MappedArrays(resources)
    try:
        try:
            return _read_graph(spec, observer, resources, adjacency, files, streaming.most)
        except GraphTooLarge as error:
            if (stored := _streamed(spec, error, resources, streaming)) is not None:
                return stored
            ahead = copier_ahead(resources, spec.memory.access)
            if streaming.most is not None:  # this process may have more memory than that
                with suppress(GraphTooLarge):
                    own = adjacency or adjacency_maker(resources, spec.memory.access)
                    return open_store(error.path, resources.host, own, ahead)
            try:
                return open_store(error.path, resources.host, ahead=ahead, files=files)
            except (GraphTooLarge, BudgetExceeded) as larger:
                from longwall.pipeline.execution.device_graph import NEED_LESS

                needs_least = spec.workload.kind in _NEEDS_LEAST and spec.workload.output == "count"
                advice = "" if needs_least else f"; {NEED_LESS}"
                raise InputError(f"{larger}{advice}") from None
    except BudgetExceeded as error:
        raise InputError(str(error)) from None  # the budgets are the user's


def _streamed(spec: RunSpec, error: GraphTooLarge, resources: Resources, streaming: Streaming) -> StoredGraph | None:
    """Return a graph that stays in its store, if that is what the workload can do with."""
    from longwall.pipeline.execution.streaming.stream_phase import has_room
    from longwall.storage.streaming.stored_graph import StaysInStore, open_stored

    if not streaming.wanted():
        return None
    try:
        graph = open_stored(error.path, resources.host, str(error))
    except InputError:  # too large even so, or damaged: reading all of it finds that out again
        return None
    with suppress(StaysInStore):
        phase = getattr(plan_for(spec, graph), "streamed", None)
        own, alone = share_of(resources, streaming.processes), not in_processes(spec)
        if phase is not None and has_room(graph, phase, own, alone=alone):
            return graph
    graph.close()
    return None


def _read_graph(
    spec: RunSpec,
    observer: Observer,
    resources: Resources,
    adjacency: NewAdjacency | None,
    files: MappedArrays,
    most: int | None,
) -> Graph:
    from longwall.storage.pages.placement import adjacency_maker, copier_ahead

    adjacency = adjacency or adjacency_maker(resources, spec.memory.access)
    if spec.graph.generator is not None:
        from longwall.storage.generators.kinds import generate

        parameters = dict(spec.graph.generator)
        kind = parameters.pop("kind")
        observer.phase(f"generating the {kind} graph", None, "edges")
        return generate(kind, **parameters, resources=resources, adjacency=adjacency, files=files)
    if spec.graph.in_memory is not None:
        assert spec.graph.given is not None, "the caller has it"
        resources.host.reserve(spec.graph.given.nbytes, "the graph")  # the caller's, while the run lasts
        return spec.graph.given
    from longwall.storage.ingest.ingest import load_graph
    from longwall.storage.ingest.tables.table_options import TableOptions

    assert spec.graph.source is not None
    ahead = copier_ahead(resources, spec.memory.access)
    return load_graph(
        spec.graph.source,
        spec.graph.labels or spec.graph.vertices,
        observer,
        transactions=spec.graph.transactions,
        file_format=spec.file_format,
        table=TableOptions(
            spec.graph.columns,
            spec.graph.edge_label,
            spec.graph.ids,
            spec.graph.header,
            spec.graph.vertex_label,
            spec.graph.vertex_name,
            spec.graph.empty,
        ),
        resources=resources,
        adjacency=adjacency,
        ahead=ahead if spec.workload.kind in _PLAN_ALONE or in_processes(spec) else _planner_beside(ahead),
        files=files,
        most=most,
        note=observer.note,
        directed=spec.graph.directed,
    )


def _planner_beside(ahead: Ahead) -> Ahead:
    """Import the planner, 0.2 s, while threads read the arrays of a store and this one only waits for them."""

    @contextmanager
    def importing(arrays: Mapping[str, Any]) -> Iterator[Puts]:
        thread = Thread(target=_import_planner, name="import-planner")
        thread.start()
        try:
            with ahead(arrays) as puts:
                yield puts
        finally:
            thread.join()

    return importing


def _import_planner() -> None:
    with _SWITCHING:  # of two runs the second would restore what the first one set
        interval = sys.getswitchinterval()
        sys.setswitchinterval(min(interval, _SWITCH_SECONDS))
        try:
            with suppress(Exception):  # the plan's own import says why
                import longwall.pipeline.planning.planner  # noqa: F401
        finally:
            sys.setswitchinterval(interval)


def describe_graph(spec: RunSpec, graph: Graph) -> dict[str, Any]:
    """Return what identifies the data graph, for the manifest and for ``longwall explain``."""
    from longwall.storage.ingest.sources import describe_source

    in_memory = {"memory": True} if spec.graph.in_memory is not None else None
    shipped = {"example": spec.graph.example} if spec.graph.example is not None else None
    source = in_memory or spec.graph.generator or shipped or {"path": describe_source(spec.graph.source or "")}
    choices = [note.text for note in graph.notes if note.kind == CHOICE]
    others = [note.to_dict() for note in graph.notes if note.kind != CHOICE]
    notes = ({"columns": choices} if choices else {}) | ({"notes": others} if others else {})
    return (
        source
        | notes
        | {
            "vertices": graph.num_vertices,
            "edges": graph.num_edges,
            "labels": graph.stats.num_labels,
            "hash": graph.content_hash,
        }
    )


def open_graph(
    path: str | Path | Sequence[str | Path],
    labels: str | Path | None = None,
    observer: Observer | None = None,
    *,
    transactions: str | Path | None = None,
    file_format: str | None = None,
    columns: tuple[str | int, str | int] | None = None,
    edge_label: str | int | None = None,
    vertex_label: str | None = None,
    vertex_name: str | None = None,
    ids: Literal["auto", "integers", "names"] = "auto",
    header: bool | None = None,
    empty: Literal["refuse", "drop"] = "refuse",
) -> Graph:
    r"""Open a graph store, or read a graph file of any known format.

    Parameters
    ----------
    path
        A store made by ``longwall ingest``, or an edge list, Matrix Market, Parquet, GraphML, GEXF, GML, node-link
        JSON, DIMACS, METIS, Pajek, SIF, ``.lg``, ``.graph`` or ``.gspan`` file, compressed (``.gz``, ``.zst``,
        ``.bz2``, ``.xz``, ``.zip``) or not. Edge lists or Parquet files also as a list, a folder, or a pattern such as
        ``"data/*.csv"``.
    labels
        A file of "vertex label" lines, or a table with columns such as id and label; labels of vertices without an edge
        are ignored.
    observer
        Receives the number of bytes that have been read.
    transactions
        A file of "vertex transaction" lines.
    file_format
        How to read a file whose name does not say it, such as ``"transactions"`` for a database of graphs.
    columns
        The two columns of an edge list or a Parquet file that hold the edges, by their names or their numbers from 1,
        where their names do not say it.
    edge_label
        The column, or the attribute, that holds the labels of the edges.
    vertex_label
        The attribute of nodes that labels them, in GraphML, GEXF and GML; or the column of a table of `labels`.
    vertex_name
        The attribute of nodes in GraphML, GEXF and GML with the names of the vertices; by default the ids of the nodes
        are their names, or, in GML, their labels.
    ids
        Whether vertices are ``"integers"`` or have ``"names"``; by default the first rows say it.
    header
        Whether the first line of a text names the columns; by default that is said by the first rows, too.
    empty
        ``"drop"``: drop and count the rows of an edge list or a Parquet file that lack one of their ends; by default
        such rows are refused.

    Returns
    -------
    Graph
        Undirected and simple; a `longwall.DataNote` warns of dropped or merged data, and `Graph.notes` keeps it.

    Raises
    ------
    InputError
        If it cannot be read, naming the file and the line.

    Examples
    --------
    >>> import longwall
    >>> from pathlib import Path
    >>> _ = Path("calls.csv").write_text("caller,callee,minutes\nann,bob,3\nbob,cleo,5\n")
    >>> calls = longwall.open_graph("calls.csv", columns=("caller", "callee"))
    >>> calls
    <longwall.Graph: 3 vertices, 2 edges>
    >>> sorted(calls.all_ids().to_pylist())
    ['ann', 'bob', 'cleo']
    """
    from longwall.storage.ingest.ingest import load_graph
    from longwall.storage.ingest.tables.table_options import TableOptions

    in_memory = "longwall.graph takes edges that are in memory"
    for one in path if isinstance(path, list | tuple) and path else (path,):
        require_path("path", one, "the path or the URL of a graph file or a graph store", in_memory)
    require_path("labels", labels, 'a file of "vertex label" lines', optional=True)
    require_path("transactions", transactions, 'a file of "vertex transaction" lines', optional=True)
    require_type("vertex_label", vertex_label, (str, NoneType), "the name of an attribute or a column")
    require_type("vertex_name", vertex_name, (str, NoneType), "the name of an attribute")
    require_type("file_format", file_format, (str, NoneType), 'the name of a format, such as "edge-list"')
    require_observer(observer)
    if ids not in ("auto", "integers", "names"):
        raise InputError(f'ids: expected "auto", "integers" or "names", not {brief(ids)}')
    if empty not in ("refuse", "drop"):
        raise InputError(f'empty: expected "refuse" or "drop", not {brief(empty)}')
    observer = observer or NullObserver()
    graph = load_graph(
        path,
        labels,
        observer,
        transactions=transactions,
        file_format=file_format,
        table=TableOptions(columns, edge_label, ids, header, vertex_label, vertex_name, empty),
        note=observer.note,
    )
    if line := counts_line(shown_path(path), graph.notes):
        observer.note(line)
    warn_of(shown_path(path), graph.notes)
    return graph


def example(name: Literal["karate"]) -> Graph:
    """Open a small graph that comes with Longwall, to try functions on.

    Parameters
    ----------
    name
        ``"karate"``: the 34 members of a karate club, numbered from 1, and their 78 friendships, as W. W. Zachary
        lists them in "An information flow model for conflict and fission in small groups" (1977).

    Returns
    -------
    Graph
        Without labels.

    Raises
    ------
    InputError
        If there is no example of that name.

    Examples
    --------
    >>> import longwall
    >>> karate = longwall.example("karate")
    >>> karate
    <longwall.Graph: 34 vertices, 78 edges>
    >>> longwall.count(karate, "diamond")
    151
    """
    if name != "karate":
        raise InputError(f'example: expected "karate", not {brief(name)}')
    return open_graph(example_file(name))


def open_observed(path: Path, observer: Observer, **options: Any) -> Graph:
    """Open a graph as `open_graph` does, for a user who sees the notes of the observer and needs no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataNote)
        return open_graph(path, observer=observer, **options)


def shown_path(path: str | Path | Sequence[str | Path]) -> str:
    """Return the path of a graph for a message."""
    return str(path[0]) if isinstance(path, list | tuple) and len(path) == 1 else str(path)


def require_observer(observer: object) -> None:
    """Refuse what cannot receive the progress of a run (InputError)."""
    methods = ("phase", "advance", "note", "close")
    if observer is not None:
        require_methods("observer", observer, methods, f"an object with the methods {', '.join(methods)}")
