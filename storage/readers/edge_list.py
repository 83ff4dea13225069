"""Plain edge lists (`u v` a line) and label files (`vertex label` a line)."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from longwall.storage.readers.raw import RawGraph
from longwall.storage.readers.source import Progress, format_suffix
from longwall.storage.readers.text import TextFile
from longwall.storage.vertex_labels import LabelList

_WITH_HEADER = (".csv", ".tsv")


def read_edge_list(path: Path, progress: Progress | None = None) -> RawGraph:
    """Read one edge a line: two vertex ids, then columns that are ignored.

    Separators are any mix of spaces, tabs, commas, semicolons and bars; lines that start with `#` or `%` are
    comments; the first line of a .csv or .tsv file may name the columns.

    Raises
    ------
    InputError
        With file and line: the file cannot be read, or a line is not an edge.
    """
    src, dst, _ = _read_pairs(path, progress, keep_numbers=False)
    return RawGraph(src, dst)


def read_label_list(path: Path) -> LabelList:
    """Read one labelled vertex a line: its id, its label; written as edge lists are.

    Raises
    ------
    InputError
        With file and line: the file cannot be read, or a line is not a vertex and a label.
    """
    ids, values, numbers = _read_pairs(path, None, keep_numbers=True)
    return LabelList(ids, values, str(path), lambda row: f"line {numbers[row]}")


def _read_pairs(
    path: Path, progress: Progress | None, keep_numbers: bool
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    first, second, numbers = ([np.empty(0, np.int64)] for _ in range(3))
    with TextFile(path, progress) as text:
        if format_suffix(path) in _WITH_HEADER and _names_columns(text.peek()[1]):
            text.take()
        for lines in text.parse(width=2, needed=2):
            first.append(lines.columns[0].copy())
            second.append(lines.columns[1].copy())
            if keep_numbers:
                numbers.append(lines.numbers)
    return np.concatenate(first), np.concatenate(second), np.concatenate(numbers)


def _names_columns(line: str) -> bool:
    return line.lstrip("\"'_")[:1].isalpha() and line.replace("\t", " ").isprintable()
