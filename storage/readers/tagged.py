"""Files of `v ...` and `e ...` lines: GraMi's .lg, and .graph of the subgraph-matching field."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from longwall.storage.readers.raw import RawGraph
from longwall.storage.readers.source import Progress
from longwall.storage.readers.text import TextFile
from longwall.storage.vertex_labels import LabelList

_VERTEX = ord("v")
_ABSENT = -1


def read_lg(path: Path, progress: Progress | None = None) -> RawGraph:
    """Read `t # 1`, then `v id label` and `e u v label` lines; edge labels stand on all edges or on none.

    Raises
    ------
    InputError
        With file and line: a malformed line, a second graph, an edge of an unknown vertex, a vertex twice.
    """
    with TextFile(path, progress) as text:
        line, header = text.peek()
        if header.startswith("t"):
            if header.split()[:2] != ["t", "#"]:
                raise text.error(line, f"{header!r} is not the header of a .lg file; write 't # 1'")
            text.take()
        vertices, edges, edge_lines = _read_body(text)
    given = edges[2]
    if (given == _ABSENT).all():
        return _raw(text, vertices, edges, edge_lines)
    for bad, what in (
        (given == _ABSENT, "no label, but others have one"),
        (given >= 2**31, "a label >= 2^31"),
    ):
        if bad.any():
            row = int(np.argmax(bad))
            raise text.error(int(edge_lines[row]), f"this edge has {what}; label all edges, below 2^31")
    return _raw(text, vertices, edges, edge_lines, given.astype(np.int32))


def read_graph(path: Path, progress: Progress | None = None) -> RawGraph:
    """Read `t n m`, then n lines `v id label degree` and m lines `e u v`; further columns are ignored.

    Raises
    ------
    InputError
        With file and line: as `read_lg`, or more or fewer vertices or edges than announced.
    """
    with TextFile(path, progress) as text:
        line, header = text.peek()
        words = header.split()
        if len(words) != 3 or words[0] != "t" or not all(w.isascii() and w.isdigit() for w in words[1:]):
            raise text.error(line, "this is not the header of a .graph file; write 't VERTICES EDGES'")
        text.take()
        vertices, edges, edge_lines = _read_body(text)
    for announced, found, what in ((words[1], vertices, "vertices"), (words[2], edges, "edges")):
        if int(announced) != found.shape[1]:
            raise text.error(
                line,
                f"{announced} {what} are announced but the file has {found.shape[1]}; restore the file or its header",
            )
    return _raw(text, vertices, edges, edge_lines)


def _read_body(
    text: TextFile,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return vertices int64[4, n] (id, label, -, line), edges int64[3, m], and the edges' lines int64[m]."""
    parts = [np.empty((4, 0), np.int64)]
    tags = [np.empty(0, np.uint8)]
    for lines in text.parse(width=3, needed=2, tagged=True, end=b"t # -1"):
        parts.append(np.vstack((lines.columns, lines.numbers)))
        tags.append(lines.tags.copy())
    rows = np.concatenate(parts, axis=1)
    is_vertex = np.concatenate(tags) == _VERTEX
    edges = rows[:, ~is_vertex]
    return rows[:, is_vertex], edges[:3], edges[3]


def _raw(
    text: TextFile,
    vertices: npt.NDArray[np.int64],
    edges: npt.NDArray[np.int64],
    edge_lines: npt.NDArray[np.int64],
    edge_labels: npt.NDArray[np.int32] | None = None,
) -> RawGraph:
    ids, values, _, lines = vertices
    order = np.argsort(ids, kind="stable")
    ordered = ids[order]
    again = np.flatnonzero(ordered[1:] == ordered[:-1])
    if again.size:
        row = int(order[again + 1].min())
        raise text.error(int(lines[row]), f"vertex {ids[row]} is declared a second time; remove one of the lines")
    known = np.isin(edges[:2], ids)
    if not known.all():
        row = int(np.argmin(known.all(axis=0)))
        vertex = edges[int(np.argmin(known[:, row])), row]
        raise text.error(int(edge_lines[row]), f"vertex {vertex} is not declared; add a line 'v {vertex} LABEL'")
    return RawGraph(
        src=edges[0],
        dst=edges[1],
        edge_labels=edge_labels,
        vertex_labels=LabelList(ids, values, str(text.path), lambda row: f"line {lines[row]}"),
        id_range=(int(ordered[0]), int(ordered[-1])) if len(ids) else None,
    )
