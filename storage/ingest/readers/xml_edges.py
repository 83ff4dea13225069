"""GraphML and GEXF: the edges of graphs in XML, as a stream; what describes nodes is not read."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.parsers import expat

from longwall.storage.errors import InputError
from longwall.storage.ingest.names.label_names import LabelNames
from longwall.storage.ingest.objects.listed_values import edges_between, label_numbers
from longwall.storage.ingest.readers.edge_stream import EdgeBlock, EdgeStream
from longwall.storage.ingest.tables.columns import ColumnRequest
from longwall.storage.ingest.text.input_file import Progress, Source

_READ = 2**16  # bytes at a time
_LONGEST_TAG = 2**20
_EDGES, _LEAST_EDGES = 2**16, 2**10  # of a block
_EDGE_BYTES = 700  # both ends as texts of Python, a label, and their arrays


def open_graphml(
    path: Path, memory: int, workers: int, progress: Progress | None, request: ColumnRequest
) -> EdgeStream:
    """Read the edges of a GraphML file; `request` may name the attribute that labels them.

    Raises
    ------
    InputError
        From the iteration, with file and line: no XML, no GraphML, or an edge without its ends or its label.
    """
    return _open(path, memory, workers, progress, request, "graphml", _GRAPHML)


def open_gexf(path: Path, memory: int, workers: int, progress: Progress | None, request: ColumnRequest) -> EdgeStream:
    """Read the edges of a GEXF file; parameters and errors are those of `open_graphml`."""
    return _open(path, memory, workers, progress, request, "gexf", _GEXF)


@dataclass(frozen=True)
class _Dialect:
    """How a format calls what is read."""

    declares: str
    """The element that declares an attribute."""
    title: str
    """Its XML attribute with the attribute's name."""
    value: str
    """The element with the value of an attribute, and its XML attribute that names the declaration."""
    declared: str
    direction: str
    """The XML attribute that says which directions edges have."""


_GRAPHML = _Dialect("key", "attr.name", "data", "key", "edgedefault")
_GEXF = _Dialect("attribute", "title", "attvalue", "for", "defaultedgetype")


@dataclass
class _Edges:
    """Edges that were read."""

    ends: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)


def _open(
    path: Path,
    memory: int,
    workers: int,  # noqa: ARG001 - all readers have it
    progress: Progress | None,
    request: ColumnRequest,
    root: str,
    dialect: _Dialect,
) -> EdgeStream:
    labels = request.label_names or LabelNames(str(path))
    most = max(_LEAST_EDGES, min(_EDGES, memory // _EDGE_BYTES))
    reader = _Reader(path, root, dialect, request, most)
    return EdgeStream(str(path), _blocks(reader, progress, request, labels), edge_label_names=labels)


def _blocks(
    reader: "_Reader", progress: Progress | None, request: ColumnRequest, names: LabelNames
) -> Generator[EdgeBlock, None, None]:
    kind: type | None = {"integers": int, "names": str}.get(request.ids)
    for edges in reader.read(progress):
        if kind is None:
            kind = int if all(map(_is_id, edges.ends)) else str
        if kind is int and not all(map(_is_id, edges.ends)):
            row = next(row for row, end in enumerate(edges.ends) if not _is_id(end))
            raise reader.error(
                f"the vertex {edges.ends[row]:.40} is not an integer of 64 bits, as others are; set graph.ids = "
                '"names" if vertices have names',
                edges.lines[row // 2],
            )
        if "" in edges.ends:
            raise reader.error("an edge has an end without a name", edges.lines[edges.ends.index("") // 2])
        numbers = None
        if edges.labels:
            whole: list[Any] = list(map(int, edges.labels)) if all(map(_is_integer, edges.labels)) else edges.labels
            if names.names is not None:
                whole = edges.labels
            numbers = label_numbers(f"{reader.path}: the labels of the edges", whole, names)
        yield from edges_between(str(reader.path), list(map(kind, edges.ends)), numbers)


def _is_id(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) <= 20 and -(2**63) <= int(text) < 2**64


def _is_integer(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20 and int(text) < 2**63


class _Reader:
    def __init__(self, path: Path, root: str, dialect: _Dialect, request: ColumnRequest, most: int) -> None:
        self.path = path
        self._root, self._dialect, self._request, self._most = root, dialect, request, most
        self._parser: Any = None
        self._edges = _Edges()
        self._attributes: set[str] = set()  # declarations of the attribute that labels edges
        self._edge: dict[str, str] | None = None
        self._label: str | None = None
        self._in_label = self._rooted = False

    def error(self, what: str, line: int | None = None) -> InputError:
        """Make the error for a line, by default the present one."""
        return InputError(f"{self.path}, line {line or self._parser.CurrentLineNumber}: {what}")

    def read(self, progress: Progress | None) -> Iterator[_Edges]:
        """Yield the edges, block by block."""
        parser = self._parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler, parser.EntityDeclHandler = self._text, self._entity
        source, buffer = Source(self.path), bytearray(_READ)
        try:
            read, filled = 0, _READ
            while filled == _READ:
                with memoryview(buffer) as view:
                    filled = source.fill(view)
                read += filled
                self._parse(bytes(buffer[:filled]), filled < _READ)
                if read - parser.CurrentByteIndex > _LONGEST_TAG:
                    raise self.error(f"a tag of more than {_LONGEST_TAG:,} bytes; this is no list of edges")
                if len(self._edges.lines) >= self._most:
                    yield from self._taken()
                if progress is not None:
                    progress(source.position, source.size)
            yield from self._taken()
        finally:
            source.close()

    def _parse(self, text: bytes, last: bool) -> None:
        try:
            self._parser.Parse(text, last)
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code)
            raise self.error(f"this is not complete XML ({reason}); check the file", error.lineno) from None
        except (ValueError, LookupError) as error:  # an encoding that Python does not know
            raise self.error(f"this is not XML that can be read ({error}); convert the file to UTF-8") from None

    def _taken(self) -> Iterator[_Edges]:
        edges, self._edges = self._edges, _Edges()
        if edges.lines:
            yield edges

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        kind, dialect = name.rpartition(" ")[2], self._dialect
        if not self._rooted:
            if kind != self._root:
                raise self.error(f"this is <{kind:.40}>, not <{self._root}>; check the file's format")
            self._rooted = True
        elif kind == "graph" and attributes.get(dialect.direction) == "directed":
            self._request.note(f"{self.path}: the edges have directions; they are read without")
        elif kind == dialect.declares and attributes.get(dialect.title) == self._request.label:
            self._attributes.add(attributes.get("id", ""))
        elif kind == "edge":
            self._edge = attributes
            self._label = None if self._request.label is None else attributes.get(str(self._request.label))
        elif self._edge is not None and kind == dialect.value and attributes.get(dialect.declared) in self._attributes:
            self._label, self._in_label = attributes.get("value", ""), True

    def _text(self, text: str) -> None:
        if self._in_label:
            self._label = (self._label or "") + text

    def _end(self, name: str) -> None:
        kind = name.rpartition(" ")[2]
        if kind == self._dialect.value:
            self._in_label = False
        elif kind == "edge" and self._edge is not None:
            edge, self._edge = self._edge, None
            if "source" not in edge or "target" not in edge:
                raise self.error("an edge without source or target; complete it")
            if self._request.label is not None:
                if not (self._label or "").strip():
                    raise self.error(f"an edge without {self._request.label!s:.40}, its label; complete it")
                self._edges.labels.append((self._label or "").strip())
            self._edges.ends += (edge["source"], edge["target"])
            self._edges.lines.append(self._parser.CurrentLineNumber)

    def _entity(self, *declaration: object) -> None:  # noqa: ARG002 - the parser's signature
        raise self.error("the file declares entities, which are not read; write it without")
