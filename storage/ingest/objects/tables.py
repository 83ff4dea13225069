"""Tables as streams of edges or labels: whatever hands its columns over as an Arrow stream."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

from longwall.storage.errors import InputError
from longwall.storage.ingest.data_notes import DataNotes
from longwall.storage.ingest.names.label_names import LabelNames
from longwall.storage.ingest.readers.edge_stream import EdgeBlock
from longwall.storage.ingest.tables.arrow_columns import choose_pair
from longwall.storage.ingest.tables.arrow_rows import rows_of
from longwall.storage.ingest.tables.columns import LABELS, ColumnRequest
from longwall.storage.ingest.vertex_labels import LabelBlock, LabelSource

_LARGEST_BATCH = 1 << 17  # rows


def computed_in_parts(source: Any) -> Any:
    """Return a table that polars computes part by part, if `source` is a LazyFrame; else `source`."""
    lazy = type(source).__module__.partition(".")[0] == "polars" and hasattr(source, "collect_batches")
    return _LazyTable(source) if lazy else source


class _LazyTable:
    """The result of a LazyFrame, of which a few batches are in memory at a time."""

    def __init__(self, plan: Any) -> None:
        self._plan = plan

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        import pyarrow as pa

        frames = iter(self._plan.collect_batches(chunk_size=_LARGEST_BATCH))
        first = next(frames, None)
        schema = (self._plan.head(0).collect() if first is None else first).to_arrow().schema
        rest = () if first is None else chain((first,), frames)
        batches = (batch for frame in rest for batch in frame.to_arrow().cast(schema).to_batches())
        return pa.RecordBatchReader.from_batches(schema, batches).__arrow_c_stream__(requested_schema)


def is_table(source: object) -> bool:
    """Whether an object hands over an Arrow stream: tables of PyArrow, pandas, polars, DuckDB, ..."""
    return hasattr(source, "__arrow_c_stream__")


def table_blocks(table: Any, request: ColumnRequest, labels: LabelNames) -> Iterator[EdgeBlock]:
    """Yield the edges of a table.

    Parameters
    ----------
    table
        An object with an Arrow stream.
    request
        Which columns hold the edges, and their labels.
    labels
        Numbers the labels that are texts.

    Raises
    ------
    InputError
        From the iteration: if it is not clear which columns are meant, or a value is no id or label.
    """
    for where, columns, start, batch in _batches("the edges", table, request):
        yield rows_of(where, columns, 2, start, batch).edges(labels)


class TableLabels(LabelSource):
    """Labels of vertices in two columns of a table.

    Parameters
    ----------
    table
        An object with an Arrow stream.
    notes
        Receives the choice of columns.
    """

    source = "the labels"
    texts: LabelNames

    def __init__(self, table: Any, notes: DataNotes) -> None:
        self._table, self.texts = table, LabelNames(self.source)
        self._request = ColumnRequest(LABELS, notes=notes)

    def blocks(self) -> Generator[LabelBlock, None, None]:
        """See `LabelSource`."""
        for where, columns, start, batch in _batches(self.source, self._table, self._request):
            yield rows_of(where, columns, 1, start, batch, self.named).labelled(self.texts)


def _batches(where: str, table: Any, request: ColumnRequest) -> Iterator[tuple[str, list[str], int, Any]]:
    """Yield batches of rows, with the names of the columns to read and the number of rows ahead."""
    import pyarrow as pa

    with _arrow_errors(where):
        reader = pa.RecordBatchReader.from_stream(table)
    with reader:
        whole = _next_rows(where, reader)
        if whole is None and request.chosen is None and request.label is None and len(reader.schema) > 1:
            return  # columns of pandas without a row have no type of their own
        places, start = choose_pair(where, reader.schema, request), 0
        columns = [reader.schema.names[place] for place in places]
        while whole is not None:
            for begin in range(0, whole.num_rows, _LARGEST_BATCH):
                batch = whole.slice(begin, _LARGEST_BATCH)
                yield where, columns, start, batch
                start += batch.num_rows
            whole = _next_rows(where, reader)


def _next_rows(where: str, reader: Any) -> Any:
    """Return the next batch of a reader that is not empty; None at the end."""
    while True:
        with _arrow_errors(where):
            batch = next(reader, None)
        if batch is None or batch.num_rows:
            return batch


@contextmanager
def _arrow_errors(where: str) -> Iterator[None]:
    """Raise the error for an object that is no table, has a type that Arrow lacks, or has two columns of one name."""
    import pyarrow as pa

    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        of_polars = type(error).__module__.partition(".")[0] == "polars"  # what computing a LazyFrame raises
        if not (of_polars or isinstance(error, pa.ArrowException | ValueError | TypeError | OSError)):
            raise
        reason = " ".join(str(error).split()) or type(error).__name__
        if "non-struct type" in reason:
            advice = "give a table with two (of a Series of pandas: series.reset_index())"
            raise InputError(f"{where}: this is one column, and no table; {advice}") from None
        advice = "; give each column a name of its own" if "uplicate" in reason else ""
        raise InputError(f"{where}: the table cannot be read ({reason:.200}){advice}") from error
