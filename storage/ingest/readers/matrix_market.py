"""Matrix Market coordinate files: one entry a line, indices from 1, which stay the vertices' ids."""

from collections.abc import Generator

import numpy as np

from longwall.storage.ingest.readers.edge_stream import Declared, EdgeBlock, EdgeStream, FileRequest
from longwall.storage.ingest.text.text_file import Lines, TextFile, whole_number

_SHOWN = 40
_FIELDS = ("pattern", "real", "integer")
_SYMMETRIES = ("general", "symmetric", "skew-symmetric")


def open_matrix_market(file: FileRequest) -> EdgeStream:
    """Read the entries of a square sparse matrix as edges; their values are ignored.

    Raises
    ------
    InputError
        From the iteration, with file and line: a header other than `matrix coordinate` with field pattern, real or
        integer; a matrix that is not square; an index out of range; more or fewer entries than announced.
    """
    declared = Declared()
    return EdgeStream(str(file.path), _blocks(file, declared), declared=declared, notes=file.columns.notes)


def _blocks(file: FileRequest, declared: Declared) -> Generator[EdgeBlock, None, None]:
    with TextFile(*file.opening, file.progress) as text:
        declared.matrix = _check_header(text) == "general"
        line, sizes = text.peek()
        size, entries = _sizes(text, line, sizes)
        text.take()
        declared.id_range, declared.vertices, declared.may_be_empty = (1, size), size, size > 0
        found = 0
        text.peek()
        for lines in text.parse(text.rows(fields=text.count_fields())):
            _check_range(text, lines, size)
            found += lines.columns.shape[1]
            yield EdgeBlock(lines.columns[0], lines.columns[1])
        if found != entries:
            raise text.error(
                line, f"{entries} entries are announced but the file has {found}; restore the file or its header"
            )
        file.columns.notes.add("comments", text.comments)


def _check_range(text: TextFile, lines: Lines, size: int) -> None:
    if lines.columns.min(initial=1) >= 1 and lines.columns.max(initial=0) <= size:
        return
    row = int(np.argmax(((lines.columns < 1) | (lines.columns > size)).any(axis=0)))
    i, j = lines.columns[:, row]
    raise text.error(lines.number(row), f"entry {i} {j} is outside 1..{size}; correct it or the header")


def _check_header(text: TextFile) -> str:
    """Take the header, and return its symmetry."""
    line, header = text.take()
    words = header.lower().split(None, 5)
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        raise text.error(
            line,
            "this is not a Matrix Market header; begin the file with "
            "'%%MatrixMarket matrix coordinate pattern symmetric' or the like",
        )
    for word, allowed in zip(words[2:], (("coordinate",), _FIELDS, _SYMMETRIES), strict=True):
        if word not in allowed:
            raise text.error(
                line,
                f"Matrix Market {word[:_SHOWN]!r} cannot be read as a graph; convert it to {' or '.join(allowed)}",
            )
    return words[4]


def _sizes(text: TextFile, line: int, sizes: str) -> tuple[int, int]:
    words = sizes.split(None, 3)
    numbers = [number for word in words if (number := whole_number(word)) is not None]
    if len(numbers) != 3 or len(words) != 3:
        raise text.error(line, "three sizes are needed here: rows, columns and entries; restore the line")
    rows, columns, entries = numbers
    if max(numbers) >= 2**63:
        raise text.error(line, "a size is 2^63 or more; correct the line, or renumber the vertices")
    if rows != columns:
        raise text.error(line, f"the matrix is {rows} x {columns}, a graph needs a square one; convert the file")
    return rows, entries
