"""Open files of any format as edges, labels and transactions: choose the reader, and refuse options that it lacks."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from longwall.storage.errors import InputError
from longwall.storage.ingest.data_notes import DataNotes
from longwall.storage.ingest.formats import WITH_NODES, detect_format
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
from longwall.storage.ingest.readers.tu_data_set import open_tu_data_set
from longwall.storage.ingest.readers.vertex_edge_lines import open_graph, open_lg
from longwall.storage.ingest.readers.xml_elements import GEXF_NETWORK, GRAPHML_NETWORK
from longwall.storage.ingest.tables.columns import EDGES, LABELS, TRANSACTIONS, ColumnRequest, require_pair
from longwall.storage.ingest.tables.edge_list import LabelList, open_edge_list, open_sif
from longwall.storage.ingest.tables.parquet import ParquetLabels, open_parquet
from longwall.storage.ingest.tables.table_options import TableOptions
from longwall.storage.ingest.text.input_file import Progress, format_suffix, open_input
from longwall.storage.ingest.text.tu_files import is_tu_data_set
from longwall.storage.ingest.transactions import TransactionList
from longwall.storage.ingest.vertex_labels import LabelSource
from longwall.storage.memory.reservations import MemoryBudget
from longwall.storage.system.arguments import brief
from longwall.storage.system.concurrency import core_count

READERS: dict[str, Callable[[FileRequest], EdgeStream]] = {
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
FORMATS = (*READERS,)
_TABLES = ("edge-list", "parquet", "graphml", "gexf", "gml", "node-link", "pajek", "sif")
_WITH_COLUMNS = ("edge-list", "parquet")
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


@dataclass(frozen=True)
class FileOptions:
    """The caller's options for files, as for `load_graph`."""

    file_format: str | None
    labels: Path | None
    transactions: Path | None
    table: TableOptions
    notes: DataNotes
    label_names: LabelNames | None = None
    """Numbers the labels of the edges of several files."""


@contextmanager
def open_files(
    files: Sequence[Path], asked: FileOptions, progress: Progress, host: MemoryBudget
) -> Iterator[EdgeStream]:
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


def _reader(file: FileRequest, asked: FileOptions) -> EdgeStream:
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
        if chosen not in WITH_NODES and attribute is not None:
            raise InputError(
                f"{path}: vertex_label names an attribute of nodes, which this format has not; give the table whose "
                "column it is as graph.vertices, or leave it out"
            )
        if chosen not in WITH_NODES and table.vertex_name is not None:
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
        return READERS[chosen](replace(file, columns=columns))
    for name in table.given:
        if name == "vertex_label" and asked.labels is not None:
            continue  # a column of theirs
        raise InputError(
            f"{path}: columns are chosen in edge lists and Parquet files, not in the format {chosen}; leave out {name}"
        )
    return READERS[chosen](replace(file, columns=ColumnRequest(EDGES, notes=asked.notes)))


def _joined(paths: Sequence[Path], file: FileRequest, asked: FileOptions, progress: Progress) -> EdgeStream:
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
