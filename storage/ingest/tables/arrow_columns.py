"""Columns of Arrow's that hold pairs of integers: which these are, and their values."""

import json
from typing import Any

import numpy as np
import numpy.typing as npt

from longwall.storage.errors import InputError
from longwall.storage.ingest.id_words import ID_RANGE
from longwall.storage.ingest.names.texts import HashedTexts, Texts, hash_texts
from longwall.storage.ingest.tables.columns import (
    EDGES,
    TRANSACTIONS,
    ColumnRequest,
    choose_columns,
    describe_choice,
    known_pair,
    with_label,
)
from longwall.storage.ingest.text.missing_rows import DROP, and_more

Int64s = npt.NDArray[np.int64]

_UUID, _UUID_TEXT = 16, 36  # bytes


def choose_pair(where: object, schema: Any, request: ColumnRequest) -> tuple[int, ...]:
    """Return the places of the columns to read among the fields of a schema: two, or three with labels.

    Parameters
    ----------
    where
        What is read, for messages.
    schema : pyarrow.Schema
        Its columns.
    request
        What to look for.

    Raises
    ------
    InputError
        If it is not clear which columns are meant, or a name stands twice.
    """

    def error(what: str) -> InputError:
        return InputError(f"{where}: {what}")

    names, index = list(schema.names), _index_columns(schema)
    if request.chosen is not None:
        index = set()  # a column that the user names may be an index
    shown = [place for place, name in enumerate(names) if name not in index]
    readable = [_is_integer(field.type) or is_text(field.type) for field in schema]
    types = ["" if fits else str(field.type) for fits, field in zip(readable, schema, strict=True)]
    integers = [kind or str(field.type) * is_text(field.type) for kind, field in zip(types, schema, strict=True)]
    seen, kinds = [names[place] for place in shown], [types[place] for place in shown]
    numbers = sum(not integers[place] for place in shown)
    texts = sum(not kind for kind in kinds) - numbers
    # Two columns of integers are the edge only if no two columns of texts could be it.
    if numbers >= 2 and texts < 2 and not known_pair(seen, request):
        kinds = [integers[place] for place in shown]
    pair = choose_columns(seen, request, error, kinds)
    wanted = with_label((shown[pair[0]], shown[pair[1]]), request, names, error)
    if any(bad := types[place] for place in wanted[2:]):
        raise error(f"column {names[wanted[2]]} holds {bad}; choose a column of integers or texts")
    for place in wanted:
        if names.count(names[place]) > 1:
            raise error(f"more than one column is named {names[place]!r}; write the file with other names")
    first, second = (is_text(schema.field(place).type) for place in wanted[:2])
    if request.names is EDGES and first != second:
        raise error(
            f"columns {names[wanted[0]]} and {names[wanted[1]]} hold {schema.field(wanted[0]).type} and "
            f"{schema.field(wanted[1]).type}; give both the same type"
        )
    if request.names is TRANSACTIONS and second:
        kind = schema.field(wanted[1]).type
        raise error(f"column {names[wanted[1]]} holds {kind}; number the transactions from 0 up")
    named = (first or request.ids == "names") and request.names is EDGES
    listed, others = [names[place] for place in wanted], len(set(shown) - set(wanted))
    request.notes.say(describe_choice(where, listed, others, request, named))
    return wanted


def _index_columns(schema: Any) -> set[str]:
    """Return the names of the columns that hold an index of pandas, which is not data of the user."""
    try:
        listed = json.loads((schema.metadata or {})[b"pandas"])["index_columns"]
    except (KeyError, TypeError, ValueError):
        return set()
    return {name for name in listed if isinstance(name, str)} if isinstance(listed, list) else set()


def _is_integer(kind: Any) -> bool:
    """Whether a type of Arrow's is one of whole numbers, such as decimals without digits behind the point."""
    import pyarrow as pa

    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_integer(kind) or (pa.types.is_decimal(kind) and kind.scale == 0))


def is_text(kind: Any) -> bool:
    """Whether a type of Arrow's is one of texts, or of UUIDs."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        return is_text(kind.storage_type)
    is_uuid = pa.types.is_fixed_size_binary(kind) and kind.byte_width == _UUID
    return bool(is_uuid or pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def texts_of(where: object, name: str, column: Any, start: int | Int64s, drop: str = DROP) -> HashedTexts:
    """Return a column of texts, or of UUIDs as they are written; what a dictionary repeats is hashed once.

    Parameters
    ----------
    where, name, column, start, drop
        See `integers_of`.

    Raises
    ------
    InputError
        If one is null or empty.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.null_count:
        raise _empty(where, name, column.is_null().to_numpy(zero_copy_only=False), start, drop)
    index = None
    if pa.types.is_dictionary(column.type):
        index, column = column.indices.to_numpy().astype(np.int64), column.dictionary
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.storage
    column = column.fill_null("") if column.null_count else column
    uuids = pa.types.is_fixed_size_binary(column.type)
    texts = _uuid_texts(column) if uuids else Texts.of_arrow(pc.cast(column, pa.large_string()))
    if index is not None and len(index) and not 0 <= index.min() <= index.max() < len(texts):
        raise InputError(f"{where}: column {name} is damaged, as it has texts that its dictionary lacks; copy it again")
    lengths = np.diff(texts.starts)
    if (empty := (lengths if index is None else lengths[index]) == 0).any():
        raise _empty(where, name, empty, start, drop)
    hashed = hash_texts(texts)
    return hashed if index is None else hashed.spread(index)


def _empty(where: object, name: str, empty: npt.NDArray[np.bool_], start: int | Int64s, drop: str) -> InputError:
    """Make the error for rows, bool[rows], in which a column is empty."""
    more = and_more(int(empty.sum()) - 1, place_of(start, len(empty) - 1))
    one = "fill or remove the row" if drop is DROP else f"fill it, or {drop}"
    advice = f"fill them, or {drop}" if more else one
    return InputError(f"{where}, {place_of(start, int(np.argmax(empty)))}: column {name} is empty{more}; {advice}")


def _uuid_texts(column: Any) -> Texts:
    """Return UUIDs in the usual form: 8-4-4-4-12 digits."""
    count = len(column)
    data = np.frombuffer(column.buffers()[1], np.uint8)[column.offset * _UUID : (column.offset + count) * _UUID]
    digits = np.frombuffer(data.tobytes().hex().encode(), np.uint8).reshape(count, 2 * _UUID)
    written = np.full((count, _UUID_TEXT), ord("-"), np.uint8)
    written[:, [at for at in range(_UUID_TEXT) if at not in (8, 13, 18, 23)]] = digits
    return Texts(written.ravel(), np.arange(count + 1) * _UUID_TEXT)


def integers_of(where: object, name: str, column: Any, start: int | Int64s, drop: str = DROP) -> npt.NDArray[Any]:
    """Return a column as integer[rows].

    Parameters
    ----------
    where, name
        What is read, and the column, for messages.
    column : pyarrow.Array
        Integers, or a dictionary of some.
    start
        The number of rows before this block, or the number of each row, from 0.
    drop
        Advice on how to leave out rows that lack a value, for the message.

    Raises
    ------
    InputError
        If one is null.
    """
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if column.null_count:
        raise _empty(where, name, column.is_null().to_numpy(zero_copy_only=False), start, drop)
    if pa.types.is_decimal(column.type):
        column = _whole(where, name, column, start)
    values: npt.NDArray[Any] = column.to_numpy()
    return values


def _whole(where: object, name: str, column: Any, start: int | Int64s) -> Any:
    """Return decimals without digits behind the point as int64, or as uint64 if one is 2^63 or more."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ends = pc.min_max(column).as_py()
    low, high = ends["min"] or 0, ends["max"] or 0
    if low >= -(2**63) and high < 2**63:
        return pc.cast(column, pa.int64())
    if low >= 0 and high < 2**64:
        return pc.cast(column, pa.uint64())
    values = column.to_pylist()
    row = values.index(low if high < 2**64 else high)
    raise InputError(f"{where}, {place_of(start, row)}: column {name} holds {values[row]}; {ID_RANGE}")


def labels_of(where: object, name: str, column: Any, start: int | Int64s) -> Int64s:
    """Return a column of labels as int64[rows], an array of its own; parameters and errors are those of `integers_of`.

    Raises
    ------
    InputError
        If one is not in [0, 2^63).
    """
    values = integers_of(where, name, column, start)
    bad = values < 0 if values.dtype.kind == "i" else values >= 2**63
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{where}, {place_of(start, row)}: column {name} holds {values[row]}; use integers from 0 to 2^31 - 1"
        )
    return np.array(values, np.int64)


def without_empty(batch: Any, columns: list[str], start: int) -> tuple[Any, int | Int64s]:
    """Return the rows in which no column is null or an empty text, and their `start` as `place_of` takes it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    whole: Any = None
    for name in columns:
        column = batch.column(name)
        there = pc.is_valid(column)
        if is_text(column.type):
            there = pc.and_(there, _has_letters(column))
        whole = there if whole is None else pc.and_(whole, there)
    kept = np.flatnonzero(whole.to_numpy(zero_copy_only=False))
    return (batch, start) if len(kept) == batch.num_rows else (batch.take(pa.array(kept)), start + kept)


def _has_letters(column: Any) -> Any:
    """Return for each value of a column whether it is no empty text; True for null and for UUIDs."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        return pc.fill_null(_has_letters(column.dictionary).take(column.indices), True)
    values = column.storage if isinstance(column.type, pa.BaseExtensionType) else column
    if pa.types.is_fixed_size_binary(values.type):
        return pa.repeat(True, len(values))
    return pc.fill_null(pc.greater(pc.binary_length(pc.cast(values, pa.large_string())), 0), True)


def place_of(start: int | Int64s, row: int) -> str:
    """Say where a row of a block stands; `start` is the number of rows before the block, or the number of each row."""
    return f"row {(start + row if isinstance(start, int) else int(start[row])) + 1}"
