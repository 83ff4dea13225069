"""Plain edge lists (`u v` a line) and label files (`vertex label` a line)."""

from collections.abc import Generator
from pathlib import Path

from longwall.storage.readers.raw import EdgeBlock, RawGraph
from longwall.storage.readers.source import Progress, format_suffix
from longwall.storage.readers.text import Lines, TextFile
from longwall.storage.vertex_labels import LabelBlock, LabelSource

_WITH_HEADER = (".csv", ".tsv")


def open_edge_list(path: Path, memory: int, workers: int, progress: Progress | None = None) -> RawGraph:
    """Read one edge a line: two vertex ids, then columns that are ignored; see `raw` for the parameters.

    Separators are any mix of spaces, tabs, commas, semicolons and bars; lines that start with `#` or `%` are
    comments; the first line of a .csv or .tsv file may name the columns.

    Raises
    ------
    InputError
        From the iteration, with file and line: the file cannot be read, or a line is not an edge.
    """
    pairs = _pairs(path, memory, workers, progress)
    return RawGraph(str(path), (EdgeBlock(lines.columns[0], lines.columns[1]) for lines in pairs))


def open_label_list(path: Path, memory: int, workers: int) -> LabelSource:
    """Read one labelled vertex a line: its id, its label; written as edge lists are, see `raw` for the parameters.

    Raises
    ------
    InputError
        From the iteration, with file and line: the file cannot be read, or a line is not a vertex and a label.
    """
    return _LabelList(path, memory, workers)


class _LabelList(LabelSource):
    def __init__(self, path: Path, memory: int, workers: int) -> None:
        self.source = str(path)
        self._opening = path, memory, workers

    def blocks(self) -> Generator[LabelBlock, None, None]:
        for lines in _pairs(*self._opening, None):
            yield LabelBlock(lines.columns[0], lines.columns[1], lines.place)


def _pairs(path: Path, memory: int, workers: int, progress: Progress | None) -> Generator[Lines, None, None]:
    with TextFile(path, memory, workers, progress) as text:
        if format_suffix(path) in _WITH_HEADER and _names_columns(text.peek()[1]):
            text.take()
        yield from text.parse(width=2, needed=2)


def _names_columns(line: str) -> bool:
    return line.lstrip("\"'_")[:1].isalpha() and line.replace("\t", " ").isprintable()
