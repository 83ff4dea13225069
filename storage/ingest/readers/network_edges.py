"""GraphML, GEXF and node-link JSON: edges as a stream, and the labels of nodes."""

from collections.abc import Callable, Generator, Iterator
from functools import partial
from pathlib import Path

from longwall.storage.errors import InputError
from longwall.storage.ingest.names.label_names import LabelNames
from longwall.storage.ingest.objects.listed_values import edges_between, label_numbers, vertex_block
from longwall.storage.ingest.readers.edge_stream import Declared, EdgeBlock, EdgeStream, FileRequest
from longwall.storage.ingest.readers.elements import Element, Elements, Network, unknown_attribute
from longwall.storage.ingest.readers.node_names import NodeNames
from longwall.storage.ingest.vertex_labels import Int64s, LabelBlock, LabelSource
from longwall.storage.system.arguments import brief

_EDGES, _LEAST_EDGES = 2**16, 2**10  # of a block
_EDGE_BYTES = 1000  # both ends as texts of Python, a label, the element, and their arrays


def open_network(network: Network, file: FileRequest) -> EdgeStream:
    """Read the edges of a file with attributes; the request may name those that label edges and nodes.

    Raises
    ------
    InputError
        From the iteration, with file and line: another format, or an edge without its ends or its label.
    """
    path, memory, request = file.path, file.memory, file.columns
    labels = request.label_names or LabelNames(str(path))
    if request.vertex_name is not None:
        memory //= 2  # one half for the names, the other for edges
    most = max(_LEAST_EDGES, min(_EDGES, memory // _EDGE_BYTES))
    reader = network.open(path, "edge", None if request.label is None else str(request.label), most)
    declared, names = Declared(), NodeNames(path, network, request.vertex_name, most, memory)
    blocks = _blocks(file, reader, labels, declared, names)
    stream = EdgeStream(str(path), blocks, None, declared, edge_label_names=labels, notes=request.notes)
    if request.value is not None:
        stream.vertex_labels = _NodeLabels(path, network, request.value, most, names)
    return stream


def _blocks(
    file: FileRequest, reader: Elements, label_names: LabelNames, declared: Declared, names: NodeNames
) -> Generator[EdgeBlock, None, None]:
    names.read()
    request = file.columns
    kind: type | None = {"integers": int, "names": str}.get(request.ids)
    labels = _ElementLabels("edges", label_names)
    for edges in reader.read(file.progress):
        ends = [name for edge in edges for name in names.of_ends(_ends(edge, reader), edge.line)]
        if kind is None:
            texts = reader.texts and request.vertex_name is None
            kind = str if texts or not all(map(_is_id, ends)) else int
        if kind is int and not all(map(_is_id, ends)):
            row = next(row for row, end in enumerate(ends) if not _is_id(end))
            raise reader.error(
                f"the vertex {_shown(ends[row])} is not an integer of 64 bits, as others are; set graph.ids = "
                '"names" if vertices have names',
                edges[row // 2].line,
            )
        numbers = None
        if request.label is not None:
            bare = next((edge for edge in edges if not edge.value), None)
            if bare is not None:
                raise reader.error(f"an edge without {request.label!s:.40}, its label; complete it", bare.line)
            numbers = labels.numbers(edges, reader.error)
        declared.directions += sum(edge.directed and edge.names[0] != edge.names[1] for edge in edges)
        yield from edges_between(str(file.path), list(map(kind, ends)), numbers)
    declared.directed |= reader.directed
    if reader.nodes:
        declared.vertices, declared.may_be_empty = reader.nodes, True
    if request.vertex_name is None and request.ids != "integers":
        names.note_unread(request.notes, reader.nodes, request.value)


def _ends(edge: Element, reader: Elements) -> tuple[str, ...]:
    if "" in edge.names:
        raise reader.error("an edge without source or target; complete it", edge.line)
    return edge.names


def _shown(text: str) -> str:
    return f"{text:.40}" if text.isprintable() else brief(text)


def _is_id(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) <= 20 and -(2**63) <= int(text) < 2**64


def _is_label(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20


class _ElementLabels:
    """Numbers the labels of elements: integers, or texts where one of the first ones is no integer.

    Parameters
    ----------
    what
        The elements, for messages.
    names
        Numbers texts.
    """

    def __init__(self, what: str, names: LabelNames) -> None:
        self._what, self._names = what, names
        self._integers: bool | None = None if names.names is None else False

    def numbers(self, elements: list[Element], error: Callable[[str, int], InputError]) -> Int64s:
        """Return int64[k]: the number of each element's label, which is there."""
        texts = [element.value or "" for element in elements]
        if self._integers is None:
            self._integers = all(map(_is_label, texts[:_LEAST_EDGES]))
        if self._integers and not all(map(_is_label, texts)):
            row = next(row for row, text in enumerate(texts) if not _is_label(text))
            what = (
                f"the label {_shown(texts[row])} is no integer, as others are; give all {self._what} labels of one type"
            )
            raise error(what, elements[row].line)
        return label_numbers(
            f"the labels of the {self._what}", list(map(int, texts)) if self._integers else texts, self._names
        )


class _NodeLabels(LabelSource):
    """An attribute of nodes, which is read once the edges are; nodes without it have no label."""

    texts: LabelNames

    def __init__(self, path: Path, network: Network, attribute: str, most: int, vertices: NodeNames) -> None:
        self.source = str(path)
        self._reading, self._attribute = partial(network.open, path, "node", attribute, most), attribute
        self.texts, self._vertices = LabelNames(self.source), vertices

    def blocks(self) -> Iterator[LabelBlock]:
        reader, labels = self._reading(), _ElementLabels("nodes", self.texts)
        given = False
        for nodes in reader.read(None):
            given = given or any(node.value for node in nodes)
            named = ((node, self._vertices.of(node.names[0])) for node in nodes if node.value)
            labelled = [(node, name) for node, name in named if self._may_be(name)]
            if labelled:
                numbers = labels.numbers([node for node, _ in labelled], reader.error)
                yield self._block([name for _, name in labelled], numbers, [node for node, _ in labelled])
        if not given:
            raise InputError(f"{self.source}: {unknown_attribute('node', self._attribute, reader.attributes)}")

    def _may_be(self, name: str) -> bool:
        """Whether a vertex of the graph may have this name."""
        return bool(name) if self.named else _is_id(name)

    def _block(self, ids: list[str], numbers: Int64s, nodes: list[Element]) -> LabelBlock:
        vertices: list[str] | list[int] = ids if self.named else list(map(int, ids))
        lines = [node.line for node in nodes]
        return vertex_block(self.source, vertices, numbers, lambda row: f"line {lines[row]}")
