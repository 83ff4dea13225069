"""Plain edge lists (`u v` a line) and lists of labels or transactions (`vertex label` a line)."""

import re
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from longwall.storage.errors import InputError
from longwall.storage.ingest.data_notes import DataNotes
from longwall.storage.ingest.names.label_names import LabelNames
from longwall.storage.ingest.names.texts import HashedTexts
from longwall.storage.ingest.readers.dimacs import BEGINNING
from longwall.storage.ingest.readers.edge_stream import Declared, EdgeBlock, EdgeNames, EdgeStream, FileRequest
from longwall.storage.ingest.tables.columns import EDGES, ColumnRequest
from longwall.storage.ingest.tables.named_rows import BYTES_PER_BYTE, NamedColumns, NamedRows
from longwall.storage.ingest.tables.text_layout import TextLayout, dropping, look_at_rows, with_text_labels
from longwall.storage.ingest.text.missing_rows import DROP, DROP_ENDS, MISSING, and_more
from longwall.storage.ingest.text.parsed_rows import COMMENTS
from longwall.storage.ingest.text.text_file import BYTES_OF_INTEGERS, Lines, TextFile
from longwall.storage.ingest.vertex_labels import LabelBlock, LabelSource

Int64s = npt.NDArray[np.int64]

_LABEL_LIMIT = 2**31
_KONECT = re.compile(r"%\s*(bip|asym|sym)(?:\s|$)")
_SHOWN = 40
_TAGGED = re.compile(rb"(?:[veta](?:[ \t]+\d+){2,}[ \t]*(?:\r?\n|\Z)){2}")
_SECTION = re.compile(r"\[[a-z]+\]\s*(?:#.*)?")  # of TOML
_OTHER_FORMATS = {"<": "XML", "{": "JSON", "[": "JSON"}


def open_edge_list(file: FileRequest) -> EdgeStream:
    """Read one edge a line.

    The first line that is neither blank nor a comment (`#`, `%`) may name the columns: a known pair of names (such as
    source and target), the two that the request chooses, or the only two columns are the edge then. Without names the
    first two columns are. All rows have the same number of fields, those that are read are not empty; see
    `text_kernel.parse_lines` for separators and line ends. Below names of columns each line is a row: there are no
    comments. A file whose first line is KONECT's, `% bip ...`, has two sets of vertices: those of the second column
    get their ids with a minus sign.

    Raises
    ------
    InputError
        From the iteration, with file and line: the file cannot be read, it is not clear which columns are the edge, or
        a line is not an edge or differs from the others.
    """
    labels, declared = file.columns.label_names or LabelNames(str(file.path)), Declared()
    blocks = _edges(file, labels, declared)
    return EdgeStream(str(file.path), blocks, declared=declared, edge_label_names=labels, notes=file.columns.notes)


def open_sif(file: FileRequest) -> EdgeStream:
    """Read the first and the third field of each row of the simple interaction format of Cytoscape as an edge.

    Raises
    ------
    InputError
        From the iteration: as of `open_edge_list`; or a row has another number of fields.
    """
    return open_edge_list(replace(file, columns=replace(file.columns, chosen=(1, 3), header=False, fields=3)))


class LabelList(LabelSource):
    """One vertex a line: its id, its label; written as edge lists are.

    Raises
    ------
    InputError
        From the iteration, with file and line: the file cannot be read, or a line is not a vertex and a label.
    """

    texts: LabelNames

    def __init__(self, file: FileRequest) -> None:
        self.source = str(file.path)
        self.texts, self._file = LabelNames(self.source), file

    def blocks(self) -> Generator[LabelBlock, None, None]:
        """See `LabelSource`."""
        for lines, layout in _rows(self._file, 1, self.named):
            named: NamedColumns = lines.converted
            vertices = named.vertices if layout.texts[0] else None
            values = lines.columns[1] if not layout.texts[1] else self.texts.numbers(_given(named.labels))
            if vertices is None:
                yield LabelBlock(lines.columns[0], values, lines.place, unsigned=lines.unsigned)
            else:
                yield LabelBlock(vertices.ids, values, lines.place, vertices.show)
        # A list is read more than once, and its notes are shown once.
        self._file = replace(self._file, columns=replace(self._file.columns, notes=DataNotes()))


def _edges(file: FileRequest, labels: LabelNames, declared: Declared) -> Generator[EdgeBlock, None, None]:
    path, request, konect = file.path, file.columns, _konect_kind(file)
    declared.directed |= konect == "asym"
    if konect == "bip":
        file = replace(file, columns=replace(request, ids="integers"))
        if request.ids == "names":
            raise InputError(
                f'{path}: the ids of a bipartite graph of KONECT are integers; leave out graph.ids = "names"'
            )
        request.notes.guess(
            f"{path}: two sets of vertices, as its first line has it (bip): vertex 7 of the second column is -7"
        )
    for lines, layout in _rows(file, 2, None):
        if konect == "bip":
            _part_sides(path, lines, layout)
        named: NamedColumns = lines.converted
        edge_labels = None
        if len(layout.columns) == 3:
            numbers = labels.numbers(_given(named.labels)) if layout.texts[2] else lines.columns[2]
            edge_labels = _checked_labels(path, lines, numbers)
        if layout.texts[0]:
            yield EdgeNames(_given(named.vertices), lines.place).block(edge_labels)
        else:
            yield EdgeBlock(lines.columns[0], lines.columns[1], edge_labels, unsigned=lines.unsigned)


def _konect_kind(file: FileRequest) -> str:
    """Return "bip", "asym" or "sym", if the first line says so as KONECT's do; else ""."""
    with TextFile(*file.opening) as text:
        found = _KONECT.match(text.look())
    return found[1] if found else ""


def _part_sides(path: Path, lines: Lines, layout: TextLayout) -> None:
    """Give the vertices of the second column of a file ids below 0."""
    for at, column in enumerate(layout.columns[:2]):
        bad = lines.columns[at] < 1
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(
                f"{path}, {lines.place(row)}: vertex {lines.columns[at, row]} in a bipartite graph of KONECT, whose "
                "ids begin with 1; renumber the vertices, or remove the first line of the file"
            )
        if column == 1:
            np.negative(lines.columns[at], out=lines.columns[at])


def _given(texts: HashedTexts | None) -> HashedTexts:
    assert texts is not None
    return texts


def _checked_labels(path: Path, lines: Lines, labels: Int64s) -> npt.NDArray[np.int32]:
    bad = labels >= _LABEL_LIMIT
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{path}, {lines.place(row)}: label {labels[row]} is out of range; use labels from 0 to 2147483647"
        )
    return labels.astype(np.int32)


def _rows(file: FileRequest, ends: int, named: bool | None) -> Generator[tuple[Lines, TextLayout], None, None]:
    """Yield rows whose first columns, one or two, are vertices."""
    request = file.columns
    with TextFile(*file.opening, is_table=True) as text:
        number, line = text.peek()
        layout = _layout(text, number, line, request, named)
        layout = with_text_labels(text, line, layout, request, ends)
    if line and request.fields not in (0, layout.fields):
        shown = f"{layout.fields} fields in {line[:_SHOWN]!r}"
        raise text.error(number, f"{shown}; this format has {request.fields} a row, one row for each edge")
    texts = any(layout.texts)
    bytes_per_byte = BYTES_PER_BYTE if texts else BYTES_OF_INTEGERS
    with TextFile(*file.opening, file.progress, bytes_per_byte, is_table=True) as text:
        if layout.header:
            text.peek()
            text.take()
        drops, missing = dropping(request, ends)
        convert = NamedRows(ends, layout.texts, request.ids != "names" and not drops) if texts else None
        comments, role = b"" if layout.header else COMMENTS, request.names.role
        roles = [""] * ends + [role] * (len(layout.texts) - ends)
        rows = text.rows(layout.places, layout.separator, layout.fields, convert, ends, comments, drops, missing)
        for lines in text.parse(rows, roles=roles):
            if lines.converted is not None and lines.converted.missing[0] >= 0:
                raise _missing(file.path, lines, DROP if drops is None else DROP_ENDS)
            yield lines, layout
        request.notes.add("rows", text.dropped)
        request.notes.add("comments", text.comments)
        request.notes.add("zeros", text.padded, 'graph.ids = "names" keeps them' if request.names is EDGES else "")


def _missing(path: Path, lines: Lines, drop: str) -> InputError:
    row, count = lines.converted.missing
    ends = lines.converted.vertices
    each = len(ends) // lines.columns.shape[1]
    word = next(word for word in map(ends.show, range(row * each, row * each + each)) if word in MISSING)
    more = and_more(count - 1, lines.place(lines.columns.shape[1] - 1), "as in")
    advice = f"fill {'them' if more else 'it'}, or {drop if more or drop is not DROP else 'remove the line'}"
    return InputError(
        f"{path}, {lines.place(row)}: {word} stands for a missing value{more}; {advice}; if it is a name, "
        'put it in quotes, or set graph.ids = "names"'
    )


def _layout(text: TextFile, number: int, line: str, request: ColumnRequest, named: bool | None) -> TextLayout:
    def error(what: str) -> InputError:
        return text.error(number, what)

    if _SECTION.fullmatch(line):
        raise error("this looks like a config, not like an edge; give it to longwall run, or give its graph")
    if line[:1] in _OTHER_FORMATS:
        raise error(f"this looks like {_OTHER_FORMATS[line[0]]}, not like an edge; convert the file")
    if text.begins_like(BEGINNING):
        raise error(
            'this is a DIMACS graph; name the file .col, .clq or .gr, or give --format dimacs (file_format="dimacs")'
        )
    if request.names is EDGES and request.chosen is None and text.begins_like(_TAGGED):
        raise error(
            f"{line[:_SHOWN]!r} begins with a letter, as lines of DIMACS, .lg and gSpan files do; name the file by its "
            "format (.col, .lg, .gspan), or give --columns 2,3 (graph.columns = [2, 3]) to read a list"
        )
    return look_at_rows(text, line, request, named, error)
