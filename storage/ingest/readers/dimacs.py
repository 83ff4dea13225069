"""Graphs of the DIMACS challenges: `c` comments, `p edge VERTICES EDGES` and `e U V`, or `p sp` and `a U V LENGTH`."""

import re
from collections.abc import Generator

import numpy as np

from longwall.storage.ingest.readers.edge_stream import Declared, EdgeBlock, EdgeStream, FileRequest
from longwall.storage.ingest.text.text_file import TextFile, whole_number

_NODE = ord("n")
_SHOWN = 40
BEGINNING = re.compile(rb"(?:[ \t]*c(?:[ \t][^\n]*)?\r?\n)*+[ \t]*p[ \t]+[a-z]+(?:[ \t]+\d+){2}[ \t]*\r?\n")
"""The beginning of a DIMACS file."""


def open_dimacs(file: FileRequest) -> EdgeStream:
    """Read `e U V` lines, or the arcs `a U V LENGTH` of shortest paths.

    The arcs U V and V U are one edge; one arc alone is an edge with a direction. Values of vertices (`n` lines) and
    lengths are ignored.

    Raises
    ------
    InputError
        From the iteration, with file and line: no line `p edge`, `p col` or `p sp`, a vertex out of range, another
        line.
    """
    declared = Declared()
    return EdgeStream(str(file.path), _blocks(file, declared), declared=declared, notes=file.columns.notes)


def _blocks(file: FileRequest, declared: Declared) -> Generator[EdgeBlock, None, None]:
    with TextFile(*file.opening, file.progress) as text:
        kind, size, announced, comments = _sizes(text)
        declared.matrix = kind == "sp"
        declared.id_range, declared.vertices, declared.may_be_empty = (1, size), size, size > announced == 0
        found = 0
        for lines in text.parse(text.tagged_rows(b"a" if declared.matrix else b"en", comments=b"c", width=2)):
            edges = lines.select(lines.tags != _NODE)
            ends = edges.columns
            bad = ((ends < 1) | (ends > size)).any(axis=0)
            if bad.any():
                row = int(np.argmax(bad))
                what = f"the edge {ends[0, row]} {ends[1, row]} is outside 1..{size}; correct it or the line 'p {kind}'"
                raise text.error(edges.number(row), what)
            found += ends.shape[1]
            yield EdgeBlock(ends[0].copy(), ends[1].copy())
        if found != announced:
            what = "arcs" if declared.matrix else "edges"
            file.columns.notes.guess(f"{file.path}: {announced:,} {what} are announced, and the file has {found:,}")
        file.columns.notes.add("comments", comments + text.comments)


def _sizes(text: TextFile) -> tuple[str, int, int, int]:
    """Take the line `p edge`; return its second word, and the numbers of vertices, edges, and comments before it."""
    comments = 0
    while True:
        number, line = text.peek()
        words = line.split(None, 4)
        if words[:1] != ["c"]:
            break
        text.take()
        comments += 1
    sizes = [size for word in words[2:] if (size := whole_number(word)) is not None and size < 2**63]
    if words[:1] != ["p"] or words[1:2] not in (["edge"], ["col"], ["sp"]) or len(words) != 4 or len(sizes) != 2:
        raise text.error(
            number,
            f"{line[:_SHOWN]!r} is not the header of a DIMACS graph; write 'p edge VERTICES EDGES' or 'p sp VERTICES "
            "ARCS' (other problems, such as 'p max' and 'p tw', are not read: write one edge a line)",
        )
    text.take()
    return words[1], sizes[0], sizes[1], comments
