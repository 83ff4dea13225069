"""Elements of GraphML and GEXF files, nodes or edges, as a stream: their XML attributes, and one of their data."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.parsers import expat

from longwall.storage.errors import InputError
from longwall.storage.ingest.readers.elements import CHARACTERS, Element, Kind, Network
from longwall.storage.ingest.text.input_file import Progress, Source

_READ = 2**16  # bytes at a time
_LONGEST_TAG = 2**20
# Characters that are kept: of open elements, of declarations, and of names, which the parser never forgets.
_MOST_KEPT = 2**22
_OPEN, _DECLARED = 2**10, 2**8  # counted for an open element, and for a declaration, besides their characters
_NAMES = {"node": ("id",), "edge": ("source", "target")}


@dataclass(frozen=True)
class Dialect:
    """How a format calls what is read."""

    root: str
    """The element of the whole file."""
    declares: str
    """The element that declares an attribute."""
    title: str
    """Its XML attribute with the attribute's name."""
    value: str
    """The element with the value of an attribute, and its XML attribute that names the declaration."""
    declared: str
    directions: str
    """The XML attribute of a graph with the default direction of its edges."""
    direction: str
    """The XML attribute of an edge with its direction."""


GRAPHML = Dialect("graphml", "key", "attr.name", "data", "key", "edgedefault", "directed")
GEXF = Dialect("gexf", "attribute", "title", "attvalue", "for", "defaultedgetype", "type")
_DIRECTED = ("directed", "true", "1")


class XmlElements:
    """The nodes or the edges of a file.

    Parameters
    ----------
    path, dialect
        The file.
    kind
        The kind of elements to read.
    wanted
        The attribute whose values are read: one that is declared for such elements, or one of XML.
    most
        The most elements of a block; blocks are smaller if names are long.

    Attributes
    ----------
    nodes, texts, directed
        See `Elements`.
    """

    texts: bool | None

    def __init__(
        self,
        path: Path,
        dialect: Dialect,
        kind: Kind,
        wanted: str | None,
        most: int,
    ) -> None:
        self.path, self.nodes = path, 0
        self.texts, self.directed = None, False
        self._dialect, self._kind, self._wanted, self._most = dialect, kind, wanted, most
        self._parser: Any = None
        self._found: list[Element] = []
        self._found_size = 0
        self._open: list[Element] = []  # nodes and edges, which may contain others
        self._directed: list[bool] = []  # whether edges of the graphs that are open have directions
        self._class: str | None = None  # of the attributes that are being declared, in GEXF
        self._declared: dict[str, str | None] = {}  # declarations of the wanted attribute, and the defaults
        self._others: dict[str, None] = {}  # names of attributes
        self._declaring: str | None = None
        self._text: list[str] | None = None
        self._rooted = False
        self._kept = 0  # of `_MOST_KEPT`
        self._spaces: list[int] = []  # characters counted for each open namespace
        self._names = 0  # that the parser has seen

    def error(self, what: str, line: int | None = None) -> InputError:
        """Make the error for a line, by default the present one."""
        return InputError(f"{self.path}, line {line or self._parser.CurrentLineNumber}: {what}")

    @property
    def attributes(self) -> list[str]:
        """The names of the attributes that are declared for such elements."""
        return list(self._others)

    def read(self, progress: Progress | None, most: int | None = None) -> Iterator[list[Element]]:
        """Yield the elements, block by block; with `most`, those that end among the first bytes.

        Raises
        ------
        InputError
            From the iteration, with file and line: no XML, or not the format.
        """
        parser = self._parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = self._add_text, self._doctype
        parser.StartNamespaceDeclHandler, parser.EndNamespaceDeclHandler = self._open_space, self._close_space
        source, buffer = Source(self.path), bytearray(_READ)
        try:
            read, filled = 0, _READ
            while filled == _READ and (most is None or read < most):
                with memoryview(buffer) as view:
                    filled = source.fill(view)
                read += filled
                self._parse(bytes(buffer[:filled]), filled < _READ)
                if read - parser.CurrentByteIndex > _LONGEST_TAG:
                    raise self.error(f"a tag of more than {_LONGEST_TAG:,} bytes; this is no list of edges")
                self._require_few_names()
                if len(self._found) >= self._most or self._found_size >= self._most * CHARACTERS:
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

    def _taken(self) -> Iterator[list[Element]]:
        found, self._found, self._found_size = self._found, [], 0
        if found:
            yield found

    def _keep(self, size: int) -> None:
        """Count characters before they are kept: a small compressed file could have more than memory holds."""
        self._kept += size
        if self._kept > _MOST_KEPT:
            raise self.error(
                f"elements in one another, their names and their values take more than {_MOST_KEPT:,} characters; "
                "this is no list of edges"
            )

    def _require_few_names(self) -> None:
        if len(self._parser.intern) != self._names:
            self._names = len(self._parser.intern)
            if sum(map(len, filter(None, self._parser.intern))) + _DECLARED * self._names > _MOST_KEPT:
                raise self.error(
                    f"elements and attributes have {self._names:,} different names; this is no list of edges"
                )

    def _open_space(self, prefix: str | None, address: str | None) -> None:
        self._spaces.append(_DECLARED + len(prefix or "") + len(address or ""))
        self._keep(self._spaces[-1])

    def _close_space(self, prefix: str | None) -> None:  # noqa: ARG002 - the parser's signature
        self._kept -= self._spaces.pop()

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._keep(_OPEN + len(name))
        kind, dialect = name.rpartition(" ")[2], self._dialect
        if not self._rooted:
            if kind != dialect.root:
                raise self.error(f"this is <{kind:.40}>, not <{dialect.root}>; check the file's format")
            self._rooted = True
        elif kind == "graph":
            self._directed.append(attributes.get(dialect.directions) in _DIRECTED)
        elif kind == "hyperedge":
            raise self.error("a hyperedge, which joins any number of nodes; write edges between two")
        elif kind == "attributes":
            self._class = attributes.get("class")
        elif kind == dialect.declares:
            self._declare(attributes)
        elif kind == "default" and self._declaring is not None:
            self._begin_text("")
        elif kind in _NAMES:
            value = None if self._wanted is None else attributes.get(self._wanted)
            names = tuple(attributes.get(name, "") for name in _NAMES[kind])
            self._open.append(Element(kind, names, None if value is None else value.strip()))
            self._keep(self._open[-1].size)
            self.nodes += kind == "node"
            if kind == "edge":
                default = bool(self._directed) and self._directed[-1]
                given = attributes.get(dialect.direction)
                self._open[-1].directed = default if given is None else given in _DIRECTED
        elif kind == dialect.value and self._is_wanted(attributes):
            self._begin_text(attributes.get("value", ""))

    def _declare(self, attributes: dict[str, str]) -> None:
        of = attributes.get("for", "all") if self._dialect is GRAPHML else self._class
        if of in (self._kind, "all") and (title := attributes.get(self._dialect.title)) is not None:
            self._keep(_DECLARED + len(title) + len(attributes.get("id", "")))
            self._others[title] = None
            if title == self._wanted:
                self._declaring = attributes.get("id", "")
                self._declared[self._declaring] = None

    def _is_wanted(self, attributes: dict[str, str]) -> bool:
        inside = bool(self._open) and self._open[-1].kind == self._kind
        return inside and attributes.get(self._dialect.declared) in self._declared

    def _begin_text(self, text: str) -> None:
        self._end_text()
        self._text = []
        self._add_text(text)

    def _add_text(self, text: str) -> None:
        if self._text is not None:
            self._keep(len(text))
            self._text.append(text)

    def _end_text(self) -> str:
        """Return the text of the current element, and forget it."""
        text, self._text = "".join(self._text or ()), None
        self._kept -= len(text)
        return text.strip()

    def _end(self, name: str) -> None:
        self._kept -= _OPEN + len(name)
        kind = name.rpartition(" ")[2]
        if kind == "graph" and self._directed:
            self._directed.pop()
        elif kind == self._dialect.declares:
            self._declaring = None
        elif kind == "default" and self._text is not None and self._declaring is not None:
            self._declared[self._declaring] = text = self._end_text()
            self._keep(len(text))
        elif kind == self._dialect.value and self._text is not None and self._open:
            element, self._kept = self._open[-1], self._kept - self._open[-1].size
            element.value = self._end_text()
            self._keep(element.size)
        elif kind in _NAMES and self._open:
            element = self._open.pop()
            self._kept -= element.size
            if element.kind == self._kind:
                element.line = self._parser.CurrentLineNumber
                if element.value is None:
                    element.value = next((value for value in self._declared.values() if value), None)
                self._found.append(element)
                self._found_size += element.size

    def _doctype(self, name: str, system: str | None, public: str | None, declares: int) -> None:  # noqa: ARG002 - the parser's signature
        if declares:
            raise self.error("the file declares entities or elements of its own, which are not read; write it without")


GRAPHML_NETWORK = Network(lambda path, *more: XmlElements(path, GRAPHML, *more), "name")
GEXF_NETWORK = Network(lambda path, *more: XmlElements(path, GEXF, *more), "label")
