"""Files of `v ...` and `e ...` lines: GraMi's .lg, and .graph of the subgraph-matching field.

Such a file is read for its edges first, and again for its vertices' labels, so that nothing is kept in between. Two
lines for one vertex, and edges of vertices without a line, are found when the labels are matched with the graph.
"""

from abc import abstractmethod
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from longwall.storage.errors import InputError
from longwall.storage.ingest.names.label_names import LabelNames
from longwall.storage.ingest.readers.edge_stream import Declared, EdgeBlock, EdgeStream, FileRequest
from longwall.storage.ingest.readers.line_labels import LineLabels
from longwall.storage.ingest.text.text_file import Lines, TextFile, whole_number
from longwall.storage.ingest.vertex_labels import Int64s, LabelBlock, LabelSource

_EDGE = ord("e")
_END = "t # -1"
_ABSENT = -1
_LIMIT = 2**31
_WHOLE_MEMORY = 2**24
_SHOWN = 40


def open_lg(file: FileRequest) -> EdgeStream:
    """Read `t # 1`, then `v id label` and `e u v label` lines; edge labels stand on all edges or on none.

    Raises
    ------
    InputError
        With file and line. From the iteration over the edges: a malformed line, a second graph. From `place_labels`:
        a vertex twice, an edge of an unknown vertex; vertices without an edge to another one are not looked at.
    """
    opened = _LgFile(file)
    return opened.stream(opened.labels.of_edges)


def open_graph(file: FileRequest) -> EdgeStream:
    """Read `t n m`, then n lines `v id label degree` and m lines `e u v`; further columns are ignored.

    The header may be `t id n` or `t # id` as well, where `id` is the number of the graph.

    Raises
    ------
    InputError
        With file and line: as `open_lg`, or more or fewer vertices or edges than announced.
    """
    return _GraphFile(file).stream()


@dataclass(frozen=True, eq=False)
class WholeGraph:
    """A small graph, held whole."""

    src: Int64s
    """int64[m]"""
    dst: Int64s
    """int64[m]"""
    vertex_labels: LabelBlock
    """All vertices, each once."""


def read_graph(path: Path) -> WholeGraph:
    """Read a .graph file of a pattern, or another graph small enough to be held whole.

    Raises
    ------
    InputError
        With file and line: as `open_graph`, or any vertex twice, or an edge of an undeclared vertex.
    """
    file = _GraphFile(FileRequest(path, _WHOLE_MEMORY, workers=1))
    none = np.empty(0, np.int64)
    edges = [EdgeBlock(none, none), *file.edges()]
    src, dst = np.concatenate([block.src for block in edges]), np.concatenate([block.dst for block in edges])
    blocks = [LabelBlock(none, none, str), *file.blocks()]
    ids, values = np.concatenate([block.ids for block in blocks]), np.concatenate([block.values for block in blocks])
    if file.label_names is not None:
        raise InputError(f"{path}: the label {file.label_names[0]} is a text; write integers as labels of a pattern")
    starts = np.cumsum([0, *(len(block.ids) for block in blocks)])

    def place(row: int) -> str:
        at = int(np.searchsorted(starts, row, side="right")) - 1
        return blocks[at].place(row - int(starts[at]))

    repeated = np.ones(len(ids), np.bool_)
    repeated[np.unique(ids, return_index=True)[1]] = False
    if repeated.any():
        row = int(np.argmax(repeated))
        raise InputError(f"{path}, {place(row)}: vertex {ids[row]} is declared a second time; remove one of the lines")
    undeclared = ~np.isin(np.concatenate((src, dst)), ids)
    if undeclared.any():
        raise file.unlabelled(str(np.concatenate((src, dst))[undeclared][0]), lambda some: ~np.isin(some, ids))
    return WholeGraph(src, dst, LabelBlock(ids, values, place))


class _TaggedFile(LabelSource):
    """A file, opened anew by every method that reads it."""

    def __init__(self, request: FileRequest) -> None:
        self.source, self._notes = str(request.path), request.columns.notes
        self.declared = Declared()
        self.labels = LineLabels(request, b"ve", _END, self._check_header)
        self.texts = self.labels.of_vertices
        self._vertices: int | None = None

    def stream(self, edge_labels: LabelNames | None = None) -> EdgeStream:
        """Return the edges, with this object as labels of vertices; `edge_labels` collects labels that are texts."""
        return EdgeStream(
            self.source, self.edges(), self, self.declared, edge_label_names=edge_labels, notes=self._notes
        )

    @property
    def declares(self) -> bool:
        """A vertex has one line."""
        return True

    @abstractmethod
    def edges(self) -> Generator[EdgeBlock, None, None]:
        """Read the edges, and learn the number and the range of the vertices on the way."""

    @abstractmethod
    def _check_header(self, text: TextFile) -> None:
        """Take the header, or raise its error."""

    def _edge_lines(self) -> Generator[Lines, None, None]:
        vertices = 0
        for lines in self.labels.lines(reports=True):
            is_edge = lines.tags == _EDGE
            ids = lines.columns[0][~is_edge]
            if ids.size:
                vertices += ids.size
                low, high = self.declared.id_range or (ids[0], ids[0])
                self.declared.id_range = int(min(low, ids.min())), int(max(high, ids.max()))
                self.declared.may_be_empty = True
            if ids.size < is_edge.size:
                yield lines.select(is_edge)
        self._vertices = vertices

    def blocks(self) -> Generator[LabelBlock, None, None]:
        """Read the vertices; the file's end is not read if only edges follow."""
        missing = self._vertices
        for lines in self.labels.lines():
            vertices = lines.select(lines.tags != _EDGE)
            yield LabelBlock(vertices.columns[0], vertices.columns[1], vertices.place)
            if missing is not None:
                missing -= vertices.tags.size
                if missing == 0:
                    return

    def unlabelled(self, vertex: str, lacks: Callable[[Int64s], npt.NDArray[np.bool_]]) -> InputError:
        """Find the first edge of an undeclared vertex."""
        where = self.source
        for lines in self.labels.lines():
            edges = lines.select(lines.tags == _EDGE)
            src, dst = edges.columns[:2]
            of_src = lacks(src)
            bad = np.flatnonzero(of_src | lacks(dst))
            if bad.size:
                row = int(bad[0])
                vertex = str(src[row] if of_src[row] else dst[row])
                where = f"{self.source}, {edges.place(row)}"
                break
        return InputError(f"{where}: vertex {vertex} is not declared; add a line 'v {vertex} LABEL'")

    def _error(self, line: int, what: str) -> InputError:
        return InputError(f"{self.source}, line {line}: {what}")


class _LgFile(_TaggedFile):
    def _check_header(self, text: TextFile) -> None:
        line, header = text.peek()
        if header.startswith("t") and header != _END:
            if header.split(None, 2)[:2] != ["t", "#"]:
                raise self._error(line, f"{header[:_SHOWN]!r} is not the header of a .lg file; write 't # 1'")
            text.take()

    def edges(self) -> Generator[EdgeBlock, None, None]:
        """Read the edges and their labels; the first one says whether all have labels."""
        first, labelled = 0, False
        for edges in self._edge_lines():
            src, dst, given = edges.columns
            lacks = given == _ABSENT
            if first == 0:
                first, labelled = edges.number(0), not lacks[0]
            if not labelled and not lacks.all():
                raise self._label_error(first, "no label, but others have one")
            bad = lacks | (given >= _LIMIT)
            if labelled and bad.any():
                row = int(np.argmax(bad))
                what = "no label, but others have one" if lacks[row] else "a label >= 2^31"
                raise self._label_error(edges.number(row), what)
            yield EdgeBlock(src, dst, given.astype(np.int32) if labelled else None)

    def _label_error(self, line: int, what: str) -> InputError:
        return self._error(line, f"this edge has {what}; label all edges, below 2^31")


class _GraphFile(_TaggedFile):
    _header: tuple[int, list[int]] | None
    """The line of the header, and its two counts; None where it has none."""

    def _check_header(self, text: TextFile) -> None:
        line, header = text.peek()
        first, *words = header.split(None, 4) or [""]
        only_id = words[:1] == ["#"]
        counts = words[1:] if only_id else words
        numbers = [number for word in counts if (number := whole_number(word)) is not None]
        if first != "t" or len(counts) != len(numbers) or len(counts) != (1 if only_id else 2):
            raise self._error(
                line,
                "this is not the header of a .graph file; write 't VERTICES EDGES', 't ID VERTICES' or 't # ID', or "
                "name a METIS file .metis",
            )
        if max(numbers) >= 2**63:
            raise self._error(line, "the header announces 2^63 or more; correct the line")
        text.take()
        self._header = None if only_id else (line, numbers)

    def edges(self) -> Generator[EdgeBlock, None, None]:
        """Read the edges; compare the counts with the header's."""
        count = 0
        for edges in self._edge_lines():
            count += edges.tags.size
            yield EdgeBlock(edges.columns[0], edges.columns[1])
        if self._header is None:
            return
        line, announced = self._header
        if count and announced[0] != self._vertices and announced[1] == self._vertices:
            return  # 't ID VERTICES'
        for expected, found, what in zip(announced, (self._vertices, count), ("vertices", "edges"), strict=True):
            if expected != found:
                raise self._error(
                    line,
                    f"{expected} {what} are announced but the file has {found}; restore the file or its header",
                )
