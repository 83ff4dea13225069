"""Graphs of the DIMACS challenge on colouring and cliques: `c` comments, `p edge VERTICES EDGES`, `e U V` lines."""

import re
from collections.abc import Generator
from pathlib import Path

import numpy as np

from longwall.storage.ingest.data_notes import DataNotes
from longwall.storage.ingest.readers.edge_stream import Declared, EdgeBlock, EdgeStream
from longwall.storage.ingest.text.input_file import Progress
from longwall.storage.ingest.text.text_file import TextFile, whole_number

_EDGE = ord("e")
_SHOWN = 40
BEGINNING = re.compile(rb"(?:[ \t]*c(?:[ \t][^\n]*)?\r?\n)*+[ \t]*p[ \t]+(?:edge|col)[ \t]")
"""How such a file begins."""


def open_dimacs(
    path: Path, memory: int, workers: int, progress: Progress | None = None, notes: DataNotes | None = None
) -> EdgeStream:
    """Read `e U V` lines; `n` lines, values of vertices, are ignored. See `edge_stream` for the parameters.

    Raises
    ------
    InputError
        From the iteration, with file and line: no line `p edge` or `p col`, a vertex out of range, another line.
    """
    declared, notes = Declared(), notes or DataNotes()
    return EdgeStream(
        str(path), _blocks(path, memory, workers, progress, declared, notes), declared=declared, notes=notes
    )


def _blocks(
    path: Path, memory: int, workers: int, progress: Progress | None, declared: Declared, notes: DataNotes
) -> Generator[EdgeBlock, None, None]:
    with TextFile(path, memory, workers, progress) as text:
        size, announced = _sizes(text)
        declared.id_range, declared.vertices, declared.may_be_empty = (1, size), size, size > announced == 0
        found = 0
        for lines in text.parse_tagged(b"en", comments=b"c"):
            edges = lines.select(lines.tags == _EDGE)
            ends = edges.columns[:2]
            bad = ((ends < 1) | (ends > size)).any(axis=0)
            if bad.any():
                row = int(np.argmax(bad))
                what = f"the edge {ends[0, row]} {ends[1, row]} is outside 1..{size}; correct it or the line 'p edge'"
                raise text.error(edges.number(row), what)
            found += ends.shape[1]
            yield EdgeBlock(ends[0].copy(), ends[1].copy())
        if found != announced:
            notes.say(f"{path}: {announced:,} edges are announced, and the file has {found:,}")


def _sizes(text: TextFile) -> tuple[int, int]:
    """Take the comments and the line `p edge`, and return the numbers of vertices and edges."""
    while True:
        number, line = text.peek()
        words = line.split(None, 4)
        if words[:1] != ["c"]:
            break
        text.take()
    sizes = [size for word in words[2:] if (size := whole_number(word)) is not None and size < 2**63]
    if words[:1] != ["p"] or words[1:2] not in (["edge"], ["col"]) or len(words) != 4 or len(sizes) != 2:
        raise text.error(
            number,
            f"{line[:_SHOWN]!r} is not the header of a DIMACS graph; write 'p edge VERTICES EDGES' (other problems of "
            "DIMACS, such as 'p sp', are not read: write one edge a line)",
        )
    text.take()
    return sizes[0], sizes[1]
