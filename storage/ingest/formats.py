"""The formats of files, found by their extensions or contents."""

from pathlib import Path

from longwall.storage.graph.store_header import is_store
from longwall.storage.ingest.text.input_file import format_suffix
from longwall.storage.ingest.text.tu_files import is_tu_data_set

WITH_NODES = ("graphml", "gexf", "gml", "node-link")
"""Formats whose vertices may have attributes."""
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


def detect_format(path: str | Path) -> str:
    """Say how a path is read: "store", "edge-list" or another of `open_files.READERS`.

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
