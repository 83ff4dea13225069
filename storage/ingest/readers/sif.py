"""Simple interaction format (SIF) of Cytoscape: a vertex, a type of interaction and a vertex in each row."""

from dataclasses import replace
from pathlib import Path

from longwall.storage.ingest.readers.edge_stream import EdgeStream
from longwall.storage.ingest.tables.columns import ColumnRequest
from longwall.storage.ingest.tables.edge_list import open_edge_list
from longwall.storage.ingest.text.input_file import Progress


def open_sif(path: Path, memory: int, workers: int, progress: Progress | None, request: ColumnRequest) -> EdgeStream:
    """Read the first and the third field of each row as an edge; see `edge_stream` for the parameters.

    Raises
    ------
    InputError
        From the iteration: as of `open_edge_list`; or a row has another number of fields.
    """
    return open_edge_list(path, memory, workers, progress, replace(request, chosen=(1, 3), header=False, fields=3))
