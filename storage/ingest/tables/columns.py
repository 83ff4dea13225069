"""Which columns of a table hold the pairs that are wanted: by names, by the user's choice, or the only two."""

import csv
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Literal

from longwall.storage.errors import InputError
from longwall.storage.ingest.data_notes import DataNotes
from longwall.storage.ingest.names.label_names import LabelNames
from longwall.storage.ingest.text.text_kernel import BLANKS
from longwall.storage.system.arguments import brief

MOST_COLUMNS = 2**14
"""Of a table that is read."""
_MOST_LISTED, _LONGEST_NAME = 20, 40
_NUMBER = re.compile(r"[-+.]*\d")
_UNNAMED = re.compile(r"Unnamed: \d+(_level_\d+)?")  # the name that pandas gives a column without one
_KINDS = ("protein", "gene", "interactor", "actor", "author", "entity", "person", "user")  # of vertices
_VERTEX_NAMES = ("vertex", "vertexid", "node", "nodeid", "id", "v")


@dataclass(frozen=True)
class PairNames:
    """How a kind of pairs names its columns."""

    pairs: tuple[tuple[str, str], ...]
    """Names that are known, in lower case, letters and digits alone."""
    advice: str
    """What to do where the names are not clear."""
    role: str = "label"
    """The name in messages of the values in the column after those of vertices."""


def why_floats(types: Sequence[str]) -> str:
    """Say how integers become floats, if one of some types is that of floats."""
    if "double" not in types:
        return ""
    return "; pandas makes floats of integers if cells are empty: dropna().astype(int) of these columns undoes it"


EDGES = PairNames(
    (
        *(("source", target) for target in ("target", "dest", "destination")),
        *(("src", target) for target in ("dst", "dest", "tgt")),
        *((f"source{what}", f"target{what}") for what in ("id", "node", "nodeid", "vertex")),
        *((f"src{what}", f"dst{what}") for what in ("id", "node", "nodeid")),
        *((f"from{what}", f"to{what}") for what in ("", "id", "node", "nodeid", "vertex")),
        *((f"start{what}", f"end{what}") for what in ("", "id", "node", "nodeid")),
        *((f"{what}1", f"{what}2") for what in ("node", "nodeid", "vertex", "id", "numericid", "v", "n", *_KINDS)),
        *((f"{what}a", f"{what}b") for what in ("node", "vertex", *_KINDS)),
        ("u", "v"),
        ("head", "tail"),
    ),
    'say which two to read: graph.columns = ["A", "B"] in a config, --columns A,B on the command line, or '
    'columns=("A", "B") of longwall.graph or longwall.open_graph in Python',
)
LABELS = PairNames(
    tuple((name, "label") for name in _VERTEX_NAMES),
    "leave two columns, the vertex and its label, or name them vertex and label",
)
TRANSACTIONS = PairNames(
    tuple((name, value) for name in _VERTEX_NAMES for value in ("transaction", "transactionid")),
    "leave two columns, the vertex and its transaction, or name them vertex and transaction",
    "transaction",
)


@dataclass(frozen=True)
class ColumnRequest:
    """The columns of a table that the user wants, and the notes to collect."""

    names: PairNames
    chosen: tuple[str | int, str | int] | None = None
    """The columns to read, by their names, or their numbers from 1."""
    label: str | int | None = None
    """The column with the labels of the edges: its name, or its number from 1."""
    ids: Literal["auto", "integers", "names"] = "auto"
    """The type of ids; "auto": names if the first row has another value than an integer."""
    header: bool | None = None
    """Whether the first line of a text names the columns; None: if it looks like names."""
    fields: int = 0
    """The number of fields of each row of a text; 0: as many as the first one has."""
    value: str | None = None
    """The column, or the attribute of nodes, with the labels of the vertices."""
    label_names: LabelNames | None = None
    """Numbers labels that are texts; None: the table's own."""
    vertex_name: str | None = None
    """The attribute of nodes with the names of the vertices."""
    drops: bool | None = None
    """Whether to drop and count rows that lack one of their ends; None: the format has no such option."""
    notes: DataNotes = field(default_factory=DataNotes)
    """Receives the choice of columns, if the table has others or names them, and counts of dropped data."""


def require_pair(columns: object, where: str = "") -> None:
    """Refuse columns that are not two different ones (InputError); `where` begins the message."""
    if isinstance(columns, list | tuple):
        if len(columns) == 2 and columns[0] != columns[1]:
            return
        given = ", ".join(map(str, columns)) or "none"
    else:
        given = brief(columns)
    raise InputError(f"{where}columns: give two different names, such as source and target, not {given:.80}")


def choose_columns(
    names: Sequence[str], request: ColumnRequest, error: Callable[[str], InputError], types: Sequence[str] | None = None
) -> tuple[int, int]:
    """Return the places of the two columns to read.

    Parameters
    ----------
    names
        The names of all columns, in order.
    request
        What to look for.
    error
        Makes the error for the table.
    types
        The types of the columns that cannot be read, "" for those of integers; None: all can be read.

    Raises
    ------
    InputError
        If a chosen column is not there, or it is not clear which two are meant.
    """
    check_width(len(names), error)
    types = types or [""] * len(names)
    if request.chosen is not None:
        first, second = (_named(name, names, types, error) for name in request.chosen)
        return first, second
    if request.names is EDGES:  # the index of a table of labels may hold the vertices
        types = ["an index" if index else kind for kind, index in zip(types, _index_columns(names), strict=True)]
    if request.value is not None:
        return _vertices_and(request.value, names, types, error)
    pairs = _known_pairs(names, request.names)
    readable = _known_pairs(["" if kind else name for name, kind in zip(names, types, strict=True)], request.names)
    if len(readable) == 1:
        return readable[0]
    left = [at for at, kind in enumerate(types) if not kind]
    if not pairs and len(left) == 2:
        if names[left[0]] == names[left[1]]:
            listed = ", ".join(_quoted(names))
            raise error(f"two columns are named {_quoted(names)[left[0]]}; give each a name of its own: {listed}")
        return left[0], left[1]
    of = ", ".join(
        f"{listed} ({kind})" if kind else listed for listed, kind in zip(_quoted(names), types, strict=False)
    )
    if len(left) < 2 and "an index" in types:
        raise error(f"an index is no end of an edge, and two other columns are needed: {of}; {request.names.advice}")
    if len(left) < 2 or (pairs and not readable):
        raise error(f"two columns of integers or texts are needed, the columns are {of}{why_floats(types)}")
    reason = "more than one pair of columns could be meant" if readable else "it is not clear which columns are meant"
    raise error(f"{reason}: {of}; {request.names.advice}")


def _index_columns(names: Sequence[str]) -> list[bool]:
    """Mark the columns that are an index written by pandas or R: the first columns, if they have no name."""
    unnamed = [not name or _UNNAMED.fullmatch(name) is not None for name in names]
    return [all(unnamed[: at + 1]) for at in range(len(names))]


def _vertices_and(
    value: str, names: Sequence[str], types: Sequence[str], error: Callable[[str], InputError]
) -> tuple[int, int]:
    """Return the places of the column of vertices and of another one."""
    place = _named(value, names, types, error)
    others = [at for at, kind in enumerate(types) if not kind and at != place]
    known = [at for at in others if _plain(names[at]) in _VERTEX_NAMES]
    for found in (known, others):
        if len(found) == 1:
            return found[0], place
    raise error(f"it is not clear which column holds the vertices: {', '.join(_quoted(names))}; name one of them id")


def check_width(columns: int, error: Callable[[str], InputError]) -> None:
    """Refuse a table with too many columns.

    Parameters
    ----------
    columns
        How many it has, or more than that are read.
    error
        Makes the error for the table.

    Raises
    ------
    InputError
        If it has more than `MOST_COLUMNS`.
    """
    if columns > MOST_COLUMNS:
        raise error(f"more than {MOST_COLUMNS:,} columns; write a file with the two columns of the edges alone")


def describe_choice(
    path: object, columns: Sequence[str], others: int, request: ColumnRequest, named: bool = False
) -> str:
    """Say which columns are read.

    Parameters
    ----------
    path
        The table.
    columns
        The names of those that are read; none for the first two of a table without names.
    others
        The number of those that are not read.
    request
        The columns that the user wants.
    named
        Whether the vertices have names.
    """
    shown = _quoted(columns)
    ends = len(columns) if not named else 2 if request.names is EDGES else 1
    first, rest = " and ".join(shown[:ends]), shown[ends:]
    what = f"column{'s' if ends > 1 else ''} {first}" if columns else "the first two columns"
    what += " as names of vertices" if named else ""
    what += f", and {rest[0]} as {request.names.role}" if rest else ""
    ignored = f"; {others} other{'s are' if others > 1 else ' is'} ignored" if others else ""
    return f"{path}: reading {what}{ignored}"


def header_names(
    line: str, tab_separates: bool, request: ColumnRequest, error: Callable[[str], InputError]
) -> tuple[list[str], int] | None:
    """Return the names of the columns in a line, and the byte that separates them; None if it is a row.

    A line names columns if none of its fields is a number, if a known pair or a column that the user chose is among
    them, or if it numbers the columns after an index from 0.

    Parameters
    ----------
    line
        The first line that is neither blank nor a comment.
    tab_separates
        Whether a tab separates fields even if one of them is empty.
    request
        What to look for.
    error
        Makes the error for the line.

    Raises
    ------
    InputError
        If there are too many columns.
    """
    separator = separator_of(line, tab_separates)
    # Separators between quotes count here, too: to cut the line first would take the memory that this saves.
    check_width(len(line.split(None if separator == BLANKS else chr(separator), MOST_COLUMNS + 1)), error)
    if separator == BLANKS:
        names = [name.strip("\"'") for name in line.split()]
    else:
        try:
            (names,) = csv.reader([line], delimiter=chr(separator), skipinitialspace=True)
        except csv.Error:
            return None
        names = [name.strip() for name in names]
    if len(names) > 2 and not names[-1]:
        names.pop()  # one separator may end a line
    named = any(name[:1].isalpha() for name in map(_plain, names)) and not any(map(_NUMBER.match, names))
    if not line.replace("\t", " ").isprintable() or "\ufffd" in line:
        return None  # the parser says what is wrong with it
    numbered = len(names) > 1 and names == ["", *map(str, range(len(names) - 1))]  # by pandas
    if named or known_pair(names, request) or (numbered and request.chosen is None):
        return names, separator
    return None


def separator_of(line: str, tab_separates: bool, *others: str) -> int:
    """Return the byte that separates the fields of a line, `BLANKS` for blanks.

    Prices and texts hold separators, too. So the separator is one that all lines have, if there is one, and as often in
    each, if there is one; of several, the one that makes most fields, and of those the first one in the line.

    Parameters
    ----------
    line
        The line.
    tab_separates
        Whether a tab separates fields, whatever else there is.
    others
        Further lines of the same table.
    """
    texts = [re.sub(r'"[^"]*"', "", text) for text in (line, *others)]
    known = ("\t" if tab_separates else "") + ",;|"
    shared = [byte for byte in known if all(byte in text for text in texts)]
    found = shared or [byte for byte in known if byte in texts[0]]
    if "\t" in found:
        return ord("\t")
    found = [byte for byte in found if len({text.count(byte) for text in texts}) == 1] or found
    return ord(max(found, key=lambda byte: (texts[0].count(byte), -texts[0].index(byte)))) if found else BLANKS


def known_pair(names: Sequence[str], request: ColumnRequest) -> bool:
    """Say whether two columns have names that are known, or the user chooses columns by their names."""
    by_name = any(isinstance(column, str) for column in (*(request.chosen or ()), request.label, request.value))
    return by_name or bool(_known_pairs(names, request.names))


def place_of_column(name: str | int, names: Sequence[str], error: Callable[[str], InputError]) -> int:
    """Return the place of a column that is given by its name, or its number from 1.

    Raises
    ------
    InputError
        If there is none, or more than one.
    """
    return _named(name, names, [""] * len(names), error)


def with_label(
    pair: tuple[int, int], request: ColumnRequest, names: Sequence[str], error: Callable[[str], InputError]
) -> tuple[int, ...]:
    """Return the places of both ends, and that of the labels of edges if the user names a column of them.

    Raises
    ------
    InputError
        If the file lacks the column, or a column is wanted twice.
    """
    wanted = pair if request.label is None else (*pair, place_of_column(request.label, names, error))
    for place in wanted:
        if wanted.count(place) > 1:
            shown = _quoted([names[place]])[0]
            raise error(f"column {shown} is wanted twice; read each end, and the label, from a column of its own")
    return wanted


def _named(name: str | int, names: Sequence[str], types: Sequence[str], error: Callable[[str], InputError]) -> int:
    if isinstance(name, int):
        if not 1 <= name <= len(names):
            raise error(f"there is no column {name}; columns are numbered from 1 to {len(names)}")
        found, shown = [name - 1], str(name)
    else:
        found, shown = [at for at, one in enumerate(names) if one == name], _quoted([name])[0]
    if len(found) != 1:
        what = f"more than one column is named {shown}" if found else f"there is no column {shown}"
        raise error(f"{what}; the columns are {', '.join(_quoted(names))}")
    if types[found[0]]:
        kind = types[found[0]]
        raise error(f"column {shown} holds {kind}; choose a column of integers or texts{why_floats([kind])}")
    return found[0]


def _known_pairs(names: Sequence[str], known: PairNames) -> list[tuple[int, int]]:
    """Return the places of the first two pairs of columns with known names: more say nothing more."""
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        places.setdefault(_plain(name), []).append(place)
    pairs = (pair for one, other in known.pairs for pair in product(places.get(one, ()), places.get(other, ())))
    return list(islice(pairs, 2))


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).lower()


def _quoted(names: Sequence[str]) -> list[str]:
    """Return names as a message shows them: short, on one line, and not too many."""
    shown = [name if name.isprintable() and name.strip() == name != "" else repr(name) for name in names]
    shown = [name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..." for name in shown]
    more = len(shown) - _MOST_LISTED
    return shown if more <= 0 else [*shown[:_MOST_LISTED], f"and {more} more"]
