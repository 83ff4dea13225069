"""Data sets of TU Dortmund: many graphs in `NAME_A.txt`, `NAME_graph_indicator.txt` and files of labels beside them.

Line i of the indicator is the graph of vertex i; the graphs are transactions of one data graph. Each line of
`NAME_A.txt` is an entry of the adjacency matrix, so that an edge has two.
"""

from collections.abc import Generator, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from longwall.storage.errors import InputError
from longwall.storage.ingest.readers.edge_stream import Declared, EdgeBlock, EdgeStream, FileRequest
from longwall.storage.ingest.text.text_file import Lines, TextFile
from longwall.storage.ingest.text.tu_files import INDICATOR, file_exists, file_with_ending
from longwall.storage.ingest.transactions import TransactionList
from longwall.storage.ingest.vertex_labels import LabelBlock, LabelSource

_NODE_LABELS, _EDGE_LABELS = "_node_labels.txt", "_edge_labels.txt"
_LIMIT = 2**31

Int64s = npt.NDArray[np.int64]


def open_tu_data_set(file: FileRequest) -> EdgeStream:
    """Read a data set by the file of its entries; attributes, and labels of graphs, are ignored.

    Raises
    ------
    InputError
        From the iteration, with file and line: a vertex that the indicator has not, a label that is none, another
        number of labels than of vertices or entries.
    """
    declared = Declared(matrix=True, may_be_empty=True)
    indicator = _Column(file_with_ending(file.path, INDICATOR), file)
    nodes = file_with_ending(file.path, _NODE_LABELS)
    return EdgeStream(
        str(file.path),
        _blocks(file, declared, indicator),
        vertex_labels=_Column(nodes, file, indicator) if file_exists(nodes) else None,
        declared=declared,
        transactions=TransactionList(indicator),
        notes=file.columns.notes,
    )


class _Column(LabelSource):
    """A file with one integer for each vertex, or entry; opened anew by every method that reads it."""

    def __init__(self, path: Path, entries: FileRequest, vertices: "_Column | None" = None) -> None:
        self.source = str(path)
        self._opening, self._vertices = (path, entries.memory, entries.workers), vertices
        self.rows = 0
        """Lines of the file; known once it has been read."""

    def lines(self) -> Generator[Lines, None, None]:
        """Read the file."""
        rows = 0
        with TextFile(*self._opening) as text:
            for lines in text.parse(text.rows((0,), fields=1)):
                rows += lines.columns.shape[1]
                yield lines
        self.rows = rows

    def count(self) -> int:
        """Read the file to count its lines."""
        for _ in self.lines():
            """Lines are counted."""
        return self.rows

    def blocks(self) -> Iterator[LabelBlock]:
        """Read the values of the vertices 1, 2, 3, ..., as many as the other column has, if it is given."""
        first = 1
        for lines in self.lines():
            count = lines.columns.shape[1]
            yield LabelBlock(np.arange(first, first + count), lines.columns[0], lines.place)
            first += count
        if self._vertices is not None:
            self.require(self._vertices.count(), "vertices")

    def require(self, wanted: int, what: str) -> None:
        """Refuse another number of lines, once the file has been read."""
        if self.rows != wanted:
            raise InputError(
                f"{self.source}, line {self.rows}: {self.rows:,} labels end here, and there are {wanted:,} {what}; "
                "restore the file"
            )


def _blocks(file: FileRequest, declared: Declared, indicator: _Column) -> Generator[EdgeBlock, None, None]:
    size = indicator.count()
    declared.id_range, declared.vertices = (1, size), size
    labels, column = file_with_ending(file.path, _EDGE_LABELS), None
    if file_exists(labels):
        file = replace(file, memory=file.memory // 2)
        column = _Column(labels, file)
    following = _InOrder(column) if column is not None else None
    entries = 0
    with TextFile(*file.opening, file.progress) as text:
        for lines in text.parse(text.rows(fields=2)):
            ends = lines.columns
            bad = ((ends < 1) | (ends > size)).any(axis=0)
            if bad.any():
                row = int(np.argmax(bad))
                what = f"the entry {ends[0, row]} {ends[1, row]} is outside 1..{size}, the vertices of"
                raise text.error(lines.number(row), f"{what} {indicator.source}; correct it")
            count = ends.shape[1]
            entries += count
            taken = None if following is None else following.take(count)
            if taken is None or len(taken) == count:
                yield EdgeBlock(ends[0].copy(), ends[1].copy(), taken)
    if column is not None and following is not None:
        following.take_rest()
        column.require(entries, "entries")


class _InOrder:
    """Hands over the values of a column, as many as are wanted at a time."""

    def __init__(self, column: _Column) -> None:
        self._column, self._lines = column, column.lines()
        self._left = np.empty(0, np.int32)

    def take(self, count: int) -> npt.NDArray[np.int32]:
        """Return int32[count]: the next values, fewer at the end."""
        parts = [self._left]
        while sum(map(len, parts)) < count and (lines := next(self._lines, None)) is not None:
            parts.append(self._checked(lines))
        values: npt.NDArray[np.int32] = np.concatenate(parts)
        taken: npt.NDArray[np.int32] = values[:count]
        self._left = values[count:]
        return taken

    def take_rest(self) -> None:
        """Read the other values, to count them."""
        for _ in self._lines:
            """Lines are counted."""

    def _checked(self, lines: Lines) -> npt.NDArray[np.int32]:
        labels: Int64s = lines.columns[0]
        bad = labels >= _LIMIT
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(
                f"{self._column.source}, {lines.place(row)}: label {labels[row]} is out of range; use labels from 0 to "
                "2147483647"
            )
        narrow: npt.NDArray[np.int32] = labels.astype(np.int32)
        return narrow
