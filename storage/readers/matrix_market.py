"""Matrix Market coordinate files: one entry a line, indices from 1, which stay the vertices' ids."""

from pathlib import Path

import numpy as np

from longwall.storage.errors import InputError
from longwall.storage.readers.raw import RawGraph
from longwall.storage.readers.source import Progress
from longwall.storage.readers.text import TextFile

_FIELDS = ("pattern", "real", "integer")
_SYMMETRIES = ("general", "symmetric", "skew-symmetric")


def read_matrix_market(path: Path, progress: Progress | None = None) -> RawGraph:
    """Read the entries of a square sparse matrix as edges; their values are ignored.

    Raises
    ------
    InputError
        With file and line: a header other than `matrix coordinate` with field pattern, real or integer; a
        matrix that is not square; an index out of range; more or fewer entries than announced.
    """
    src, dst = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    with TextFile(path, progress) as text:
        _check_header(text)
        line, sizes = text.peek()
        size, entries = _sizes(text, line, sizes)
        text.take()
        for lines in text.parse(width=2, needed=2):
            bad = np.flatnonzero(((lines.columns < 1) | (lines.columns > size)).any(axis=0))
            if bad.size:
                i, j = lines.columns[:, bad[0]]
                raise text.error(
                    int(lines.numbers[bad[0]]),
                    f"entry {i} {j} is outside 1..{size}; correct it or the header",
                )
            src.append(lines.columns[0].copy())
            dst.append(lines.columns[1].copy())
    raw = RawGraph(np.concatenate(src), np.concatenate(dst), id_range=(1, size))
    if len(raw.src) != entries:
        raise text.error(
            line,
            f"{entries} entries are announced but the file has {len(raw.src)}; restore the file or its header",
        )
    return raw


def _check_header(text: TextFile) -> None:
    line, header = text.take()
    words = header.lower().split()
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
                f"Matrix Market {word!r} cannot be read as a graph; convert it to {' or '.join(allowed)}",
            )


def _sizes(text: TextFile, line: int, sizes: str) -> tuple[int, int]:
    words = sizes.split()
    if len(words) != 3 or not all(word.isascii() and word.isdigit() for word in words):
        raise text.error(line, "three sizes are needed here: rows, columns and entries; restore the line")
    rows, columns, entries = map(int, words)
    if rows != columns:
        raise text.error(line, f"the matrix is {rows} x {columns}, a graph needs a square one; convert the file")
    if rows >= 2**63:
        raise InputError(f"{text.path}, line {line}: {rows} rows are 2^63 or more; renumber the vertices")
    return rows, entries
