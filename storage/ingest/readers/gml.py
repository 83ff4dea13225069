"""GML, as networkx reads it: the whole file in memory."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from longwall.storage.errors import InputError
from longwall.storage.ingest.names.label_names import LabelNames
from longwall.storage.ingest.objects.networks import networkx_blocks
from longwall.storage.ingest.readers.edge_stream import EdgeBlock, EdgeStream
from longwall.storage.ingest.tables.columns import ColumnRequest
from longwall.storage.ingest.text.input_file import Progress, Source
from longwall.storage.memory.sizes import round_size

_BYTES_PER_BYTE = 25  # of memory for a byte of text, measured: networkx's graph and what it is made of


def open_gml(path: Path, memory: int, workers: int, progress: Progress | None, request: ColumnRequest) -> EdgeStream:  # noqa: ARG001
    """Read a GML file: vertices have the names of their labels or, where these are missing or the same, integers.

    Raises
    ------
    InputError
        From the iteration: the file is too large, or networkx cannot read it.
    """
    labels = request.label_names or LabelNames(str(path))
    return EdgeStream(str(path), _blocks(path, memory, progress, request, labels), edge_label_names=labels)


def _blocks(
    path: Path, memory: int, progress: Progress | None, request: ColumnRequest, labels: LabelNames
) -> Iterator[EdgeBlock]:
    most = memory // _BYTES_PER_BYTE
    buffer = bytearray(most + 1)
    source = Source(path)
    try:
        with memoryview(buffer) as view:
            size = source.fill(view)
        if size > most:
            raise InputError(
                f"{path}: GML is read as a whole, which memory.host has room for up to {round_size(most)}; write the "
                "graph as GraphML or as an edge list"
            )
        if progress is not None:
            progress(source.position, source.size)
    finally:
        source.close()
    graph = _parse(path, bytes(buffer[:size]), request)
    del buffer
    yield from networkx_blocks(graph, None if request.label is None else str(request.label), labels)


def _parse(path: Path, content: bytes, request: ColumnRequest) -> Any:
    import networkx

    try:
        lines = content.decode("utf-8").split("\n")
    except UnicodeDecodeError:
        raise InputError(f"{path}: this is not UTF-8; convert the file to UTF-8") from None
    problem = ""
    for label in ("id",) if request.ids == "integers" else ("label", "id"):
        try:
            return networkx.parse_gml(lines, label=label)
        except (networkx.NetworkXError, ValueError, TypeError, KeyError, RecursionError, AttributeError) as error:
            problem = " ".join(str(error).split())
    raise InputError(f"{path}: networkx cannot read this GML ({problem:.200}); check the file")
