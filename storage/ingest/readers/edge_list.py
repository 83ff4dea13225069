"""Plain edge lists (`u v` a line) and lists of labels or transactions (`vertex label` a line)."""

from collections.abc import Generator
from pathlib import Path

from longwall.storage.errors import InputError
from longwall.storage.ingest.readers.columns import (
    EDGE_COLUMNS,
    LABEL_COLUMNS,
    ColumnRequest,
    choose_columns,
    describe_choice,
    header_names,
)
from longwall.storage.ingest.readers.edge_stream import EdgeBlock, EdgeStream
from longwall.storage.ingest.text.input_file import Progress
from longwall.storage.ingest.text.text_file import Lines, TextFile
from longwall.storage.ingest.text.text_kernel import OWN_SEPARATOR
from longwall.storage.ingest.vertex_labels import LabelBlock, LabelSource

_OTHER_FORMATS = {"<": "XML", "{": "JSON", "[": "JSON"}


def open_edge_list(
    path: Path,
    memory: int,
    workers: int,
    progress: Progress | None = None,
    request: ColumnRequest = EDGE_COLUMNS,
) -> EdgeStream:
    """Read one edge a line; see `edge_stream` for the parameters.

    The first line that is neither blank nor a comment (`#`, `%`) may name the columns: a known pair of names (such as
    source and target), the two that `request` chooses, or the only two columns are the edge then. Without names the
    first two columns are. All rows have the same number of fields, none of them empty; see
    `text_kernel.parse_lines` for separators and line ends.

    Raises
    ------
    InputError
        From the iteration, with file and line: the file cannot be read, it is not clear which columns are the edge, or
        a line is not an edge or differs from the others.
    """
    pairs = _pairs(path, memory, workers, progress, request)
    return EdgeStream(str(path), (EdgeBlock(lines.columns[0], lines.columns[1]) for lines in pairs))


def open_label_list(path: Path, memory: int, workers: int, request: ColumnRequest = LABEL_COLUMNS) -> LabelSource:
    """Read one vertex a line: its id, its label; written as edge lists are, see `edge_stream` for the parameters.

    Raises
    ------
    InputError
        From the iteration, with file and line: the file cannot be read, or a line is not a vertex and a label.
    """
    return _LabelList(path, memory, workers, request)


class _LabelList(LabelSource):
    def __init__(self, path: Path, memory: int, workers: int, request: ColumnRequest) -> None:
        self.source = str(path)
        self._opening = path, memory, workers, None, request

    def blocks(self) -> Generator[LabelBlock, None, None]:
        for lines in _pairs(*self._opening):
            yield LabelBlock(lines.columns[0], lines.columns[1], lines.place)


def _pairs(
    path: Path, memory: int, workers: int, progress: Progress | None, request: ColumnRequest
) -> Generator[Lines, None, None]:
    with TextFile(path, memory, workers, progress) as text:
        number, line = text.peek()

        def error(what: str) -> InputError:
            return text.error(number, what)

        if line[:1] in _OTHER_FORMATS:
            raise error(f"this looks like {_OTHER_FORMATS[line[0]]}, not like an edge; convert the file")
        header = header_names(line, text.tab_separates, request, error)
        if header is None:
            if (fields := text.count_fields()) > 2:
                request.note(describe_choice(path, (), fields - 2))
            yield from text.parse(fields=fields)
            return
        names, separator = header
        first, second = choose_columns(names, request, error)
        request.note(describe_choice(path, (names[first], names[second]), len(names) - 2))
        places = [-1] * (max(first, second) + 1)
        places[first], places[second] = 0, 1
        text.take()
        # A row of two fields cannot be misread, whatever separates them.
        yield from text.parse(tuple(places), separator if len(names) > 2 else OWN_SEPARATOR, len(names))
