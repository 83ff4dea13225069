"""Tables as streams of edges or labels: whatever hands its columns over as an Arrow stream."""

from collections.abc import Generator, Iterator
from functools import partial
from typing import Any

import numpy as np

from longwall.storage.errors import InputError
from longwall.storage.ingest.readers.arrow_columns import choose_pair, ids_of, place_of
from longwall.storage.ingest.readers.columns import LABEL_COLUMNS, ColumnRequest
from longwall.storage.ingest.readers.edge_stream import EdgeBlock
from longwall.storage.ingest.vertex_labels import LabelBlock, LabelSource

_LARGEST_BATCH = 1 << 17  # rows
_LABELS_END = 2**31


def is_table(source: object) -> bool:
    """Whether an object hands over an Arrow stream: tables of PyArrow, pandas, polars, DuckDB, ..."""
    return hasattr(source, "__arrow_c_stream__")


def table_blocks(table: Any, request: ColumnRequest, edge_label: str | None) -> Iterator[EdgeBlock]:
    """Yield the edges of a table.

    Parameters
    ----------
    table
        An object with an Arrow stream.
    request
        Which columns hold the edges.
    edge_label
        The column with the edges' labels.

    Raises
    ------
    InputError
        From the iteration: if it is not clear which columns are meant, or a value is no id or label.
    """
    for where, start, batch, (first, second) in _batches("the edges", table, request):
        src, dst = (ids_of(where, batch.schema.names[at], batch.column(at), start) for at in (first, second))
        if edge_label is None:
            yield EdgeBlock(src, dst)
            continue
        if batch.schema.names.count(edge_label) != 1:
            raise InputError(f"{where}: there is no column {edge_label!r}, or more than one, for the labels of edges")
        column = batch.column(batch.schema.names.index(edge_label))
        if column.type.num_buffers != 2 or not str(column.type).lstrip("u").startswith("int"):
            raise InputError(f"{where}: column {edge_label} holds {column.type}; labels are integers")
        labels = ids_of(where, edge_label, column, start)
        if len(labels) and labels.max() >= _LABELS_END:
            row = int(np.argmax(labels >= _LABELS_END))
            place = place_of(start, row)
            raise InputError(f"{where}, {place}: column {edge_label} holds {labels[row]}; use labels below 2^31")
        yield EdgeBlock(src, dst, labels.astype(np.int32))


class TableLabels(LabelSource):
    """Labels of vertices in two columns of a table.

    Parameters
    ----------
    table
        An object with an Arrow stream.
    """

    source = "the labels"

    def __init__(self, table: Any) -> None:
        self._table = table

    def blocks(self) -> Generator[LabelBlock, None, None]:
        """See `LabelSource`."""
        for where, start, batch, places in _batches(self.source, self._table, LABEL_COLUMNS):
            ids, values = (ids_of(where, batch.schema.names[at], batch.column(at), start) for at in places)
            yield LabelBlock(ids, values, partial(place_of, start))


def _batches(where: str, table: Any, request: ColumnRequest) -> Iterator[tuple[str, int, Any, tuple[int, int]]]:
    """Yield batches of rows, with the number of rows ahead of them and the places of the two columns."""
    import pyarrow as pa

    with pa.RecordBatchReader.from_stream(table) as reader:
        places, start = choose_pair(where, reader.schema, request), 0
        for whole in reader:
            for begin in range(0, whole.num_rows, _LARGEST_BATCH):
                batch = whole.slice(begin, _LARGEST_BATCH)
                yield where, start, batch, places
                start += batch.num_rows
