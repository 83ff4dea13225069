"""The way in: any readable file, or a graph store, becomes a `Graph`."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from longwall.storage.build import build_graph
from longwall.storage.errors import InputError
from longwall.storage.graph import Graph
from longwall.storage.graph_store import is_store, open_store
from longwall.storage.readers.edge_list import read_edge_list, read_label_list
from longwall.storage.readers.matrix_market import read_matrix_market
from longwall.storage.readers.parquet import read_parquet, read_parquet_labels
from longwall.storage.readers.raw import RawGraph
from longwall.storage.readers.source import Progress, format_suffix
from longwall.storage.readers.tagged import read_graph, read_lg

_READERS: dict[str, Callable[[Path, Progress | None], RawGraph]] = {
    "edge-list": read_edge_list,
    "matrix-market": read_matrix_market,
    "parquet": read_parquet,
    "lg": read_lg,
    "graph": read_graph,
}
_SUFFIXES = {
    ".mtx": "matrix-market",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".lg": "lg",
    ".graph": "graph",
}


def detect_format(path: str | Path) -> str:
    """Say how a path is read: "store", "matrix-market", "parquet", "lg", "graph" or "edge-list".

    A graph store is known by its contents, files by their extension below .gz or .zst; any other extension
    means an edge list.
    """
    path = Path(path)
    if is_store(path):
        return "store"
    return _SUFFIXES.get(format_suffix(path), "edge-list")


def load_graph(path: str | Path, labels: str | Path | None = None, progress: Progress | None = None) -> Graph:
    """Open a graph store, or read a file of any format and build the graph in memory.

    Parameters
    ----------
    path
        A graph store or a file, see `detect_format`.
    labels
        A file of "vertex label" lines (compressed or not), or a Parquet file with columns vertex and label.
        Every vertex with an edge needs a label; labels of isolated vertices are dropped.
    progress
        Called with the bytes consumed so far and the bytes of the file.

    Raises
    ------
    InputError
        The file or the labels cannot be read or do not make a graph; the message names file and line.
    """
    path = Path(path)
    kind = detect_format(path)
    if kind == "store":
        if labels is not None:
            raise InputError(f"{path}: a graph store keeps its own labels; leave labels out, or ingest with them")
        return open_store(path)
    raw = _READERS[kind](path, progress)
    if labels is not None:
        if raw.vertex_labels is not None:
            raise InputError(f"{path}: the file has vertex labels of its own; leave out {labels}")
        labels = Path(labels)
        read = read_parquet_labels if detect_format(labels) == "parquet" else read_label_list
        raw = replace(raw, vertex_labels=read(labels))
    return build_graph(
        raw.src,
        raw.dst,
        edge_labels=raw.edge_labels,
        vertex_labels=raw.vertex_labels,
        source=str(path),
        id_range=raw.id_range,
    )
