"""GML, as networkx reads it: the whole file in memory."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from longwall.storage.errors import InputError
from longwall.storage.ingest.names.label_names import LabelNames
from longwall.storage.ingest.names.vertex_names import note_of_nodes
from longwall.storage.ingest.objects.networks import networkx_blocks, networkx_labels
from longwall.storage.ingest.readers.edge_stream import Declared, EdgeBlock, EdgeStream, FileRequest
from longwall.storage.ingest.tables.columns import ColumnRequest
from longwall.storage.ingest.text.input_file import Source
from longwall.storage.ingest.vertex_labels import LabelBlock, LabelSource
from longwall.storage.memory.sizes import round_size
from longwall.storage.system.plain_text import visible

_GRAPH, _MULTIGRAPH = re.compile(r"\bgraph\s*\["), re.compile(r"^\s*multigraph\s+\d+\s*$")
# Bytes of memory for a byte of text: the graph of networkx, and the parser's own data. Graphs take 10 to 30; distinct
# keys with empty lists up to 55, and nested lists without a space up to 65.
_BYTES_PER_BYTE = 72


def open_gml(file: FileRequest) -> EdgeStream:
    """Read a GML file: vertices have the names of their labels or, where these are missing or the same, integers.

    Raises
    ------
    InputError
        From the iteration: the file is too large, or networkx cannot read it.
    """
    request = file.columns
    labels = request.label_names or LabelNames(str(file.path))
    nodes = None if request.value is None else _NodeLabels(file.path, request.value)
    declared = Declared()
    blocks = _blocks(file, labels, nodes, declared)
    return EdgeStream(str(file.path), blocks, nodes, declared, edge_label_names=labels, notes=request.notes)


class _NodeLabels(LabelSource):
    """An attribute of the nodes of a graph that has been read."""

    def __init__(self, path: Path, attribute: str) -> None:
        self.source, self._attribute = str(path), attribute
        self._labels: LabelSource | None = None

    def read(self, graph: Any) -> None:
        """Take the labels of a graph of networkx."""
        try:
            self._labels = networkx_labels(graph, self._attribute)
            self.texts = self._labels.texts
        except InputError as error:
            raise InputError(f"{self.source}: {error}") from None

    def blocks(self) -> Iterator[LabelBlock]:
        assert self._labels is not None
        self._labels.named = self.named
        return self._labels.blocks()


def _blocks(
    file: FileRequest, labels: LabelNames, nodes: "_NodeLabels | None", declared: Declared
) -> Iterator[EdgeBlock]:
    path, request, most = file.path, file.columns, file.memory // _BYTES_PER_BYTE
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
        if file.progress is not None:
            file.progress(source.position, source.size)
    finally:
        source.close()
    graph = _parse(path, bytes(buffer[:size]), request)
    del buffer
    if nodes is not None:
        nodes.read(graph)
    if request.vertex_name is None and request.ids != "integers":
        note_of_nodes(request.notes, graph.nodes(data=True), len(graph), request.value)
    try:
        yield from networkx_blocks(graph, None if request.label is None else str(request.label), labels, declared)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _parse(path: Path, content: bytes, request: ColumnRequest) -> Any:
    import networkx

    try:
        lines = content.decode("utf-8").replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError:
        raise InputError(f"{path}: this is not UTF-8; convert the file to UTF-8") from None
    problem = ""
    if request.vertex_name is not None:
        keys: tuple[str, ...] = (request.vertex_name,)
    else:
        keys = ("id",) if request.ids == "integers" else ("label", "id")
    for label in keys:
        try:
            return _network(lines, label)
        except (networkx.NetworkXError, ValueError, TypeError, KeyError, RecursionError, AttributeError) as error:
            problem = visible(" ".join(str(error).split()))
        if label == "label" and len(keys) > 1:
            request.notes.guess(f"{path}: vertices have the ids of the nodes, whose labels are missing or the same")
    if request.vertex_name is not None:
        advice = "choose another attribute, or leave out graph.vertex_name"
        raise InputError(f"{path}: the names of the vertices cannot be read ({problem:.200}); {advice}")
    raise InputError(f"{path}: networkx cannot read this GML ({problem:.200}); check the file")


def _network(lines: list[str], label: str) -> Any:
    """Return the graph; if it has repeated edges it is read as a multigraph, even if `multigraph` is missing or 0."""
    import networkx

    try:
        return networkx.parse_gml(lines, label=label)
    except networkx.NetworkXError as error:
        if "is duplicated" not in str(error) or not str(error).startswith("edge"):
            raise
    whole = "\n".join(_MULTIGRAPH.sub(" ", line) for line in lines)
    return networkx.parse_gml(_GRAPH.sub("graph [ multigraph 1 ", whole, count=1).split("\n"), label=label)
