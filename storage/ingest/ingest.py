"""The way in: any readable file, or a graph store, becomes a `Graph`, or a store."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from longwall.storage.errors import InputError
from longwall.storage.graph.graph import Graph
from longwall.storage.graph.graph_data import Ahead, NewAdjacency, in_memory, no_copies
from longwall.storage.graph.graph_store import open_store
from longwall.storage.graph.stats import GraphStats
from longwall.storage.graph.store_header import is_store
from longwall.storage.ingest.data_notes import DataNotes, counts_line
from longwall.storage.ingest.formats import WITH_NODES, detect_format
from longwall.storage.ingest.sources import Source, files_of, source_list
from longwall.storage.ingest.tables.table_options import TableOptions
from longwall.storage.ingest.text.input_file import Progress, open_input
from longwall.storage.mapping.mapped_arrays import MappedArrays
from longwall.storage.memory.resources import Resources, given_or_default
from longwall.storage.observer import NullObserver, Observer
from longwall.storage.remote.urls import is_url, on_disk
from longwall.storage.system.paths import user_path

_FOUND = TableOptions()
Note = Callable[[str], None]


def load_graph(
    path: Source,
    labels: str | Path | None = None,
    observer: Observer | None = None,
    *,
    transactions: str | Path | None = None,
    file_format: str | None = None,
    table: TableOptions = _FOUND,
    resources: Resources | None = None,
    adjacency: NewAdjacency = in_memory,
    ahead: Ahead = no_copies,
    files: MappedArrays | None = None,
    most: int | None = None,
    note: Note = lambda text: None,  # noqa: ARG005 - drops what it is given
    directed: bool = False,
) -> Graph:
    """Open a graph store, or read a file of any format and build the graph in memory.

    Parameters
    ----------
    path
        A graph store or a file, see `detect_format`; or several tables of edges that are one graph: a list of files, a
        folder, a pattern of names. Here and below, a URL that fsspec reads is as good as a path.
    labels
        A file of "vertex label" lines (compressed or not), or a Parquet file with columns vertex and label.
        Every vertex with an edge needs a label; a label of any other vertex is ignored, unless `path` says which
        vertices there are (Matrix Market does) and it is none of them.
    observer
        Receives the progress of reading a file, in bytes.
    transactions
        A file of "vertex transaction" lines, or a Parquet file with two such columns: the transaction, an integer id,
        of every vertex with an edge. An edge may not join two transactions. Other vertices are as for `labels`.
    file_format
        How to read the file, in the words of `detect_format`, which is asked if this is not given; a store is a store
        whatever is given.
    table
        The columns of an edge list or a Parquet file to read, and their meaning, if their names and the first rows do
        not show it; see `tables.columns`.
    resources
        Budgets and spill folder; if not given, this machine's defaults, and `spill` in the working folder. The graph's
        `nbytes` stay reserved in `resources.host`.
    adjacency
        Makes the array of the neighbours.
    ahead
        Takes pieces of the arrays of a store as soon as they are read.
    files
        Makes the arrays that do not fit the host's budget, if `path` is no store; None: all must fit.
    most
        Most bytes of the graph of a store, see `open_store`.
    note
        Called with a line for each guess, such as the columns of a table. `Graph.notes` has these lines, too, and the
        counts of dropped and merged data.
    directed
        Whether the edges of a file have directions: these are dropped and counted.

    Raises
    ------
    InputError
        The file or the labels cannot be read or do not make a graph, the message names file and line; or a store is
        damaged.
    RunError
        A budget or the disk is too small.
    """
    with _inputs(path, labels, transactions, resources) as (inputs, resources):
        paths, labels, transactions = inputs
        report = _report_reading(observer or NullObserver(), _named(paths))
        if detect_format(path := paths[0]) == "store":
            given = [name for name, value in (("labels", labels), ("transactions", transactions)) if value is not None]
            for name in (*given, *table.given):
                raise InputError(f"{path}: a graph store keeps its own {name}; leave {name} out, or ingest with them")
            return open_store(path, resources.host, adjacency, ahead, most=most)
        from longwall.storage.ingest.build import build_in_memory
        from longwall.storage.ingest.open_files import FileOptions, open_files

        asked = FileOptions(file_format, labels, transactions, table, DataNotes(note))
        with open_files(paths, asked, report, resources.host) as stream:
            stream.declared.directed |= directed
            return build_in_memory(stream, resources, adjacency=adjacency, files=files)


def ingest(
    path: Source,
    store: str | Path,
    labels: str | Path | None = None,
    *,
    transactions: str | Path | None = None,
    file_format: str | None = None,
    table: TableOptions = _FOUND,
    resources: Resources | None = None,
    observer: Observer | None = None,
) -> GraphStats:
    """Turn a file of any size into a graph store, which appears complete or not at all.

    Parameters
    ----------
    path, labels, transactions, file_format, table, resources
        As for `load_graph`; `path` is no store.
    store
        The store to make.
    observer
        Receives the progress.

    Raises
    ------
    InputError, RunError
        As `load_graph`; or the store exists or cannot be written.
    """
    observer = observer or NullObserver()
    with _inputs(path, labels, transactions, resources) as (inputs, resources):
        files, labels, transactions = inputs
        if detect_format(path := files[0]) == "store":
            raise InputError(f"{path}: this is a graph store already; copy the folder, or give a graph file")
        from longwall.storage.ingest.build import build_store
        from longwall.storage.ingest.open_files import FileOptions, open_files

        asked = FileOptions(file_format, labels, transactions, table, DataNotes(observer.note))
        with open_files(files, asked, _report_reading(observer, _named(files)), resources.host) as stream:
            stats = build_store(stream, store, resources, observer)
        if line := counts_line(stream.source, stream.notes.all()):
            observer.note(line)
        return stats


@contextmanager
def _inputs(
    path: Source,
    labels: str | Path | None,
    transactions: str | Path | None,
    resources: Resources | None,
) -> Iterator[tuple[tuple[list[Path], Path | None, Path | None], Resources]]:
    """Open resources, and copy inputs at URLs to the disk; yields the files of graph, labels and transactions."""
    with ExitStack() as opened:
        known = opened.enter_context(given_or_default(resources))

        def local(address: str | Path) -> Path:
            return opened.enter_context(on_disk(address, known))

        def local_if_given(address: str | Path | None) -> Path | None:
            return None if address is None else local(address)

        if not (isinstance(path, str | Path) and is_store(path)):
            for address in (labels, transactions):
                if address is not None and not is_url(address):
                    _require_file(address, source_list(path))
        files = files_of([local(address) for address in source_list(path)])
        yield (files, local_if_given(labels), local_if_given(transactions)), known


def _require_file(address: str | Path, graph: Sequence[str | Path]) -> None:
    """Refuse a file of labels that cannot be opened; to miss it once a large graph is read would be late."""
    try:
        open_input(user_path(address)).close()
    except InputError as error:
        if not any(detect_format(str(one)) in WITH_NODES for one in graph):
            raise
        raise InputError(f"{error}; an attribute of nodes is named as graph.vertex_label") from None


def _named(files: Sequence[Path]) -> str:
    return files[0].name if len(files) == 1 else f"{len(files):,} files"


def _report_reading(observer: Observer, name: str) -> Progress:
    """Return a callback that reports "bytes so far, bytes in all" of a reader as a phase of its own."""
    reported: int | None = None

    def report(done: int, total: int | None) -> None:
        nonlocal reported
        if reported is None:
            observer.phase(f"reading {name}", total, "bytes")
            reported = 0
        observer.advance(done - reported)
        reported = done

    return report
