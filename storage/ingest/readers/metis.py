"""METIS: a line `VERTICES EDGES [FORMAT [WEIGHTS]]`, then a line with the neighbours of each vertex, from 1."""

from collections.abc import Generator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from longwall.kernels.jit.compile import compiled
from longwall.storage.errors import InputError
from longwall.storage.ingest.readers.edge_stream import Declared, EdgeBlock, EdgeStream, FileRequest
from longwall.storage.ingest.text.raw_blocks import RawBlocks, word_at
from longwall.storage.ingest.text.text_file import LEAST_BLOCK, TextFile

_OK, _HEADER, _NOT_INTEGER, _TOO_LARGE, _BINARY, _RANGE, _MORE, _WEIGHTS, _WEIGHT = range(9)
# Of the vertex whose line is read, counted from 0, -1 in the header; of its line; and the numbers of the header.
_VERTEX, _FIELDS, _LINE, _IN_COMMENT, _COMMENTS, _NUMBERS = range(6)
_MOST_NUMBERS = 4
_BYTES_PER_BYTE = 24  # of a block, its copy, and both ends of an edge for each two bytes
_FORMATS = (0, 1, 10, 11, 100, 101, 110, 111)

Int64s = npt.NDArray[np.int64]


def is_metis(path: Path) -> bool:
    """Whether the first line of a file that is no comment begins with a number, as METIS files do."""
    try:
        with TextFile(path, 8 * LEAST_BLOCK, 1) as text:
            return text.peek()[1][:1].isdigit()
    except InputError:
        return False  # the reader says what is wrong


def open_metis(file: FileRequest) -> EdgeStream:
    """Read lists of neighbours; sizes and weights are ignored.

    An edge stands in the lines of both of its ends; in one alone, it has a direction.

    Raises
    ------
    InputError
        From the iteration, with file and line: a header that is none, a neighbour out of range, a line without its
        weights, more or fewer lines than vertices.
    """
    declared = Declared(matrix=True)
    return EdgeStream(str(file.path), _blocks(file, declared), declared=declared, notes=file.columns.notes)


def _blocks(file: FileRequest, declared: Declared) -> Generator[EdgeBlock, None, None]:
    text, notes = RawBlocks(file.path, file.memory, _BYTES_PER_BYTE, b" \t\n", file.progress), file.columns.notes
    state = np.zeros(_NUMBERS + _MOST_NUMBERS, np.int64)
    state[_VERTEX], state[_LINE] = -1, 1
    size = announced = skipped = 0
    weighted = False
    entries = 0
    for block in text:
        data, at = np.frombuffer(block, np.uint8), 0
        ends = np.empty((2, len(block) // 2 + 1), np.int64)
        code = _HEADER
        while code == _HEADER:
            count, at, code = _neighbours(data, at, state, size, skipped, weighted, ends[0], ends[1])
            text.line = int(state[_LINE])
            if code == _HEADER:
                size, announced, skipped, weighted = _sizes(text, state)
                declared.id_range, declared.vertices, declared.may_be_empty = (1, size), size, size > 0
                state[_VERTEX], state[_FIELDS] = 0, 0
                state[_LINE] += 1
        if code == _BINARY:
            raise text.binary(block, at)
        if code != _OK:
            raise text.error(_explain(code, block, at, state, size))
        entries += count
        yield EdgeBlock(ends[0, :count].copy(), ends[1, :count].copy())
    if state[_VERTEX] < 0:
        raise text.error("there is no header; write 'VERTICES EDGES'")
    # The line of a last vertex without neighbours may lack its newline, and be nothing at all then.
    if state[_VERTEX] not in (size, size - 1):
        raise text.error(
            f"{size:,} vertices are announced, and the file has lines of {state[_VERTEX]:,}; restore the file or its "
            "header"
        )
    if entries != 2 * announced:
        notes.guess(
            f"{file.path}: {announced:,} edges are announced; the file has {entries:,} neighbours, not twice as many"
        )
    notes.add("comments", int(state[_COMMENTS]))


def _sizes(text: RawBlocks, state: Int64s) -> tuple[int, int, int, bool]:
    """Return the numbers of vertices and edges, of fields ahead of the neighbours, and whether edges have weights."""
    count = int(state[_FIELDS])
    size, edges, kind, weights = state[_NUMBERS:].tolist()
    if (
        not 2 <= count <= _MOST_NUMBERS
        or (count > 2 and kind not in _FORMATS)
        or (count > 3 and not 1 <= weights < 2**31)
    ):
        raise text.error(
            "this is not the header of a METIS graph; write 'VERTICES EDGES', or 'VERTICES EDGES FORMAT' with a format "
            "such as 001 (weights of edges) or 010 (of vertices)"
        )
    kind, weights = kind if count > 2 else 0, weights if count > 3 else 1
    return size, edges, kind // 100 + weights * (kind // 10 % 10), kind % 10 == 1


def _explain(code: int, block: bytes, at: int, state: Int64s, size: int) -> str:
    word, vertex = word_at(block, at), state[_VERTEX] + 1
    if code == _NOT_INTEGER:
        return f"{word} is not an integer; write whole numbers from 1 up"
    if code == _TOO_LARGE:
        return f"{word} is 2^63 or more; check the file"
    if code == _RANGE:
        return f"vertex {vertex} has the neighbour {word}, which is outside 1..{size}; correct it or the header"
    if code == _MORE:
        return f"this line is that of vertex {vertex}, and {size:,} are announced; restore the file or its header"
    if code == _WEIGHTS:
        return f"vertex {vertex} has fewer weights than the header announces; complete the line or correct the header"
    return f"a neighbour of vertex {vertex} has no weight, which the header announces; complete the line"


@compiled("const(u1[::1]), i8, i8[::1], i8, i8, b1, i8[::1], i8[::1]")
def _neighbours(
    block: npt.NDArray[np.uint8],
    at: int,
    state: Int64s,
    size: int,
    skipped: int,
    weighted: bool,
    src: Int64s,
    dst: Int64s,
) -> tuple[int, int, int]:
    """Read whole words; a line may go on in the next block.

    Parameters
    ----------
    block : uint8[k]
        Words and newlines; the last byte ends a word.
    at
        The first byte to look at.
    state : int64[10]
        See the constants; it continues in the next block.
    size, skipped, weighted
        Of the header: vertices, fields ahead of the neighbours, whether each neighbour has a weight.
    src, dst : int64[k // 2 + 1]
        Receive the ends.

    Returns
    -------
    entries, place of the word that is wrong, code
    """
    count = 0
    while at < block.size:
        byte = block[at]
        if byte == 10:
            code = _end_line(state, size, skipped, weighted)
            if code != _OK:
                return count, at + (code == _HEADER), code
            at += 1
            continue
        if state[_IN_COMMENT] or byte == 32 or byte == 9:
            at += 1
            continue
        if byte == 13 and at + 1 < block.size and block[at + 1] in (10, 13):
            at += 1
            continue
        if byte < 32:
            return count, at, _BINARY
        if byte == 37 and state[_FIELDS] == 0:  # "%"
            state[_IN_COMMENT] = 1
            state[_COMMENTS] += 1
            at += 1
            continue
        begin, field = at, state[_FIELDS]
        header = state[_VERTEX] < 0
        if not header and state[_VERTEX] >= size:
            return count, at, _MORE
        read = header or (field >= skipped and (not weighted or (field - skipped) % 2 == 0))
        value, at, code = _word(block, at, read)
        if code != _OK:
            return count, begin, code
        state[_FIELDS] += 1
        if header:
            if field < _MOST_NUMBERS:
                state[_NUMBERS + field] = value
        elif read:
            if value < 1 or value > size:
                return count, begin, _RANGE
            src[count] = state[_VERTEX] + 1
            dst[count] = value
            count += 1
    return count, at, _OK


@compiled
def _end_line(state: Int64s, size: int, skipped: int, weighted: bool) -> int:
    """End the line of a vertex, of the header, or of a comment."""
    fields = state[_FIELDS]
    if state[_IN_COMMENT]:
        state[_IN_COMMENT] = 0
    elif state[_VERTEX] < 0:
        if fields > 0:
            return _HEADER
    elif state[_VERTEX] < size:
        if fields < skipped:
            return _WEIGHTS
        if weighted and (fields - skipped) % 2 == 1:
            return _WEIGHT
        state[_VERTEX] += 1
    state[_FIELDS] = 0
    state[_LINE] += 1
    return _OK


@compiled
def _word(block: npt.NDArray[np.uint8], at: int, read: bool) -> tuple[int, int, int]:
    """Return the number of a word that is read, the place behind the word, and a code."""
    value = np.int64(0)
    while at < block.size and block[at] > 32:
        digit = block[at] - np.uint8(48)  # wraps round for bytes below "0"
        if read:
            if digit > 9:
                return 0, at, _NOT_INTEGER
            if value >= np.int64(9 * 10**17):
                return 0, at, _TOO_LARGE
            value = value * 10 + np.int64(digit)
        at += 1
    return int(value), at, _OK
