"""Rows of Arrow's as edges, or as labelled vertices: integers, or texts, which are hashed."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from longwall.storage.errors import InputError
from longwall.storage.ingest.id_words import ID_RANGE, id_words
from longwall.storage.ingest.names.label_names import LabelNames
from longwall.storage.ingest.names.texts import HashedTexts, Texts
from longwall.storage.ingest.readers.edge_stream import EdgeBlock, EdgeNames
from longwall.storage.ingest.tables.arrow_columns import (
    integers_of,
    is_text,
    labels_of,
    place_of,
    texts_of,
    without_empty,
)
from longwall.storage.ingest.text.missing_rows import DROP, DROP_ENDS
from longwall.storage.ingest.vertex_labels import LabelBlock

Int64s = npt.NDArray[np.int64]

_LABELS_END = 2**31


class Rows(NamedTuple):
    """Consecutive rows."""

    where: object
    """What is read, for messages."""
    start: int | Int64s
    """The number of rows before these, or the number of each row, from 0."""
    vertices: list[Int64s] | HashedTexts
    """One or two columns of ids; or the names of the vertices, row by row."""
    labels: Int64s | HashedTexts | None
    label_column: str = ""
    unsigned: bool = False
    """Whether ids below 0 stand for those from 2^63 on."""
    dropped: int = 0
    """The number of rows among these that were dropped."""

    def edges(self, names: LabelNames) -> EdgeBlock:
        """Return the rows as edges; labels that are texts get their numbers from `names`."""
        labels = None if self.labels is None else self._numbers(names).astype(np.int32)
        if isinstance(self.vertices, HashedTexts):
            return EdgeNames(self.vertices, partial(place_of, self.start)).block(labels)
        src, dst = self.vertices
        return EdgeBlock(src, dst, labels, unsigned=self.unsigned)

    def labelled(self, names: LabelNames) -> LabelBlock:
        """Return the rows as labelled vertices."""
        numbers, place = self._numbers(names, check=False), partial(place_of, self.start)
        if isinstance(self.vertices, HashedTexts):
            return LabelBlock(self.vertices.ids, numbers, place, self.vertices.show)
        return LabelBlock(self.vertices[0], numbers, place, unsigned=self.unsigned)

    def _numbers(self, names: LabelNames, check: bool = True) -> Int64s:
        if isinstance(self.labels, HashedTexts):
            return names.numbers(self.labels)
        assert self.labels is not None
        if check and len(self.labels) and self.labels.max() >= _LABELS_END:
            row = int(np.argmax(self.labels >= _LABELS_END))
            place = place_of(self.start, row)
            raise InputError(
                f"{self.where}, {place}: column {self.label_column} holds {self.labels[row]}; use labels below 2^31"
            )
        return self.labels


def rows_of(
    where: object,
    columns: list[str],
    ends: int,
    start: int,
    batch: Any,
    named: bool | None = None,
    *,
    as_written: bool = False,
    drops: bool | None = None,
) -> Rows:
    """Convert a batch.

    Parameters
    ----------
    where
        What is read, for messages.
    columns
        The names of the columns: of vertices, then of labels if there are some.
    ends
        How many of them hold vertices.
    start
        Rows ahead of the batch.
    batch : pyarrow.RecordBatch
        The rows.
    named
        Whether vertices have names; None: where the columns are texts.
    as_written
        Whether integers may be names, as they are in a text.
    drops
        Whether to drop rows that lack a vertex; None: the format has no such option, and messages do not name it.

    Raises
    ------
    InputError
        If a value is no id or label.
    """
    ids = [batch.column(name) for name in columns[:ends]]
    named = is_text(ids[0].type) if named is None else named
    if named != is_text(ids[0].type) and not (named and as_written):
        kind = "names" if named else "integers as ids"
        type_of = ids[0].type.value_type if hasattr(ids[0].type, "value_type") else ids[0].type
        advice = "" if named else '; write integers, or set graph.ids = "names"'
        raise InputError(
            f"{where}: column {columns[0]} holds {type_of}, but the vertices of the graph have {kind}{advice}"
        )
    whole, numbers = without_empty(batch, columns[:ends], start) if drops else (batch, start)
    dropped, batch, ids = batch.num_rows - whole.num_rows, whole, [whole.column(name) for name in columns[:ends]]
    advice = DROP if drops is None else DROP_ENDS
    vertices: list[Int64s] | HashedTexts
    unsigned = False
    if named:
        both = [texts_of(where, name, column, numbers, advice) for name, column in zip(columns, ids, strict=False)]
        vertices = both[0] if ends == 1 else _side_by_side(*both)
    else:
        given = [integers_of(where, name, column, numbers, advice) for name, column in zip(columns, ids, strict=False)]
        vertices, unsigned = id_words(given, partial(_below_zero, where, columns, numbers, given))
    if len(columns) == ends:
        return Rows(where, numbers, vertices, None, unsigned=unsigned, dropped=dropped)
    column = batch.column(columns[-1])
    labels: Int64s | HashedTexts
    if is_text(column.type):
        labels = texts_of(where, columns[-1], column, numbers)
    else:
        labels = labels_of(where, columns[-1], column, numbers)
    return Rows(where, numbers, vertices, labels, columns[-1], unsigned, dropped)


def _below_zero(
    where: object, columns: list[str], start: int | Int64s, given: list[npt.NDArray[Any]], at: int, row: int
) -> InputError:
    """Make the error for an id below 0 among others from 2^63 on."""
    return InputError(
        f"{where}, {place_of(start, row)}: column {columns[at]} holds {given[at][row]}, and another column ids from "
        f"2^63 on; {ID_RANGE}"
    )


def _side_by_side(first: HashedTexts, second: HashedTexts) -> HashedTexts:
    """Return the first row of both, the second of both, ..."""
    texts = Texts(
        np.concatenate((first.texts.data, second.texts.data)),
        np.concatenate((first.texts.starts, second.texts.starts[1:] + len(first.texts.data))),
    )
    numbers = [np.arange(len(part)) if part.index is None else part.index for part in (first, second)]
    index = np.column_stack((numbers[0], numbers[1] + len(first.texts))).ravel()
    ids = np.column_stack((first.ids, second.ids)).ravel()
    return HashedTexts(texts, ids, np.column_stack((first.checks, second.checks)).ravel(), index)
