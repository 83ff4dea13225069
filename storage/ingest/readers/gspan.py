"""Databases of graphs in gSpan's format: `t # id`, `v number label`, `e number number label`.

The transactions become one graph: a vertex gets the number of `v` lines ahead of its own as its id. The file is read
for its edges first, and again for labels and transactions of its vertices, so that nothing is kept in between.
"""

from collections.abc import Generator

import numpy as np
import numpy.typing as npt

from longwall.kernels.jit.compile import compiled
from longwall.storage.errors import InputError
from longwall.storage.ingest.readers.edge_stream import Declared, EdgeBlock, EdgeStream, FileRequest
from longwall.storage.ingest.readers.line_labels import LineLabels
from longwall.storage.ingest.text.text_file import Lines, TextFile
from longwall.storage.ingest.transactions import TransactionSource
from longwall.storage.ingest.vertex_labels import LabelBlock, LabelSource

_TRANSACTION, _VERTEX, _EDGE = b"tve"
_LIMIT = 2**31
_SHOWN = 40
_OTHER_FORMAT = (
    "looks like an edge list, and the file is read in the format transactions: give a database of graphs "
    "('t # NUMBER', 'v NUMBER LABEL', 'e NUMBER NUMBER LABEL'), or a second file, of 'VERTEX TRANSACTION' lines, "
    "as transactions"
)
_OK, _NO_TRANSACTION, _ORDER, _UNDECLARED, _LOOP, _NO_LABEL, _LARGE_LABEL = range(7)
_ID, _FIRST, _SIZE = range(3)  # of the transaction being read: its id, its first vertex's, its vertices so far

Int64s = npt.NDArray[np.int64]


def open_transactions(request: FileRequest) -> EdgeStream:
    """Read a database of graphs, called transactions.

    Every transaction begins with `t # id`, whatever follows in the line; no two have the same id. Its vertices are
    numbered 0, 1, 2, ... in the order of their `v number label` lines, which stand ahead of the edges that use them,
    `e number number label`. Labels lie in [0, 2^31), or are texts. `t # -1` ends the file, if there is such a line; `#`
    and `%` begin comments. Transactions without an edge, or without a vertex, count as transactions.

    Raises
    ------
    InputError
        With file and line. From the iteration over the edges: a malformed line, a vertex twice or out of order, an edge
        of an undeclared vertex, a loop, an edge without a label. From building a graph: an edge or a transaction twice.
    """
    file = _Database(request)
    return EdgeStream(
        file.source,
        file.edges(),
        vertex_labels=_Labels(file),
        declared=file.declared,
        transactions=file,
        repeated=file.repeated,
        edge_label_names=file.labels.of_edges,
        notes=request.columns.notes,
    )


class _Database(TransactionSource):
    """A file, opened anew by every method that reads it; its own labels are the transactions of the vertices."""

    def __init__(self, request: FileRequest) -> None:
        self.source = str(request.path)
        self.declared = Declared()
        self.labels = LineLabels(request, b"tve", "t # -1", self._check_beginning)

    def lines(self, *, reports: bool = False) -> Generator[Lines, None, None]:
        """Read the file, with numbers of vertices replaced by ids.

        Yields
        ------
        Lines
            Columns of a transaction: its id; of a vertex: its id, its label, the id of its transaction; of an edge:
            both ends, its label.
        """
        state = np.array([-1, 0, 0], np.int64)
        for lines in self.labels.lines(reports=reports):
            code, row = _number(lines.tags, lines.columns, state)
            if code != _OK:
                raise self._error(lines.number(row), _explain(code, lines.columns[:, row].tolist(), state.tolist()))
            yield lines
        if state[_ID] < 0:
            raise InputError(f"{self.source}: there are no transactions; begin each with a line 't # NUMBER'")
        vertices = int(state[_FIRST] + state[_SIZE])
        self.declared.id_range, self.declared.vertices = (0, vertices - 1), vertices
        self.declared.may_be_empty = vertices > 0

    def _check_beginning(self, text: TextFile) -> None:
        first, line = text.peek()
        if line[:1].isdigit():
            raise self._error(first, f"{line[:_SHOWN]!r} {_OTHER_FORMAT}")

    def edges(self) -> Generator[EdgeBlock, None, None]:
        """Read the edges."""
        for lines in self.lines(reports=True):
            src, dst, labels = lines.select(lines.tags == _EDGE).columns
            if src.size:
                yield EdgeBlock(src, dst, labels.astype(np.int32))

    def vertices(self) -> Generator[Lines, None, None]:
        """Read the vertices."""
        for lines in self.lines():
            yield lines.select(lines.tags == _VERTEX)

    def blocks(self) -> Generator[LabelBlock, None, None]:
        """Read the transactions of the vertices."""
        for lines in self.vertices():
            yield LabelBlock(lines.columns[0], lines.columns[2], lines.place)

    def transaction_ids(self) -> Generator[Int64s, None, None]:
        """Read the ids of the transactions."""
        self._transactions = 0
        for lines in self.lines():
            ids = lines.columns[0][lines.tags == _TRANSACTION]
            self._transactions += ids.size
            yield ids

    def check_ids(self, ids: Int64s) -> None:
        """Refuse an id of two transactions, with the line of the second."""
        if ids.size == self._transactions:
            return
        seen = np.zeros(ids.size, np.bool_)
        for lines in self.lines():
            headers = lines.select(lines.tags == _TRANSACTION)
            at = np.searchsorted(ids, headers.columns[0])
            again = np.ones(at.size, np.bool_)
            again[np.unique(at, return_index=True)[1]] = False
            again |= seen[at]
            if again.any():
                row = int(np.argmax(again))
                number = headers.columns[0, row]
                what = f"transaction {number} begins a second time; give every transaction a number of its own"
                raise self._error(headers.number(row), what)
            seen[at] = True

    def repeated(self, u: int, v: int) -> InputError:
        """Find the second line of an edge."""
        where = self.source
        found = 0
        for lines in self.lines():
            edges = lines.select(lines.tags == _EDGE)
            src, dst = edges.columns[:2]
            rows = np.flatnonzero(((src == u) & (dst == v)) | ((src == v) & (dst == u)))
            if found + rows.size > 1:
                where = f"{self.source}, {edges.place(int(rows[1 - found]))}"
                break
            found += rows.size
        return InputError(f"{where}: this edge is given a second time in its transaction; remove one of the lines")

    def _error(self, line: int, what: str) -> InputError:
        return InputError(f"{self.source}, line {line}: {what}")


class _Labels(LabelSource):
    """The labels of the vertices of a database."""

    def __init__(self, file: _Database) -> None:
        self.source, self.texts = file.source, file.labels.of_vertices
        self._file = file

    def blocks(self) -> Generator[LabelBlock, None, None]:
        for lines in self._file.vertices():
            yield LabelBlock(lines.columns[0], lines.columns[1], lines.place)


def _explain(code: int, row: list[int], state: list[int]) -> str:
    """Return the message for a row that `_number` refused; the row is as it stands in the file."""
    where, size = f"transaction {state[_ID]}", state[_SIZE]
    if code == _NO_TRANSACTION:
        return "this line stands ahead of the first transaction; begin each with a line 't # NUMBER'"
    if code == _ORDER and row[0] < size:
        return f"vertex {row[0]} of {where} is declared a second time; remove one of the lines"
    if code == _ORDER:
        return f"vertex {row[0]} of {where} stands where vertex {size} is due; number them 0, 1, 2, ... in order"
    if code == _UNDECLARED:
        vertex = row[0] if row[0] >= size else row[1]
        return f"vertex {vertex} of {where} is not declared; add a line 'v {vertex} LABEL' ahead of its edges"
    if code == _LOOP:
        return f"this edge joins vertex {row[0]} of {where} to itself; remove the line"
    if code == _NO_LABEL:
        return "this edge has no label; write 'e VERTEX VERTEX LABEL'"
    return "this line has a label >= 2^31; use labels from 0 to 2147483647"


@compiled("u1[::1], i8[:,:], i8[::1]")
def _number(tags: npt.NDArray[np.uint8], columns: Int64s, state: Int64s) -> tuple[int, int]:
    """Replace numbers of vertices by ids, and write the transaction's id into the third column of vertices.

    Stops at a wrong row, which stays as it is.

    Parameters
    ----------
    tags : uint8[rows]
        `t`, `v` or `e`.
    columns : int64[3, rows]
        The integers of the rows, -1 where there are fewer.
    state : int64[3]
        The transaction that is being read; it continues in the next block.

    Returns
    -------
    code, row
    """
    for row in range(tags.size):
        tag = tags[row]
        if tag == _TRANSACTION:
            state[_ID] = columns[0, row]
            state[_FIRST] += state[_SIZE]
            state[_SIZE] = 0
            continue
        if state[_ID] < 0:
            return _NO_TRANSACTION, row
        if tag == _VERTEX:
            if columns[0, row] != state[_SIZE]:
                return _ORDER, row
            if columns[1, row] >= _LIMIT:
                return _LARGE_LABEL, row
            columns[0, row] += state[_FIRST]
            columns[2, row] = state[_ID]
            state[_SIZE] += 1
            continue
        if columns[0, row] >= state[_SIZE] or columns[1, row] >= state[_SIZE]:
            return _UNDECLARED, row
        if columns[0, row] == columns[1, row]:
            return _LOOP, row
        if columns[2, row] < 0:
            return _NO_LABEL, row
        if columns[2, row] >= _LIMIT:
            return _LARGE_LABEL, row
        columns[0, row] += state[_FIRST]
        columns[1, row] += state[_FIRST]
    return _OK, tags.size
