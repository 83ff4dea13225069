"""Rows that are searched for when they are asked for: embeddings of a pattern, and maximal cliques."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from longwall.pipeline.functions.one_run import KeptRun, Options, Question, number, require_whole
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.patterns.pattern_of import pattern as pattern_of
from longwall.pipeline.patterns.pattern_of import source_text
from longwall.pipeline.table import Table
from longwall.storage.errors import one_frame
from longwall.storage.graph.graph import Graph
from longwall.storage.system.arguments import require_package
from longwall.storage.system.html import html_table

if TYPE_CHECKING:
    import pyarrow as pa

    from longwall.pipeline.result import Result

_SHOWN = 5  # rows of a notebook's preview


class Matches:
    """A table of rows, searched for on demand; a context manager that removes its files.

    Iterating yields Arrow record batches. The search runs once, as a whole, and its rows stay in files of the spill
    folder until the object is closed or collected; `head` and `count` search for no more than they need. These files
    are results: they are not part of the budget `disk`. The order of the rows is not defined, but with ``threads=1``
    it is the same each time; `head` always searches with one thread.

    Parameters
    ----------
    question
        What is asked.
    title
        What the rows are.
    columns
        The name of each column -> its name in the files.
    """

    def __init__(self, question: Question, title: str, columns: Mapping[str, str]):
        self._question, self._title, self._columns = question, title, dict(columns)
        self._kept = KeptRun(question, self)

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
        """Arrow schema of the rows."""
        import pyarrow as pa

        kind = self._id_type()
        if "clique" in self._columns:
            vertex = pa.field("vertex", kind, nullable=False)
            return pa.schema([("clique", pa.list_(vertex)), ("size", pa.int32())])
        return pa.schema([(name, kind) for name in self._columns])

    def _id_type(self) -> pa.DataType:
        """Return the type of vertices; of a graph in a file it is known once the search has run."""
        graph = self._question.graph
        if isinstance(graph, Graph):
            return graph.id_type
        field = self._kept.result().schema("embeddings").field(0)
        return field.type.value_type if "clique" in self._columns else field.type

    @one_frame
    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self._batches(self._kept.result())

    def _batches(self, result: Result) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in result.batches("embeddings"):
            stored = [batch.schema.get_field_index(name) for name in self._columns.values()]
            types = [batch.schema.field(at).type for at in stored]
            schema = pa.schema(list(zip(self._columns, types, strict=True)))
            yield pa.RecordBatch.from_arrays([batch.column(at) for at in stored], schema=schema)

    @one_frame
    def count(self) -> int:
        """Count the rows, without listing them where they are not listed yet."""
        if self._kept.finished:
            return number(self._kept.result().count)
        with self._question.answered(workload={"output": "count"}, export={"limit": None}) as result:
            found = number(result.count)
        return found if self.limit is None else min(found, self.limit)

    @one_frame
    def head(self, n: int = 5) -> Table:
        """Return `n` rows as a table: the search ends when they are found.

        The search has one thread, so that the rows and their order are the same each time. If all rows are in the files
        of the object already, the first of these are returned.
        """
        import pyarrow as pa

        require_whole("n", n, 0)
        wanted = n if self.limit is None else min(n, self.limit)
        if wanted == 0:
            return Table(self.schema.empty_table())
        if self._kept.finished:
            return Table(pa.Table.from_batches(self._first(wanted), self.schema))
        with self._question.answered(export={"limit": wanted}, engine=self._one_thread()) as result:
            return Table(pa.Table.from_batches(list(self._batches(result)), self.schema))

    def _one_thread(self) -> dict[str, Any]:
        """Return the engine with one thread, and without a second engine beside it."""
        engine = self._question.sections["engine"]
        return {"kind": "cuda" if engine["kind"] == "both" else engine["kind"], "threads": 1}

    def _first(self, wanted: int) -> list[pa.RecordBatch]:
        found: list[pa.RecordBatch] = []
        for batch in self:
            found.append(batch.slice(0, wanted))
            wanted -= found[-1].num_rows
            if not wanted:
                break
        return found

    @one_frame
    def to_arrow(self) -> pa.Table:
        """Return all rows as an Arrow table; it is not part of the memory budget."""
        import pyarrow as pa

        return pa.Table.from_batches(list(self), self.schema)

    @one_frame
    def to_pandas(self) -> Any:
        """Return all rows as a data frame of pandas; it is not part of the memory budget."""
        require_package("pandas", "to_pandas")
        return self.to_arrow().to_pandas()

    @one_frame
    def to_polars(self) -> Any:
        """Return all rows as a data frame of polars; it is not part of the memory budget."""
        return require_package("polars", "to_polars").from_arrow(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """Return the rows as an Arrow stream, batch by batch: other libraries read it."""
        import pyarrow as pa

        return pa.RecordBatchReader.from_batches(self.schema, iter(self)).__arrow_c_stream__(requested_schema)

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
        rows = iter(self)
        with whole_file(target, self.schema) as sink:
            for batch in rows:
                sink.write(pa.Table.from_batches([batch]))
        return target

    def close(self) -> None:
        """Remove the files; happens by itself when the object is collected."""
        self._kept.close()

    def __enter__(self) -> Matches:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = f"{self.count():,} rows" if self._kept.finished else "not searched for yet"
        return f"<longwall.Matches: {self._title}; columns {', '.join(self._columns)}; {state}>"

    def _repr_html_(self) -> str:
        if not self._kept.finished:
            return html_table([f"{self._title}, not searched for yet"], [], self.column_names)
        rows = self.head(_SHOWN).to_pylist()
        title = f"{self._title}, {self.count():,} rows"
        return html_table([title], [list(row.values()) for row in rows], self.column_names)


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
        ``v0``, ``v1``, ... for vertices without a name. Iterate over its record batches, or call `head`, `count`,
        `to_arrow`, `to_pandas`, `to_polars` or `write_parquet`. The order of the rows is not defined, but with
        ``threads=1`` it is the same each time; `head` always searches with one thread.

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
    >>> squares.close()
    """
    wanted = pattern_of(pattern, labels)
    text = source_text(wanted)
    if limit is not None:
        require_whole("limit", limit, 1)
    workload = {"kind": "match", "pattern": text, "induced": induced, "output": "embeddings"}
    question = Question.of(graph, workload, options, limit=limit)
    stored = parse_pattern(text).columns
    columns = {name: f"v{stored.index(name)}" for name in wanted.columns}
    return Matches(question, f"embeddings of {wanted.name or text}", columns)


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
    return Matches(question, "maximal cliques", {"clique": "clique", "size": "size"})
