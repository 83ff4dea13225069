"""Rows that are searched for when they are asked for: embeddings of a pattern, and maximal cliques."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from longwall.pipeline.functions.one_run import Options, Question, require_whole
from longwall.pipeline.functions.row_batches import RowBatches
from longwall.pipeline.patterns.pattern_of import pattern as pattern_of
from longwall.pipeline.patterns.pattern_of import source_text
from longwall.pipeline.table import Table
from longwall.storage.errors import one_frame
from longwall.storage.graph.graph import Graph
from longwall.storage.system.arguments import require_package
from longwall.storage.system.html import html_table

if TYPE_CHECKING:
    import pyarrow as pa

_ASK = "count() counts them, to_arrow() lists them, and head(1) asks for one"


class Matches:
    """A table of rows, searched for on demand.

    Iterating yields Arrow record batches while the search runs beside it, in threads: the first one comes as soon as
    it is found, at most a part of the budget `memory` waits to be read, and nothing is written to a disk. The search
    ends early if the iterator is closed or collected, as after ``break``. Each time that rows are asked for they are
    searched for again; `head` and `count` search for no more than they need. The order of the rows is not defined,
    but with ``threads=1`` it is the same each time; `head` always searches with one thread. With ``engine="both"``
    the GPU alone finds rows.

    Parameters
    ----------
    question
        What is asked.
    title
        What the rows are.
    columns
        Names of the columns.
    """

    def __init__(self, question: Question, title: str, columns: Sequence[str]):
        self._question, self._title, self._columns = question.with_absolute_paths(), title, list(columns)
        self._reading = weakref.WeakSet[RowBatches]()
        self._schema: pa.Schema | None = None
        self._count: int | None = None
        self._first: list[dict[str, Any]] = []

    @property
    def column_names(self) -> list[str]:
        """Names of the columns."""
        return list(self._columns)

    @property
    def limit(self) -> int | None:
        """The number of rows after which the search ends; None where it finds all."""
        found: int | None = self._question.sections["export"]["limit"]
        return found

    @property
    @one_frame
    def schema(self) -> pa.Schema:
        """Arrow schema of the rows; of a graph in a file it is known once that is read."""
        import pyarrow as pa

        graph = self._question.graph
        if self._schema is None and isinstance(graph, Graph):
            vertex = pa.field("vertex", graph.id_type, nullable=False)
            lists = {"clique": pa.list_(vertex), "size": pa.int32()}
            self._schema = pa.schema([(name, lists.get(name, graph.id_type)) for name in self._columns])
        elif self._schema is None:
            with self._head(1) as batches:
                self._schema = batches.schema
        return self._schema

    @one_frame
    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self._batches(self._remember)

    def _batches(self, done: Callable[[RowBatches], None] | None = None, **changed: Mapping[str, Any]) -> RowBatches:
        """Begin a search; a second engine beside a device would find rows that are found once more if it fails."""
        if self._question.sections["engine"]["kind"] == "both":
            changed["engine"] = {**changed.get("engine", {}), "kind": "cuda"}
        batches = RowBatches(self._question, self._columns, done, **changed)
        self._reading.add(batches)
        return batches

    def _head(self, rows: int) -> RowBatches:
        return self._batches(export={"limit": rows}, engine={"threads": 1})

    def _remember(self, batches: RowBatches) -> None:
        self._count, self._first = batches.rows, batches.first

    @one_frame
    def count(self) -> int:
        """Count the rows without listing them; if all have been read before, return their known number."""
        if self._count is None:
            counting = self._question.answered(workload={"output": "count"}, export={"limit": None})
            with self._question.waiting(), counting as result:
                assert result.count is not None, "one number answers"
                self._count = result.count if self.limit is None else min(result.count, self.limit)
        return self._count

    @one_frame
    def head(self, n: int = 5) -> Table:
        """Return `n` rows as a table: the search ends when they are found.

        The search has one thread, so that the rows and their order are the same each time.
        """
        require_whole("n", n, 0)
        wanted = n if self.limit is None else min(n, self.limit)
        if wanted == 0:
            return Table(self.schema.empty_table())
        return Table(self._table(self._head(wanted)))

    @staticmethod
    def _table(batches: RowBatches) -> pa.Table:
        import pyarrow as pa

        with batches:
            return pa.Table.from_batches(list(batches), batches.schema)

    @one_frame
    def to_arrow(self) -> pa.Table:
        """Return all rows as an Arrow table; it is not part of the memory budget."""
        return self._table(self._batches(self._remember))

    @one_frame
    def to_pandas(self) -> Any:
        """Return all rows as a data frame of pandas; it is not part of the memory budget."""
        require_package("pandas", "to_pandas")
        return self.to_arrow().to_pandas()

    @one_frame
    def to_polars(self) -> Any:
        """Return all rows as a data frame of polars; it is not part of the memory budget."""
        return require_package("polars", "to_polars").from_arrow(self.to_arrow())

    def __reduce__(self) -> Any:  # without the searches that go on in this process
        return Matches, (self._question, self._title, self._columns)

    def __len__(self) -> int:
        raise TypeError(f"the number of rows is not known before they are searched for: {_ASK}")

    def __bool__(self) -> bool:
        raise TypeError(f"whether there are rows is not known before they are searched for: {_ASK}")

    def __array__(self, *_: object, **__: object) -> Any:
        """Refuse to be an array: ``pandas.DataFrame(matches)`` asks for one, and would lose the column names."""
        raise TypeError("rows that are searched for on demand are no array: use to_pandas(), to_polars() or to_arrow()")

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """Return the rows as an Arrow stream, batch by batch: other libraries read it."""
        import pyarrow as pa

        batches = self._batches(self._remember)
        return pa.RecordBatchReader.from_batches(batches.schema, batches).__arrow_c_stream__(requested_schema)

    @one_frame
    def write_parquet(self, path: str | Path) -> Path:
        """Write the rows as a Parquet file, batch by batch; it appears whole or not at all.

        Raises
        ------
        InputError
            If the file exists, or its folder does not.
        """
        import pyarrow as pa

        from longwall.storage.parquet_files import new_file, whole_file

        target = new_file(path)
        with self._batches(self._remember) as batches, whole_file(target, batches.schema) as sink:
            for batch in batches:
                sink.write(pa.Table.from_batches([batch]))
        return target

    def close(self) -> None:
        """End the searches whose rows are being read; rows can be asked for again."""
        for batches in list(self._reading):
            batches.close()

    def __enter__(self) -> Matches:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "not searched for yet" if self._count is None else f"{self._count:,} rows"
        return f"<longwall.Matches: {self._title}; columns {', '.join(self._columns)}; {state}>"

    def _repr_html_(self) -> str:
        state = "not searched for yet" if self._count is None else f"{self._count:,} rows"
        rows = [list(row.values()) for row in self._first]
        return html_table([f"{self._title}, {state}"], rows, self.column_names)


def match(
    graph: Any,
    pattern: Any,
    *,
    labels: Sequence[int | str] | None = None,
    induced: bool = False,
    limit: int | None = None,
    **options: Unpack[Options],
) -> Matches:
    """List the embeddings of a pattern; nothing is searched for before the rows are asked for.

    Parameters
    ----------
    graph, pattern, labels, induced, options
        As of `longwall.count`.
    limit
        End the search after this many rows; by default all are found.

    Returns
    -------
    Matches
        A row for each embedding, as `longwall.count` defines it: if only some vertices or edges of the pattern have
        labels, one subgraph can have several. A column for each vertex of the pattern, with the name of the vertex, or
        ``v0``, ``v1``, ... for vertices without a name. Iterate over its record batches, which come while the search
        goes on, or call `head`, `count`, `to_arrow`, `to_pandas`, `to_polars` or `write_parquet`. Each of these
        searches again. The order of the rows is not defined, but with ``threads=1`` it is the same each time; `head`
        always searches with one thread.

    Examples
    --------
    >>> import longwall, networkx
    >>> karate = longwall.graph(networkx.karate_club_graph())
    >>> squares = longwall.match(karate, "(a)-(b)-(c)-(d)-(a)", induced=True)
    >>> squares.column_names
    ['a', 'b', 'c', 'd']
    >>> squares.count()
    36
    >>> squares.head(2).num_rows
    2
    >>> sum(batch.num_rows for batch in squares)
    36
    >>> squares.to_pandas().shape
    (36, 4)
    """
    wanted = pattern_of(pattern, labels)
    text = source_text(wanted)
    if limit is not None:
        require_whole("limit", limit, 1)
    workload = {"kind": "match", "pattern": text, "induced": induced, "output": "embeddings"}
    question = Question.of(graph, workload, options, limit=limit)
    return Matches(question, f"embeddings of {wanted.name or text}", wanted.columns)


def maximal_cliques(graph: Any, *, min_size: int = 2, limit: int | None = None, **options: Unpack[Options]) -> Matches:
    """List the maximal cliques: those that no other vertex is adjacent to as a whole.

    Parameters
    ----------
    graph, options
        As of `longwall.count`.
    min_size
        Vertices of the smallest ones that are wanted, 2 or more.
    limit
        End the search after this many rows; by default all are found.

    Returns
    -------
    Matches
        A row for each, with the columns ``clique``, a list of vertices, and ``size``; `count` only counts them.

    Examples
    --------
    >>> import longwall, networkx
    >>> found = longwall.maximal_cliques(networkx.karate_club_graph(), min_size=5)
    >>> found.count()
    2
    >>> sorted(row["clique"] for row in found.to_arrow().to_pylist())
    [[0, 1, 2, 3, 7], [0, 1, 2, 3, 13]]
    """
    if limit is not None:
        require_whole("limit", limit, 1)
    workload = {"kind": "maximal-cliques", "min_size": min_size, "output": "embeddings"}
    question = Question.of(graph, workload, options, limit=limit)
    return Matches(question, "maximal cliques", ["clique", "size"])
