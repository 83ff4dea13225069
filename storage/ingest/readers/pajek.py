"""Pajek networks: `*Vertices` with labels, then `*Arcs`, `*Edges`, `*Arcslist` and `*Edgeslist`."""

import re
from collections.abc import Generator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from longwall.kernels.jit.compile import compiled
from longwall.storage.errors import InputError
from longwall.storage.ingest.names.texts import HashedTexts, Texts, hash_texts
from longwall.storage.ingest.readers.edge_stream import Declared, EdgeBlock, EdgeNames, EdgeStream, FileRequest
from longwall.storage.ingest.tables.columns import ColumnRequest
from longwall.storage.ingest.text.raw_blocks import RawBlocks, word_at
from longwall.storage.ingest.text.text_file import whole_number
from longwall.storage.memory.sizes import round_size

_OK, _STAR, _NOT_INTEGER, _BINARY, _RANGE, _MISSING, _OPEN_QUOTE = range(7)
_LINE, _COMMENTS = range(2)
_BYTES_PER_BYTE = 24  # of a block, its copy, and both ends of an edge for each two bytes
_LABEL_BYTES = 64  # of a vertex, besides its label: number, places, hashes, and their order
_SHOWN = 40
_HEADER = re.compile(rb"\*[ \t]*([A-Za-z]*)([^\n]*)")
_REFERENCE = re.compile(r"&#(\d{1,7});")
_ARCS, _LISTS = ("arcs", "arcslist"), ("arcslist", "edgeslist")

Bytes = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]


def open_pajek(file: FileRequest) -> EdgeStream:
    """Read a network: vertices have their labels as names, or else their numbers; values of lines are ignored.

    Arcs are edges with a direction. Labels that are integers are ids.

    Raises
    ------
    InputError
        From the iteration, with file and line: no vertices, a vertex out of range, a quote that is not closed, another
        kind of data.
    """
    if file.columns.label is not None:
        raise InputError(f"{file.path}: values of lines are not read from Pajek files; leave out edge_label")
    declared = Declared()
    return EdgeStream(str(file.path), _Network(file, declared).blocks(), declared=declared, notes=file.columns.notes)


class _Network:
    """A file that is being read."""

    def __init__(self, file: FileRequest, declared: Declared) -> None:
        self._notes, self._declared = file.columns.notes, declared
        self._labels = _Labels(file.path, file.memory // 2, file.columns)
        self._text = RawBlocks(file.path, file.memory // 2, _BYTES_PER_BYTE, b"\n", file.progress)
        self._size: int | None = None
        self._section = ""

    def blocks(self) -> Generator[EdgeBlock, None, None]:
        """Read the file."""
        text, state = self._text, np.array([1, 0], np.int64)
        for block in text:
            data, at = np.frombuffer(block, np.uint8), 0
            numbers = np.empty((2, len(block) // 2 + 1), np.int64)
            code = _STAR
            while code == _STAR:
                if self._section in ("", "vertices"):
                    labels = np.empty(len(block) - at, np.uint8)
                    count, at, code = _vertices(data, at, state, self._size or 0, numbers[0], numbers[1], labels)
                    if self._section and count:
                        self._labels.add(numbers[0, :count], numbers[1, : count + 1], labels)
                else:
                    lists = self._section in _LISTS
                    count, at, code = _lines(data, at, state, self._size or 0, lists, numbers[0], numbers[1])
                    if count:
                        yield self._edges(numbers[0, :count].copy(), numbers[1, :count].copy())
                text.line = int(state[_LINE])
                if code == _STAR:
                    header = _HEADER.match(block, at)
                    assert header is not None, "the line begins with *"
                    self._begin(header[1].decode().lower(), header[2].decode("utf-8", "replace"))
                    at = header.end() + 1
                    state[_LINE] += 1
            if code == _BINARY:
                raise text.binary(block, at)
            if code != _OK:
                raise text.error(self._explain(code, block, at))
        if self._size is None:
            raise text.error("there are no vertices; begin the file with '*Vertices N'")
        self._notes.add("comments", int(state[_COMMENTS]))

    def _begin(self, kind: str, rest: str) -> None:
        """Begin a section."""
        if kind == "network" and self._size is None:
            self._section = ""
        elif kind == "vertices" and self._size is None:
            self._size = self._sizes(rest)
            self._section = kind
            declared = self._declared
            declared.vertices, declared.may_be_empty = self._size, self._size > 0
        elif kind in ("arcs", "edges", "arcslist", "edgeslist") and self._size is not None:
            if self._section == "vertices":
                self._labels.finish(self._text, self._size)
                if self._labels.numbered:
                    self._declared.id_range = 1, self._size
            self._section = kind
        elif self._size is None:
            raise self._text.error("this stands ahead of the vertices; begin the file with '*Vertices N'")
        elif kind in ("network", "vertices"):
            raise self._text.error("a second network begins here; give one network a file")
        else:
            what = f"*{kind}" if kind.isprintable() and kind else "*"
            raise self._text.error(
                f"{what:.20} is not read; write the edges as *Edges, *Arcs, *Edgeslist or *Arcslist, and nothing else"
            )

    def _sizes(self, rest: str) -> int:
        sizes = [whole_number(word) for word in rest.split(None, 2)]
        first = sizes[0] if sizes else None
        if first is None or None in sizes[:2] or first >= 2**63:
            raise self._text.error("the number of vertices is missing; write '*Vertices N'")
        return first

    def _edges(self, src: Int64s, dst: Int64s) -> EdgeBlock:
        if self._section in _ARCS:
            self._declared.directions += int(np.count_nonzero(src != dst))
        return self._labels.edges(src, dst)

    def _explain(self, code: int, block: bytes, at: int) -> str:
        word = word_at(block, at)
        if not self._section:
            return f"{word} stands ahead of the vertices; begin the file with '*Vertices N'"
        if code == _NOT_INTEGER:
            return f"{word} is not the number of a vertex; write whole numbers from 1 up"
        if code == _RANGE:
            return f"vertex {word} is outside 1..{self._size}; correct it or the line '*Vertices'"
        if code == _MISSING:
            return "the second end of an edge is missing; complete the line"
        return "a quote that the line does not close; write a label within one line"


class _Labels:
    """The labels of the vertices, in memory, if all have different ones; else vertices have their numbers."""

    def __init__(self, path: Path, memory: int, request: ColumnRequest) -> None:
        self._path, self._memory, self._request = path, memory, request
        self._numbers: list[Int64s] = []
        self._texts: list[Texts] = []
        self._taken = 0
        self._names: HashedTexts | None = None
        self._ids: Int64s | None = None

    @property
    def numbered(self) -> bool:
        """Whether the ids of vertices are their numbers."""
        return self._names is None and self._ids is None and self._request.ids != "names"

    def add(self, numbers: Int64s, starts: Int64s, data: Bytes) -> None:
        """Keep the labels of some vertices."""
        if self._request.ids == "integers":
            return
        self._numbers.append(numbers.copy())
        self._texts.append(Texts(data[: starts[-1]].copy(), starts.copy()))
        self._taken += _LABEL_BYTES * len(numbers) + int(starts[-1])
        if self._taken > self._memory:
            raise InputError(
                f"{self._path}: the labels of the vertices take more than the {round_size(self._memory)} that reading "
                'has; raise memory.host, or set graph.ids = "integers"'
            )

    def finish(self, text: RawBlocks, size: int) -> None:
        """Say which names or ids the vertices have."""
        if not self._numbers:
            return
        numbers = np.concatenate(self._numbers)
        sizes = np.cumsum([0, *(len(part.data) for part in self._texts)])
        starts = [part.starts[:-1] + begin for part, begin in zip(self._texts, sizes, strict=False)]
        texts = Texts(np.concatenate([part.data for part in self._texts]), np.concatenate((*starts, sizes[-1:])))
        self._numbers, self._texts = [], []
        order = np.argsort(numbers, kind="stable")
        again = np.flatnonzero(np.diff(numbers[order]) == 0)
        if again.size:
            raise text.error(
                f"vertex {numbers[order[again[0]]]} is declared a second time above; remove one of the lines"
            )
        labelled = int(np.count_nonzero(np.diff(texts.starts)))
        if labelled == 0:
            return
        texts = _without_references(texts.take(order))
        damaged = texts.first_damaged()
        if damaged >= 0:
            raise text.error(f"the label of vertex {numbers[order[damaged]]} is not UTF-8; convert the file to UTF-8")
        if labelled < size:
            self._note(f"{size - labelled:,} of {size:,} vertices have no label")
            return
        names = hash_texts(texts)
        distinct = len(np.unique(names.ids))
        if distinct < size:
            self._note(f"{size:,} vertices have {distinct:,} different labels")
            return
        if self._request.ids == "auto":
            self._ids = _integers(texts)
        if self._ids is None:
            self._names = names

    def _note(self, reason: str) -> None:
        self._request.notes.guess(f"{self._path}: {reason}; vertices have their numbers")

    def edges(self, src: Int64s, dst: Int64s) -> EdgeBlock:
        """Return edges between vertices that are given by their numbers."""
        if self._ids is not None:
            return EdgeBlock(self._ids[src - 1], self._ids[dst - 1])
        if self.numbered:
            return EdgeBlock(src, dst)
        ends = np.column_stack((src, dst)).ravel()
        names = hash_texts(_written(ends)) if self._names is None else self._names.spread(ends - 1)
        return EdgeNames(names, "edge {}".format).block()


def _without_references(texts: Texts) -> Texts:
    """Replace references to characters such as `&#34;`, by which Pajek and igraph write quotes and other letters."""
    import pyarrow as pa
    import pyarrow.compute as pc

    labels = texts.to_arrow()
    found = np.flatnonzero(pc.match_substring(labels, "&#").to_numpy(zero_copy_only=False))
    if found.size == 0 or texts.first_damaged() >= 0:
        return texts
    written = [_REFERENCE.sub(_referenced, label) for label in labels.take(found).to_pylist()]
    mask = np.zeros(len(texts), np.bool_)
    mask[found] = True
    return Texts.of_arrow(pc.replace_with_mask(labels, pa.array(mask), pa.array(written, pa.large_string())))


def _referenced(found: re.Match[str]) -> str:
    number = int(found[1])
    known = 0 < number < 0x110000 and not 0xD800 <= number < 0xE000
    return chr(number) if known else found[0]


def _integers(texts: Texts) -> Int64s | None:
    """Return labels as integers, None if one is no integer as it is usually written."""
    import pyarrow as pa
    import pyarrow.compute as pc

    labels = texts.to_arrow()
    try:
        numbers = pc.cast(labels, pa.int64())
    except pa.ArrowInvalid:
        return None
    same = pc.all(pc.equal(pc.cast(numbers, pa.large_string()), labels)).as_py()
    return np.array(numbers.to_numpy(), np.int64) if same else None


def _written(numbers: Int64s) -> Texts:
    import pyarrow as pa
    import pyarrow.compute as pc

    return Texts.of_arrow(pc.cast(pa.array(numbers), pa.large_string()))


@compiled("const(u1[::1]), i8, i8[::1], i8, i8[::1], i8[::1], u1[::1]")
def _vertices(
    block: Bytes, at: int, state: Int64s, size: int, numbers: Int64s, starts: Int64s, labels: Bytes
) -> tuple[int, int, int]:
    """Read lines of a vertex and its label; what follows in the line is ignored.

    Parameters
    ----------
    block : uint8[k]
        Whole lines.
    at
        Where a line begins.
    state : int64[2]
        The number of the line, and of the comments so far.
    size
        The number of vertices.
    numbers, starts : int64[k // 2 + 1]
        Receive the vertices, and where their labels begin.
    labels : uint8[k]
        Receives the labels.

    Returns
    -------
    vertices, place of a line that begins with * or of a wrong word, code
    """
    count, to = 0, np.int64(0)
    starts[0] = 0
    while at < block.size:
        number, at, code = _line_begins(block, at, state, size)
        if code != _OK or at == block.size:
            return count, at, code
        if block[at] == 34:
            end, written, code = _quoted(block, at + 1, True, labels, int(to))
            if code == _OPEN_QUOTE:  # a label may end with a backslash
                end, written, code = _quoted(block, at + 1, False, labels, int(to))
            if code != _OK:
                return count, at if code == _OPEN_QUOTE else end, code
            at, to = end, np.int64(written)
        else:
            while block[at] > 32:
                labels[to] = block[at]
                to += 1
                at += 1
        numbers[count] = number
        count += 1
        starts[count] = to
        at, code = _line_ends(block, at, state)
        if code != _OK:
            return count, at, code
    return count, at, _OK


@compiled
def _quoted(block: Bytes, at: int, escapes: bool, labels: Bytes, to: int) -> tuple[int, int, int]:
    """Copy a label up to its closing quote; return the places behind both, and a code."""
    while block[at] != 34:
        if block[at] == 10:
            return at, to, _OPEN_QUOTE
        if block[at] < 32 and block[at] != 9 and not (block[at] == 13 and block[at + 1] == 10):
            return at, to, _BINARY
        at += escapes and block[at] == 92 and (block[at + 1] == 34 or block[at + 1] == 92)
        labels[to] = block[at]
        to += 1
        at += 1
    return at + 1, to, _OK


@compiled("const(u1[::1]), i8, i8[::1], i8, b1, i8[::1], i8[::1]")
def _lines(
    block: Bytes, at: int, state: Int64s, size: int, lists: bool, src: Int64s, dst: Int64s
) -> tuple[int, int, int]:
    """Read lines of two ends, or, in lists, of one end and any number of others; parameters as of `_vertices`."""
    count = 0
    while at < block.size:
        first, at, code = _line_begins(block, at, state, size)
        if code != _OK or at == block.size:
            return count, at, code
        if not lists and block[at] == 10:
            return count, at, _MISSING
        while block[at] != 10:
            second, at, code = _vertex(block, at, size)
            if code != _OK:
                return count, at, code
            src[count] = first
            dst[count] = second
            count += 1
            if not lists:
                break
            at = _skip_blanks(block, at)
        at, code = _line_ends(block, at, state)
        if code != _OK:
            return count, at, code
    return count, at, _OK


@compiled
def _skip_blanks(block: Bytes, at: int) -> int:
    """Return the place of the next byte that is no blank; carriage returns at the end of a line are blanks."""
    while block[at] == 32 or block[at] == 9 or (block[at] == 13 and (block[at + 1] == 10 or block[at + 1] == 13)):
        at += 1
    return at


@compiled
def _line_begins(block: Bytes, at: int, state: Int64s, size: int) -> tuple[int, int, int]:
    """Pass blank lines and comments; return the vertex of the next line, the place behind it, and a code."""
    while at < block.size:
        at = _skip_blanks(block, at)
        if block[at] == 37:  # "%"
            state[_COMMENTS] += 1
            while block[at] != 10:
                at += 1
        if block[at] == 42:  # "*"
            return 0, at, _STAR
        if block[at] != 10:
            number, at, code = _vertex(block, at, size)
            return number, _skip_blanks(block, at) if code == _OK else at, code
        state[_LINE] += 1
        at += 1
    return 0, at, _OK


@compiled
def _line_ends(block: Bytes, at: int, state: Int64s) -> tuple[int, int]:
    """Pass the rest of a line."""
    while block[at] != 10:
        if block[at] < 32 and block[at] != 9 and not (block[at] == 13 and block[at + 1] in (10, 13)):
            return at, _BINARY
        at += 1
    state[_LINE] += 1
    return at + 1, _OK


@compiled
def _vertex(block: Bytes, at: int, size: int) -> tuple[int, int, int]:
    """Return a number, the place behind it (of its beginning, if it is wrong), and a code."""
    begin, value = at, np.int64(0)
    while block[at] > 32:
        digit = block[at] - np.uint8(48)  # wraps round for bytes below "0"
        if digit > 9:
            return 0, begin, _NOT_INTEGER
        value = min(value * 10 + np.int64(digit), np.int64(9 * 10**17))
        at += 1
    if at == begin:
        return 0, begin, _BINARY
    if value < 1 or value > size:
        return 0, begin, _RANGE
    return int(value), at, _OK
