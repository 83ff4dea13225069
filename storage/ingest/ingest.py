"""The way in: any readable file, or a graph store, becomes a `Graph`, or a store."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from longwall.storage.errors import InputError
from longwall.storage.graph.graph import Graph
from longwall.storage.graph.graph_data import Ahead, NewAdjacency, in_memory, no_copies
from longwall.storage.graph.graph_store import open_store
from longwall.storage.graph.stats import GraphStats
from longwall.storage.graph.store_header import is_store
from longwall.storage.ingest.build import build_in_memory, build_store
from longwall.storage.ingest.data_notes import DataNotes, counts_line
from longwall.storage.ingest.names.label_names import LabelNames
from longwall.storage.ingest.readers.dimacs import open_dimacs
from longwall.storage.ingest.readers.edge_stream import Declared, EdgeBlock, EdgeStream, FileRequest
from longwall.storage.ingest.readers.gml import open_gml
from longwall.storage.ingest.readers.gspan import open_transactions
from longwall.storage.ingest.readers.json_elements import NODE_LINK
from longwall.storage.ingest.readers.matrix_market import open_matrix_market
from longwall.storage.ingest.readers.metis import is_metis, open_metis
from longwall.storage.ingest.readers.network_edges import open_network
from longwall.storage.ingest.readers.pajek import open_pajek
from longwall.storage.ingest.readers.tu_data_set import is_tu_data_set, open_tu_data_set
from longwall.storage.ingest.readers.vertex_edge_lines import open_graph, open_lg
from longwall.storage.ingest.readers.xml_elements import GEXF_NETWORK, GRAPHML_NETWORK
from longwall.storage.ingest.sources import Source, files_of, source_list
from longwall.storage.ingest.tables.columns import (
    EDGES,
    LABELS,
    TRANSACTIONS,
    ColumnRequest,
    TableOptions,
    require_pair,
)
from longwall.storage.ingest.tables.edge_list import LabelList, open_edge_list, open_sif
from longwall.storage.ingest.tables.parquet import ParquetLabels, open_parquet
from longwall.storage.ingest.text.input_file import Progress, format_suffix, open_input
from longwall.storage.ingest.transactions import TransactionList
from longwall.storage.ingest.vertex_labels import LabelSource
from longwall.storage.mapping.mapped_arrays import MappedArrays
from longwall.storage.memory.reservations import MemoryBudget
from longwall.storage.memory.resources import Resources, given_or_default
from longwall.storage.observer import NullObserver, Observer
from longwall.storage.remote.urls import is_url, on_disk
from longwall.storage.system.arguments import brief
from longwall.storage.system.concurrency import core_count
from longwall.storage.system.paths import user_path

_FOUND = TableOptions()
Note = Callable[[str], None]
_READERS: dict[str, Callable[[FileRequest], EdgeStream]] = {
    "edge-list": open_edge_list,
    "parquet": open_parquet,
    "graphml": partial(open_network, GRAPHML_NETWORK),
    "gexf": partial(open_network, GEXF_NETWORK),
    "gml": open_gml,
    "node-link": partial(open_network, NODE_LINK),
    "pajek": open_pajek,
    "sif": open_sif,
    "matrix-market": open_matrix_market,
    "lg": open_lg,
    "graph": open_graph,
    "transactions": open_transactions,
    "dimacs": open_dimacs,
    "metis": open_metis,
    "tu": open_tu_data_set,
}
FORMATS = (*_READERS,)
_TABLES = ("edge-list", "parquet", "graphml", "gexf", "gml", "node-link", "pajek", "sif")
_WITH_COLUMNS = ("edge-list", "parquet")
_WITH_NODES = ("graphml", "gexf", "gml", "node-link")
_SUFFIXES = {
    ".mtx": "matrix-market",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".lg": "lg",
    ".graph": "graph",
    ".gspan": "transactions",
    ".col": "dimacs",
    ".clq": "dimacs",
    ".dimacs": "dimacs",
    ".gr": "dimacs",
    ".graphml": "graphml",
    ".gexf": "gexf",
    ".gml": "gml",
    ".json": "node-link",
    ".metis": "metis",
    ".net": "pajek",
    ".pajek": "pajek",
    ".sif": "sif",
}
_OTHER_COMPRESSIONS = (".lzma", ".lz4", ".br", ".snappy", ".7z", ".rar")
_OTHER_FORMATS = (
    *(".xml", ".jsonl", ".ndjson", ".paj", ".dot", ".rdf", ".nt"),
    *(".ttl", ".npz", ".npy", ".mat", ".h5", ".hdf5", ".xlsx", ".feather", ".arrow", ".orc", ".avro"),
)
_WHAT_IS_READ = (
    "Longwall reads edge lists (.txt, .csv, .tsv, .edges, ...), .mtx, .parquet, .lg, .graph, .metis, .net, .sif, "
    ".gspan, .col, .graphml, .gexf, .gml and node-link .json files, plain or "
    "compressed as .gz, .zst, .bz2, .xz or .zip, or in a .tar archive, and graph stores"
)
_MOST_READING = 64 * 2**20  # bytes for a reader, per core


def detect_format(path: str | Path) -> str:
    """Say how a path is read: "store", "edge-list" or another of `FORMATS`.

    A graph store is known by its contents, files by their extension below .gz or the like; any other extension
    means an edge list. `NAME_A.txt` beside `NAME_graph_indicator.txt` is a data set of TU Dortmund. Databases of
    transactions have all kinds of extensions: only .gspan is known; for others, pass the format.
    """
    path = Path(path)
    if is_store(path):
        return "store"
    if is_tu_data_set(path):
        return "tu"
    return _SUFFIXES.get(format_suffix(path), "edge-list")


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
        asked = _Asked(file_format, labels, transactions, table, DataNotes(note))
        with _open(paths, asked, report, resources.host) as stream:
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
        asked = _Asked(file_format, labels, transactions, table, DataNotes(observer.note))
        with _open(files, asked, _report_reading(observer, _named(files)), resources.host) as stream:
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
        if not any(detect_format(str(one)) in _WITH_NODES for one in graph):
            raise
        raise InputError(f"{error}; an attribute of nodes is named as graph.vertex_label") from None


def _named(files: Sequence[Path]) -> str:
    return files[0].name if len(files) == 1 else f"{len(files):,} files"


@dataclass(frozen=True)
class _Asked:
    """What the caller says of a file besides its path, as for `load_graph`."""

    file_format: str | None
    labels: Path | None
    transactions: Path | None
    table: TableOptions
    notes: DataNotes
    label_names: LabelNames | None = None
    """Numbers the labels of the edges of several files."""


@contextmanager
def _open(files: Sequence[Path], asked: _Asked, progress: Progress, host: MemoryBudget) -> Iterator[EdgeStream]:
    """Begin to read files; a quarter of the free memory, within bounds, is the reader's until it ends."""
    workers, path = core_count(), files[0]
    file = FileRequest(path, min(host.free // 4, _MOST_READING * (workers + 1)), workers, progress)
    with host.reserve(file.memory, f"reading {path}") as reserved:
        stream = _reader(file, asked) if len(files) == 1 else _joined(files, file, asked, progress)
        if asked.labels is not None:
            if stream.vertex_labels is not None:
                raise InputError(f"{path}: the file has vertex labels of its own; leave out {asked.labels}")
            columns = ColumnRequest(LABELS, value=asked.table.vertex_label, notes=asked.notes)
            stream.vertex_labels = _pairs(replace(file, path=asked.labels, progress=None, columns=columns))
            stream.declared.may_be_empty = True  # it lists the vertices
        if asked.transactions is not None:
            if stream.transactions is not None:
                raise InputError(f"{path}: the file has transactions of its own; leave out {asked.transactions}")
            columns = ColumnRequest(TRANSACTIONS, notes=asked.notes)
            pairs = _pairs(replace(file, path=asked.transactions, progress=None, columns=columns))
            stream.transactions = TransactionList(pairs)
        if stream.vertex_labels is None and stream.transactions is None:
            stream.blocks = _then(stream.blocks, reserved.release)
        with stream:
            yield stream


def _reader(file: FileRequest, asked: _Asked) -> EdgeStream:
    path, chosen = file.path, asked.file_format or detect_format(file.path)
    if chosen == "graph" and asked.file_format is None and is_metis(path):
        chosen = "metis"
    if chosen == "transactions" and is_tu_data_set(path):
        chosen = "tu"  # these are transactions, too
    if chosen not in FORMATS:
        raise InputError(f"{path}: there is no format {brief(chosen)}; choose one of {', '.join(FORMATS)}")
    _check_kind(path, asked.file_format)
    table = asked.table
    if table.columns is not None:
        require_pair(table.columns, f"{path}: ")
    if chosen in _TABLES:
        if chosen not in _WITH_COLUMNS and (table.columns is not None or table.header is not None):
            raise InputError(f"{path}: {chosen} files have no columns; leave out columns and header")
        attribute = table.vertex_label if asked.labels is None else None
        if chosen not in _WITH_COLUMNS and table.empty == "drop":
            raise InputError(f"{path}: {chosen} files have no rows that can be dropped; leave out empty")
        if chosen not in _WITH_NODES and attribute is not None:
            raise InputError(
                f"{path}: vertex_label names an attribute of nodes, which this format has not; give the table whose "
                "column it is as graph.vertices, or leave it out"
            )
        if chosen not in _WITH_NODES and table.vertex_name is not None:
            raise InputError(
                f"{path}: vertex_name names an attribute of nodes, which this format has not; leave it out"
            )
        columns = ColumnRequest(
            EDGES,
            table.columns,
            table.edge_label,
            table.ids,
            table.header,
            value=attribute,
            label_names=asked.label_names,
            vertex_name=table.vertex_name,
            drops=table.empty == "drop" if chosen in _WITH_COLUMNS else None,
            notes=asked.notes,
        )
        return _READERS[chosen](replace(file, columns=columns))
    for name in table.given:
        if name == "vertex_label" and asked.labels is not None:
            continue  # a column of theirs
        raise InputError(
            f"{path}: columns are chosen in edge lists and Parquet files, not in the format {chosen}; leave out {name}"
        )
    return _READERS[chosen](replace(file, columns=ColumnRequest(EDGES, notes=asked.notes)))


def _joined(paths: Sequence[Path], file: FileRequest, asked: _Asked, progress: Progress) -> EdgeStream:
    """Read tables one after the other, as one graph; `file` is the first of them."""
    formats = {asked.file_format or detect_format(one): one for one in paths}
    chosen, path = next(iter(formats.items()))
    if chosen not in _TABLES or len(formats) > 1:
        others = f"{', '.join(map(str, formats.values()))}: files of several formats" if len(formats) > 1 else ""
        raise InputError(
            f"{others or f'{path}: several files'}; only edge lists, Parquet, GraphML, GEXF or GML files are read as "
            "one graph"
        )
    if asked.table.vertex_label is not None and asked.labels is None:
        raise InputError(f"{path}: vertex_label is read from one file; give a table of all vertices as graph.vertices")
    labels, declared = LabelNames(str(path)), Declared()
    sizes = [_size(one) for one in paths]

    def blocks() -> Iterator[EdgeBlock]:
        ids, read, texts = asked.table.ids, 0, None
        for at, (here, size) in enumerate(zip(paths, sizes, strict=True)):

            def report(done: int, total: int | None, read: int = read) -> None:  # noqa: ARG001 - a reader's
                progress(read + done, sum(sizes))

            one = replace(
                asked,
                table=replace(asked.table, ids=ids),
                label_names=labels,
                notes=asked.notes if at == 0 else DataNotes(),  # the choices are like those of the first file
            )
            with _reader(replace(file, path=here, progress=report), one) as stream:
                for block in stream.blocks:
                    if len(block.src) == 0:
                        continue
                    ids = "integers" if block.names is None else "names"
                    if block.edge_labels is not None:
                        texts = labels.used if texts is None else texts
                        _require_same_labels(here, texts, labels)
                    yield block
            declared.directed |= stream.declared.directed
            declared.directions += stream.declared.directions
            declared.may_be_empty |= stream.declared.may_be_empty
            if at > 0:
                asked.notes.take_counts(stream.notes)
            read += size

    return EdgeStream(str(path), blocks(), declared=declared, edge_label_names=labels, notes=asked.notes)


def _require_same_labels(file: Path, texts: bool, labels: LabelNames) -> None:
    """Refuse labels of edges that are integers where those of earlier files are texts, or the other way round."""
    if labels.used != texts:
        here, before = ("texts", "integers") if labels.used else ("integers", "texts")
        raise InputError(f"{file}: labels of edges are {here} here, and {before} before: write all as texts")
    labels.used = False


def _size(file: Path) -> int:
    with open_input(file) as opened:
        return os.fstat(opened.fileno()).st_size


def _check_kind(path: Path, file_format: str | None) -> None:
    """Refuse what cannot be read, whatever it holds."""
    with suppress(OSError):
        if path.is_dir():
            raise InputError(f"{path}: this is a folder, and no graph store; {_WHAT_IS_READ}")
    for suffix in (path.suffix.lower(), format_suffix(path)):
        if suffix in _OTHER_COMPRESSIONS or (file_format is None and suffix in _OTHER_FORMATS):
            raise InputError(f"{path}: {suffix} files are not read; {_WHAT_IS_READ}")


def _pairs(file: FileRequest) -> LabelSource:
    _check_kind(file.path, None)
    return ParquetLabels(file) if detect_format(file.path) == "parquet" else LabelList(file)


def _then(blocks: Iterator[EdgeBlock], end: Callable[[], None]) -> Iterator[EdgeBlock]:
    """Hand blocks on, and call `end` after the last one."""
    yield from blocks
    end()


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
