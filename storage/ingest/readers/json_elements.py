"""Nodes and links of node-link JSON, as networkx and d3 write it: one value of a list at a time is in memory."""

import codecs
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from longwall.storage.errors import InputError
from longwall.storage.ingest.readers.elements import CHARACTERS, Element, Kind, Network
from longwall.storage.ingest.text.input_file import Progress, Source
from longwall.storage.system.arguments import brief, type_name

_READ = 2**16  # bytes at a time
_LONGEST = 2**18  # characters of a value, which may become 30 times as many bytes
_MOST_ATTRIBUTES = 11  # that a message lists, and one more
_BLANKS = re.compile(r"[ \t\r\n]*")
_PLAIN = re.compile(r'[^"\\]*')
_LISTS = ("links", "edges")
_EXPECTED = (
    'write {"nodes": [{"id": 1}, ...], "links": [{"source": 1, "target": 2}, ...]}, as networkx.node_link_data does'
)


class JsonElements:
    """The nodes or the links of a file.

    Parameters
    ----------
    path
        The file.
    kind
        The kind of elements to read.
    wanted
        The attribute whose values are read.
    most
        The most elements of a block; blocks are smaller if names are long.

    Attributes
    ----------
    nodes, texts, directed
        See `Elements`.
    """

    texts: bool | None

    def __init__(self, path: Path, kind: Kind, wanted: str | None, most: int) -> None:
        self.path, self.nodes, self.texts, self.directed = path, 0, None, False
        self._kind, self._wanted, self._most = kind, wanted, most
        self._text: _JsonText | None = None
        self._attributes: dict[str, None] = {}

    def error(self, what: str, line: int | None = None) -> InputError:
        """See `Elements`."""
        assert self._text is not None
        return InputError(f"{self.path}, line {line or self._text.line}: {what}")

    @property
    def attributes(self) -> list[str]:
        """See `Elements`."""
        return list(self._attributes)

    def read(self, progress: Progress | None, most: int | None = None) -> Iterator[list[Element]]:
        """See `Elements`."""
        self._text = text = _JsonText(self.path)
        listed = ""
        try:
            for key in self._members("{", "}"):
                if key == "nodes":
                    yield from self._elements("node", progress, most)
                elif key in _LISTS:
                    if listed:
                        raise self.error(f"the file has {listed!r} and {key!r}; give one list of links")
                    listed = key
                    yield from self._elements("edge", progress, most)
                elif key == "directed":
                    self.directed = self._bool(text.value())
                else:
                    text.skip()
                if most is not None and text.read >= most:
                    return
            if text.peek():
                raise self.error("something follows the graph; give one graph a file")
            if not listed:
                raise self.error(f"there is no list of links; {_EXPECTED}")
        finally:
            text.close()

    def _members(self, opening: str, closing: str) -> Iterator[str]:
        """Yield the keys of an object, or "" for each value of a list; the caller takes the values."""
        text = self._text
        assert text is not None
        if text.peek() != opening:
            kind = "an object" if opening == "{" else "a list"
            raise self.error(f"{text.shown()} stands in place of {kind}; {_EXPECTED}")
        text.take()
        if text.peek() == closing:
            text.take()
            return
        while True:
            key = ""
            if opening == "{":
                is_text = text.peek() == '"'
                key = text.value() if is_text else ""
                if not is_text or text.peek() != ":":
                    raise self.error(f"{text.shown()} stands in place of a name and a colon; check the file")
                text.take()
            yield key
            after = text.peek()
            if after not in (",", closing) or not after:
                raise self.error(f"{text.shown()} stands in place of ',' or '{closing}'; check the file")
            text.take()
            if after == closing:
                return

    def _elements(self, kind: Kind, progress: Progress | None, most: int | None) -> Iterator[list[Element]]:
        text = self._text
        assert text is not None
        found: list[Element] = []
        size = 0
        for _ in self._members("[", "]"):
            given = text.value()
            if not isinstance(given, dict):
                raise self.error(f"{brief(given)} stands in place of an object in the list of {kind}s; {_EXPECTED}")
            number = self.nodes
            self.nodes += kind == "node"
            if kind != self._kind:
                continue
            found.append(self._element(given, number))
            size += found[-1].size
            if len(found) >= self._most or size >= self._most * CHARACTERS:
                yield found
                found, size = [], 0
                if progress is not None:
                    progress(*text.position)
            if most is not None and text.read >= most:
                break
        if progress is not None:
            progress(*text.position)
        if found:
            yield found

    def _element(self, given: dict[str, Any], number: int) -> Element:
        assert self._text is not None
        if self._kind == "node":
            names: tuple[str, ...] = (self._name(given.get("id", number)),)  # as networkx and d3 number them
        else:
            names = self._name(given.get("source")), self._name(given.get("target"))
        if len(self._attributes) < _MOST_ATTRIBUTES:
            self._attributes.update(dict.fromkeys(key for key in given if key not in ("id", "source", "target", "key")))
        value = None if self._wanted is None else given.get(self._wanted)
        if value is not None and (not isinstance(value, str | int) or isinstance(value, bool)):
            raise self.error(f"{brief(self._wanted)} is {_described(value)}; give integers or texts")
        return Element(self._kind, names, None if value is None else _written(value), self._text.line)

    def _name(self, value: object) -> str:
        """Return an id as a text, "" if it is missing."""
        if value is None or value == "":
            return ""
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise self.error(f"the node {_described(value)} is neither an integer nor a text; name it by one")
        texts = isinstance(value, str)
        if self.texts not in (None, texts):
            raise self.error(f"the node {brief(value)}: some nodes are integers, and others texts; give all one type")
        self.texts = texts
        return _written(value)

    def _bool(self, value: object) -> bool:
        if not isinstance(value, bool):
            raise self.error(f"'directed' is {_described(value)}; write true or false")
        return value


def _written(value: str | int) -> str:
    return value if isinstance(value, str) else str(value)


def _described(value: object) -> str:
    return brief(value) if isinstance(value, str | int | float) else f"a {type_name(value)}"


class _JsonText:
    """The text of a file, of which a part is in memory."""

    def __init__(self, path: Path) -> None:
        self._path, self._source = path, Source(path)
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        self._buffer = bytearray(_READ)
        self._text, self._at, self._line, self._counted, self._ended = "", 0, 1, 0, False
        self._scan = json.JSONDecoder().raw_decode
        self.read = 0
        """Bytes read so far."""

    @property
    def line(self) -> int:
        """The number of the present line."""
        if self._counted < self._at:
            self._line += self._text.count("\n", self._counted, self._at)
            self._counted = self._at
        return self._line

    @property
    def position(self) -> tuple[int, int]:
        """Bytes of the file that are consumed, and its size."""
        return self._source.position, self._source.size

    def close(self) -> None:
        """Close the file."""
        self._source.close()

    def peek(self) -> str:
        """Return the next character that is not blank, "" at the end of the file."""
        while True:
            blanks = _BLANKS.match(self._text, self._at)
            assert blanks is not None, "it may be empty"
            self._at = blanks.end()
            if self._at < len(self._text):
                return self._text[self._at]
            if self._ended:
                return ""
            self._more()

    def take(self) -> None:
        """Consume a character."""
        self._at += 1

    def shown(self) -> str:
        """Return what comes next, for a message."""
        return repr(self._text[self._at : self._at + 20]) if self.peek() else "the end of the file"

    def value(self) -> Any:
        """Consume a value, and return it."""
        self.peek()
        while True:
            try:
                value, end = self._scan(self._text, self._at)
            except (ValueError, RecursionError) as error:
                if self._ended or len(self._text) - self._at > _LONGEST:
                    raise self._damaged(error) from None
            else:
                if end < len(self._text) or self._ended:  # else a number may go on
                    self._at = end
                    return value
            self._more()

    def skip(self) -> None:
        """Consume a value of any size."""
        depth = 0
        while True:
            first = self.peek()
            if first in ("{", "["):
                depth += 1
                self.take()
            elif first in ("}", "]", ",", ":") and depth:
                depth -= first in ("}", "]")
                self.take()
            elif first == '"':
                self._skip_text()
            else:
                self.value()
            if depth == 0:
                return

    def _skip_text(self) -> None:
        """Consume a text of any length."""
        self.take()
        while True:
            plain = _PLAIN.match(self._text, self._at)
            assert plain is not None, "it may be empty"
            self._at = plain.end()
            if self._text[self._at : self._at + 1] == '"':
                self.take()
                return
            if self._at + 2 <= len(self._text):
                self._at += 2  # an escaped character
            elif self._ended:
                raise InputError(f"{self._path}, line {self.line}: the file ends inside a text; check the file")
            else:
                self._more()

    def _damaged(self, error: Exception) -> InputError:
        if isinstance(error, json.JSONDecodeError):
            if not self._ended:
                what = f"a value of more than {_LONGEST:,} characters, or no JSON ({error.msg}); check the file"
                return InputError(f"{self._path}, line {self.line}: {what}")
            line = self.line + self._text.count("\n", self._at, error.pos)
            return InputError(f"{self._path}, line {line}: this is not complete JSON ({error.msg}); check the file")
        reason = "lists in one another" if isinstance(error, RecursionError) else str(error).partition(":")[0]
        return InputError(
            f"{self._path}, line {self.line}: this is no JSON that can be read ({reason}); check the file"
        )

    def _more(self) -> None:
        """Read more, and drop what is consumed."""
        line = self.line
        with memoryview(self._buffer) as view:
            filled = self._source.fill(view)
        self.read += filled
        self._ended = filled < len(self._buffer)
        try:
            text = self._decode(bytes(self._buffer[:filled]), self._ended)
        except UnicodeDecodeError:
            raise InputError(f"{self._path}, line {line}: this is not UTF-8; convert the file to UTF-8") from None
        self._text, self._at, self._counted = self._text[self._at :] + text, 0, 0


NODE_LINK = Network(JsonElements, "name")
