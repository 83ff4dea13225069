"""Simple interaction format (SIF) of Cytoscape: a vertex, a type of interaction and a vertex in each row."""

from dataclasses import replace

from longwall.storage.ingest.readers.edge_stream import EdgeStream, FileRequest
from longwall.storage.ingest.tables.edge_list import open_edge_list


def open_sif(file: FileRequest) -> EdgeStream:
    """Read the first and the third field of each row as an edge.

    Raises
    ------
    InputError
        From the iteration: as of `open_edge_list`; or a row has another number of fields.
    """
    return open_edge_list(replace(file, columns=replace(file.columns, chosen=(1, 3), header=False, fields=3)))
