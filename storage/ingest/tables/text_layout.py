"""What the rows of a text table look like: which line names columns, which columns are wanted, and which are texts."""

import csv
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from longwall.storage.errors import InputError
from longwall.storage.ingest.tables.columns import (
    TRANSACTIONS,
    ColumnRequest,
    choose_columns,
    describe_choice,
    header_names,
    known_pair,
    place_of_column,
    separator_of,
    with_label,
)
from longwall.storage.ingest.text.missing_rows import MISSING
from longwall.storage.ingest.text.parsed_rows import COMMENTS, Spans
from longwall.storage.ingest.text.text_file import TextFile
from longwall.storage.ingest.text.text_kernel import BLANKS, OWN_SEPARATOR
from longwall.storage.system.arguments import brief

_LIKE_A_NUMBER = re.compile(r"[-+.]*\d[\d.eE+-]*|[-+]?\d{1,3}(?:[,_' ]\d{3})+")
_MOST_LINES = 1000  # of a row, to see its fields
_INTEGER = re.compile(r"\d+")


@dataclass(frozen=True)
class TextLayout:
    """How the rows of a file are read.

    Attributes
    ----------
    header
        Whether the next line names the columns.
    separator
        The byte between fields, see `text_kernel.parse_lines`.
    fields
        Fields of a row; 0: any number.
    columns
        The places of the wanted ones: two, or three.
    texts
        Which of them are texts.
    """

    header: bool
    separator: int
    fields: int
    columns: tuple[int, ...]
    texts: tuple[bool, ...]

    @property
    def places(self) -> tuple[int, ...]:
        """Where each of the first fields goes, see `text_kernel.parse_lines`."""
        places = [-1] * (max(self.columns) + 1)
        for at, column in enumerate(self.columns):
            places[column] = at
        return tuple(places)


def look_at_rows(
    text: TextFile, line: str, request: ColumnRequest, named: bool | None, error: Callable[[str], InputError]
) -> TextLayout:
    """Find the layout of a file.

    Parameters
    ----------
    text
        The file; its first row may be consumed.
    line
        Its first row.
    request
        What is wanted.
    named
        Whether the first of the columns holds names; None: both do, or not, as `request` or the first row says.
    error
        Makes the error for the first row.

    Raises
    ------
    InputError
        If it is not clear which columns are meant.
    """
    plain_fields, comment = text.count_fields(), text.last_comment
    commented = _commented_names(comment, line, request, error)
    may_name = request.header is not False and not commented
    header = header_names(line, text.tab_separates, request, error) if may_name else None
    # Below a line that surely names columns there are no comments. No row of edges begins with an empty field.
    known = header is not None and (known_pair(header[0], request) or (not header[0][0] and request.chosen is None))
    sure = bool(request.header) or known
    rows = _two_rows(text, comments=not sure)
    separator = separator_of(line, text.tab_separates, *rows[1:])
    if header is not None and separator != header[1]:  # the names of columns hold separators, too
        header = _fields(line, separator), separator
    if request.header and header is None:
        header = _fields(line, separator), separator
    if request.header is None and header is not None and not known and len(rows) > 1:
        # Nothing in the line is a number: it names columns, unless the others are like it.
        likewise = not any(
            map(_LIKE_A_NUMBER.fullmatch, _fields(rows[1], separator_of(rows[1], text.tab_separates, line)))
        )
        if likewise and request.ids != "integers":
            # The names of columns are no values of theirs; a vertex of an edge list has mostly other edges, too.
            separated = separator_of(line, True, *rows[1:]) != BLANKS
            names_columns = separated and not text.has_field([name for name in header[0] if name])
            request.notes.guess(_first_row_note(text, header[0], names_columns))
            header = header if names_columns else None
    names = header[0] if header is not None else commented
    data = rows[1] if header is not None and len(rows) > 1 else line
    fields = _fields(data, separator_of(data, True, *rows))  # names may have blanks where tabs separate
    wanted = _wanted(names, fields, request, error)
    if named is None:
        looked_at = rows[header is not None :]
        ends = [_ends(row, wanted, separator_of(row, True, *rows), request) for row in looked_at]
        ends = [given for given in ends if given] or _later_ends(text, not sure, wanted, separator, request)
        # A single row may have a mistake: then all of its ends are like names, or it is one of integers.
        of_names = [_names(given) for given in ends]
        like_names = bool(ends) and all(of_names) and (len(ends) > 1 or of_names[0] == len(ends[0]))
        named = request.ids == "names" or (request.ids == "auto" and like_names)
        texts = [named, named]
    else:
        texts = [named, _may_be_texts(request) and not _is_integer(fields, wanted[1])]
    if len(wanted) == 3:
        texts.append(not _is_integer(fields, wanted[2]))
    if any(texts) or request.label is not None or request.chosen is not None or names:
        if not any(texts):
            fields = _fields(data, separator_of(data, text.tab_separates, *rows))
        count = len(names) or len(fields)
        if any(texts) or (separator == BLANKS and _tabs_separate(line, data, names, wanted)):
            separator = separator_of(data, True, *rows)
        count += _ends_empty(rows, separator, count)
        others = count - len(wanted)
        listed = [names[place] for place in wanted] if names else [str(place + 1) for place in wanted]
        if names or others or named:
            plain = not names and wanted == (0, 1)
            request.notes.say(describe_choice(text.path, () if plain else listed, others, request, named))
        if not any(texts) and count == 2:
            separator = OWN_SEPARATOR  # a row of two fields cannot be misread, whatever separates them
        return TextLayout(header is not None, separator, count, wanted, tuple(texts))
    plain_fields += _ends_empty(rows, separator, plain_fields)
    if plain_fields > 2:
        request.notes.say(describe_choice(text.path, (), plain_fields - 2, request))
    return TextLayout(False, OWN_SEPARATOR, plain_fields, wanted, (False, False))


def _commented_names(comment: str, row: str, request: ColumnRequest, error: Callable[[str], InputError]) -> list[str]:
    """Return the names of columns in the comment above the first row, [] if it has none.

    It has a name for each field, separated as the row is, and the row itself cannot name columns, since one of its
    fields is a number; or the columns that the user chooses are among the names. Words between blanks may be prose:
    they are names only if a known pair is among them. Of two columns both are read, whatever their names.
    """
    line = comment.lstrip("#%").strip(" ")
    separator = separator_of(row, True)
    words = line.split(None if separator == BLANKS else chr(separator))
    if request.header is not None or not comment or len(words) != len(_fields(row, separator)) or len(words) < 2:
        return []
    found = header_names(line, separator == ord("\t"), request, error)
    if found is None or found[1] != separator or len(found[0]) != len(words):
        return []
    wanted = [name for name in (*(request.chosen or ()), request.label, request.value) if isinstance(name, str)]
    if wanted and set(wanted) <= set(found[0]):
        return found[0]
    unasked = replace(request, chosen=None, label=None, value=None)
    if header_names(row, separator == ord("\t"), unasked, error) is not None:
        return []
    clear = len(words) > 2 and separator != BLANKS
    return found[0] if clear or known_pair(found[0], unasked) else []


def _ends_empty(rows: Sequence[str], separator: int, count: int) -> bool:
    """Whether each row has one field more than `count`: a separator at its end makes an empty field."""
    return count > 1 and separator != BLANKS and {len(_split(row, separator)) for row in rows} == {count + 1}


def _tabs_separate(header: str, row: str, names: Sequence[str], wanted: tuple[int, ...]) -> bool:
    """Whether single tabs separate the names of columns and the fields of a row, whose last field may be empty."""
    fields = row.split("\t")
    return (
        header.count("\t") + 1 == len(names) > 2
        and max(wanted) < len(fields) <= len(names)
        and all(_LIKE_A_NUMBER.fullmatch(fields[place].strip(" \"'")) for place in wanted)
    )


def _first_row_note(text: TextFile, fields: Sequence[str], names_columns: bool) -> str:
    """Say what a line without numbers is taken for, if the next one has none either."""
    shown = ", ".join(brief(field) for field in fields[:3]) + (", ..." if len(fields) > 3 else "")
    if names_columns:
        taken = "names the columns, as none of its words is in a row; if it is a row, set graph.header = false"
        return f"{text.path}: the first line ({shown}) {taken} (--no-header, or header=False in Python)"
    if_not = "if it names the columns, set graph.header = true (--header, or header=True in Python)"
    return f"{text.path}: the first line ({shown}) is read as a row; {if_not}"


def _two_rows(text: TextFile, comments: bool) -> list[str]:
    """Return the first two rows, fewer where there are no more or the second one is no text."""
    _, first = text.take()
    try:
        _, second = text.peek(comments)
    except InputError:
        second = ""  # reading the row raises the error again, for the user
    else:
        second = _with_its_lines(text, second)
    return [row for row in (first, second) if row]


def _with_its_lines(text: TextFile, row: str) -> str:
    """Return a row with the lines after its first one, if a field in quotes has newlines."""
    if row.count('"') % 2 == 0:
        return row
    whole = text.take()[1]
    try:
        for _ in range(_MOST_LINES):
            whole = f"{whole}\n{text.take()[1]}"
            if whole.count('"') % 2 == 0:
                return row if separator_of(whole, True) == BLANKS else whole
    except InputError:
        pass  # reading the row raises the error again, for the user
    return row


def _wanted(
    names: Sequence[str], fields: Sequence[str], request: ColumnRequest, error: Callable[[str], InputError]
) -> tuple[int, ...]:
    """Return the places of the columns to read."""
    numbered = [str(place + 1) for place in range(max(len(fields), 2))]
    if names:
        wanted = choose_columns(names, request, error)
    elif request.chosen is not None:
        first, second = (place_of_column(name, numbered, error) for name in request.chosen)
        wanted = first, second
    else:
        wanted = 0, 1
    return with_label(wanted, request, names or numbered, error)


def _ends(line: str, wanted: tuple[int, ...], separator: int, request: ColumnRequest) -> list[str]:
    """Return the ends of an edge that a row has: those that are missing are neither names nor integers."""
    if line.startswith("t #"):
        return ["0"]  # a database of graphs
    fields = _fields(line, separator)
    _, missing = dropping(request, 2)
    ends = (fields[place].strip() for place in wanted[:2] if place < len(fields))
    return [end for end in ends if end and end not in missing]


def _later_ends(
    text: TextFile, comments: bool, wanted: tuple[int, ...], separator: int, request: ColumnRequest
) -> list[list[str]]:
    """Return the ends of the first row behind the first two that has one; [] if none of many has."""
    with suppress(InputError):  # reading the row raises the error again, for the user
        for _ in range(_MOST_LINES):
            text.take()
            _, row = text.peek(comments)
            if not row:
                break
            if ends := _ends(row, wanted, separator_of(row, True) if separator == BLANKS else separator, request):
                return [ends]
    return []


def _names(ends: Sequence[str]) -> int:
    """Return how many of the ends of an edge look like names."""
    return sum(not all(map(_LIKE_A_NUMBER.fullmatch, end.split())) for end in ends)


def _may_be_texts(request: ColumnRequest) -> bool:
    """Whether the values beside vertices may be texts, as labels."""
    return request.ids != "integers" and request.names is not TRANSACTIONS


def with_text_labels(text: TextFile, line: str, layout: TextLayout, request: ColumnRequest, ends: int) -> TextLayout:
    """Return a layout with labels as texts, if one of those in the first block of the file is no integer.

    Parameters
    ----------
    text
        The file; its first row may be consumed.
    line
        Its first row.
    layout
        The layout of the first rows.
    request
        The columns to read.
    ends
        The number of columns that hold vertices.
    """
    column = len(layout.texts) - 1
    if column < ends or layout.texts[column] or (ends == 1 and not _may_be_texts(request)):
        return layout
    comments = b"" if layout.header else COMMENTS
    spans = Spans([at for at, is_text in enumerate(layout.texts) if is_text])
    how = layout.places, layout.separator, layout.fields, spans, ends, comments, *dropping(request, ends)
    if not text.has_texts(column, text.rows(*how)):
        return layout
    separator = separator_of(line, True) if layout.separator == OWN_SEPARATOR else layout.separator
    return replace(layout, separator=separator, texts=(*layout.texts[:-1], True))


def dropping(request: ColumnRequest, ends: int) -> tuple[bool | None, Sequence[str]]:
    """Return whether rows are dropped, see `TextFile.rows`, and the words for a missing value."""
    return request.drops if ends == 2 else None, () if request.ids == "names" else MISSING


def _is_integer(fields: Sequence[str], place: int) -> bool:
    return place >= len(fields) or not fields[place] or _INTEGER.fullmatch(fields[place]) is not None


def _fields(line: str, separator: int) -> list[str]:
    if separator == BLANKS:
        return [name.strip("\"'") for name in line.split()]
    fields = _split(line, separator)
    return fields[:-1] if len(fields) > 2 and not fields[-1] else fields  # one separator may end a line


def _split(line: str, separator: int) -> list[str]:
    try:
        (fields,) = csv.reader([line], delimiter=chr(separator), skipinitialspace=True)
    except (csv.Error, ValueError):
        return line.split(chr(separator))
    return [field.strip() for field in fields]
