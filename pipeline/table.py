"""The table that functions and results return: an Arrow table that shows its rows."""

from __future__ import annotations

from itertools import chain
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, overload

from longwall.storage.system.arguments import require_package
from longwall.storage.system.plain_text import harmless

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from longwall.storage.system.drawing import Drawing

_ENDS = 5  # rows that are shown of each end of a long table
_SHORT = 3 * _ENDS  # rows of a table that is shown whole
_WHOLE = 30  # rows of a table of patterns that is shown whole: the motifs of five vertices are 21
_COLUMNS = 12  # of a notebook
_LETTERS = 32  # of a cell
_PICTURE = 64  # pixels, the width of a pattern's drawing
_GAP = "…"
_BATCH = 4096  # rows that a loop over a table converts at a time


class Table:
    """Rows with named columns, over an Arrow table.

    It prints its first and last rows. ``len`` is the number of its rows, ``table["count"]`` a column (a chunked array
    of Arrow), ``table[0]`` a row and ``table[:5]`` a table of some rows. A loop yields rows; a row is a dictionary.
    Every other attribute of an Arrow table, such as ``group_by`` or ``filter``, is there as well; an Arrow table that
    it returns is a `Table`, too. Libraries that read Arrow streams take it as it is: ``polars.DataFrame(table)``,
    ``pyarrow.table(table)``. ``pandas.DataFrame(table)`` works, too, but reads row by row: `to_pandas` is quicker, and
    keeps the columns of a table without rows. ``dict(table)`` has the columns by their names.

    Parameters
    ----------
    arrow
        The Arrow table.

    Examples
    --------
    >>> import longwall, networkx
    >>> table = longwall.motifs(networkx.karate_club_graph(), 3)
    >>> table
    pattern      name      edges  count
    0-1,0-2      wedge         2    393
    0-1,0-2,1-2  triangle      3     45
    >>> len(table), table["count"].to_pylist(), table.to_pandas()["count"].sum()
    (2, [393, 45], np.int64(438))
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, arrow: pa.Table):
        self._arrow = arrow

    @property
    def column_names(self) -> list[str]:
        """Names of the columns."""
        names: list[str] = self._arrow.column_names
        return names

    @property
    def num_rows(self) -> int:
        """Number of rows, as ``len``."""
        return len(self)

    @property
    def num_columns(self) -> int:
        """Number of columns."""
        return len(self.column_names)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.num_rows, self.num_columns

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return self._arrow.schema

    def __len__(self) -> int:
        rows: int = self._arrow.num_rows
        return rows

    @overload
    def __getitem__(self, key: slice) -> Table: ...
    @overload
    def __getitem__(self, key: str) -> pa.ChunkedArray: ...
    @overload
    def __getitem__(self, key: int) -> dict[str, Any]: ...
    def __getitem__(self, key: str | int | slice) -> Table | pa.ChunkedArray | dict[str, Any]:
        """Return a column by its name, a row by its number (a negative one counts from the end), or rows by a slice."""
        if isinstance(key, slice):
            return Table(self._arrow[key])
        if isinstance(key, str):
            if key not in self.column_names:
                raise KeyError(f"there is no column {key}; the columns are {', '.join(self.column_names)}")
            return self._arrow[key]
        at = range(len(self))[key]  # raises IndexError, or TypeError if the key is no integer
        row: dict[str, Any] = self._arrow.slice(at, 1).to_pylist()[0]
        return row

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the rows one by one, each a dictionary with the names of the columns as keys."""
        for batch in self._arrow.to_batches(max_chunksize=_BATCH):
            yield from batch.to_pylist()

    def __reversed__(self) -> Iterator[dict[str, Any]]:
        """Return the rows from the last one on: Python would ask for columns by numbers of rows."""
        for start in reversed(range(0, len(self), _BATCH)):
            yield from reversed(self._arrow.slice(start, _BATCH).to_pylist())

    def keys(self) -> list[str]:
        """Return the names of the columns, for ``dict(table)``."""
        return self.column_names

    def __contains__(self, name: object) -> bool:
        """Whether there is a column of this name."""
        return name in self.column_names

    def __eq__(self, other: object) -> bool:
        import pyarrow as pa

        if isinstance(other, Table | pa.Table):
            return bool(self._arrow.equals(_arrow_of(other)))
        return NotImplemented

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the Arrow table; methods that return an Arrow table return a `Table`."""
        if name.startswith("_"):
            raise AttributeError(f"a Table has no attribute {name!r}")
        if not hasattr(self._arrow, name):
            raise AttributeError(f"a Table has no attribute {name!r}; to_pandas() and to_polars() make data frames")
        found = getattr(self._arrow, name)
        if not callable(found):
            return found

        def call(*arguments: Any, **named: Any) -> Any:
            return _table_of(found(*map(_arrow_of, arguments), **named))

        call.__name__, call.__doc__ = name, found.__doc__
        return call

    def __dir__(self) -> list[str]:
        return sorted({name for name in chain(dir(type(self)), dir(self._arrow)) if not name.startswith("_")})

    def __reduce__(self) -> tuple[Any, ...]:
        return Table, (self._arrow,)

    def head(self, n: int = 5) -> Table:
        """Return the first rows."""
        return Table(self._arrow.slice(0, n))

    def to_arrow(self) -> pa.Table:
        """Return the Arrow table."""
        return self._arrow

    def to_pandas(self, **options: Any) -> Any:
        """Return a data frame of pandas; `options` are those of ``pyarrow.Table.to_pandas``."""
        require_package("pandas", "to_pandas")
        return self._arrow.to_pandas(**options)

    def to_polars(self) -> Any:
        """Return a data frame of polars."""
        return require_package("polars", "to_polars").from_arrow(self._arrow)

    def to_pylist(self) -> list[dict[str, Any]]:
        """Return the rows, each a mapping from the names of the columns."""
        rows: list[dict[str, Any]] = self._arrow.to_pylist()
        return rows

    def to_pydict(self) -> dict[str, list[Any]]:
        """Return the values of each column."""
        columns: dict[str, list[Any]] = self._arrow.to_pydict()
        return columns

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """Return the rows as an Arrow stream: other libraries read it."""
        return self._arrow.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        names, rows = self._excerpt()
        cells = [[harmless(cell) for cell in row] for row in (names, *(map(_text, row) for row in rows))]
        right = [self._is_number(name) for name in names]
        widths = [max(len(row[at]) for row in cells) for at in range(len(names))]
        lines = []
        kept = _fitting(widths, get_terminal_size().columns)
        for row in cells:
            parts = [_GAP if at < 0 else format(row[at], f"{'>' if right[at] else '<'}{widths[at]}") for at in kept]
            lines.append("  ".join(parts).rstrip())
        if len(rows) < len(self) or len(kept) < len(names) or not rows:
            lines.append(f"[{len(self):,} rows, {len(names):,} columns]")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from longwall.storage.system.html import html_table

        patterns = "pattern" in self.column_names
        names, rows = self._excerpt()
        right = [at for at, name in enumerate(names) if self._is_number(name)]
        pictures = [_drawing(dict(zip(names, row, strict=True))) for row in rows] if patterns else []
        if len(names) > _COLUMNS:
            kept = [*range(_COLUMNS - 2), -1, len(names) - 1]
            rows = [[_GAP if at < 0 else row[at] for at in kept] for row in rows]
            right = [number for number, at in enumerate(kept) if at in right]
            names = [_GAP if at < 0 else names[at] for at in kept]
        cells = [[_short(cell) for cell in row] for row in rows]
        if any(pictures):
            names, right = ["", *names], [at + 1 for at in right]
            cells = [[picture, *row] for picture, row in zip(pictures, cells, strict=True)]
        of_rows, of_columns = ("" if number == 1 else "s" for number in self.shape)
        title = f"{self.num_rows:,} row{of_rows}, {self.num_columns:,} column{of_columns}"
        return html_table([title], cells, names, right=right)

    def _excerpt(self) -> tuple[list[str], list[list[Any]]]:
        """Return the names of the columns, and the rows that are shown: all, or the first and the last ones."""
        if len(self) <= (_WHOLE if "pattern" in self.column_names else _SHORT):
            rows = _rows(self._arrow)
        else:
            ends = (self._arrow.slice(0, _ENDS), self._arrow.slice(len(self) - _ENDS))
            first, last = map(_rows, ends)
            rows = [*first, [_GAP] * self.num_columns, *last]
        return self.column_names, rows

    def _is_number(self, name: str) -> bool:
        import pyarrow as pa

        kind = self.schema.field(self.column_names.index(name)).type
        return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _rows(arrow: pa.Table) -> list[list[Any]]:
    columns = [column.to_pylist() for column in arrow.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def _drawing(row: dict[str, Any]) -> Drawing | None:
    """Return the drawing of a row's pattern; None where it has none that can be drawn."""
    from longwall.pipeline.patterns.pattern_drawing import edges_of, pattern_drawing

    edges = edges_of(row["pattern"])
    labels, edge_labels = (
        found if isinstance(found := row.get(key), list) else None for key in ("labels", "edge_labels")
    )
    return None if edges is None else pattern_drawing(edges, labels, edge_labels, size=_PICTURE)


def _table_of(found: Any) -> Any:
    import pyarrow as pa

    return Table(found) if isinstance(found, pa.Table) else found


def _arrow_of(table: Any) -> Any:
    return table._arrow if isinstance(table, Table) else table


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:.6g}"
    text = ", ".join("" if one is None else str(one) for one in cell) if isinstance(cell, list) else str(cell)
    text = " ".join(text.splitlines())
    return text if len(text) <= _LETTERS else f"{text[: _LETTERS - 1]}{_GAP}"


def _short(cell: Any) -> Any:
    """Return a cell of a table of HTML, which writes whole numbers itself."""
    return cell if isinstance(cell, int) and not isinstance(cell, bool) else _text(cell)


def _fitting(widths: list[int], capacity: int) -> list[int]:
    """Return the columns that fit, the last one among them; -1 stands for those that are left out."""
    if sum(widths) + 2 * (len(widths) - 1) <= capacity or len(widths) < 3:
        return list(range(len(widths)))
    used = len(_GAP) + 2 + widths[-1]
    kept: list[int] = []
    for at, width in enumerate(widths[:-1]):
        used += width + 2
        if used > capacity and kept:
            break
        kept.append(at)
    return [*kept, -1, len(widths) - 1]
