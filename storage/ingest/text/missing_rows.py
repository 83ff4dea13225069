"""Count the rows that lack a value, for the message on the first of them."""

from collections.abc import Sequence
from functools import reduce

import numpy as np
import numpy.typing as npt

MISSING = (
    *("NaN", "nan", "NAN", "-NaN", "-nan", "NA", "N/A", "n/a", "<NA>", "#N/A", "#NA"),
    *("null", "NULL", "Null", "None", "none"),
)
"""The words that pandas, R and databases write for a missing value."""


def table_of(words: Sequence[str]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return words as a kernel takes them: uint8[words, longest], padded with blanks, and their lengths."""
    longest = max(map(len, words), default=0)
    letters = np.frombuffer("".join(word.ljust(longest) for word in words).encode(), np.uint8)
    return letters.reshape(len(words), longest), np.array([len(word) for word in words], np.int64)


def count_missing_rows(text: bytes, separator: str, columns: Sequence[int], words: Sequence[str]) -> int:
    """Count the rows of a text in which one of some columns is empty, or one of some words, by Arrow's reader."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv

    names = [f"f{column}" for column in columns]
    try:
        table = pa.csv.read_csv(
            pa.py_buffer(text),
            # All bytes are text in latin1: Arrow writes a traceback for a row that it skips if the row is not UTF-8.
            pa.csv.ReadOptions(
                use_threads=False, block_size=2 * len(text) + 1, autogenerate_column_names=True, encoding="latin1"
            ),
            pa.csv.ParseOptions(delimiter=separator, newlines_in_values=True, invalid_row_handler=lambda _: "skip"),
            pa.csv.ConvertOptions(
                check_utf8=False, column_types=dict.fromkeys(names, pa.string()), include_columns=names
            ),
        )
    except (pa.ArrowInvalid, KeyError):  # the reader, stricter than ours, refuses the text
        return 1
    missing = pa.array(["", *words])
    found = reduce(pc.or_, [pc.is_in(pc.ascii_trim_whitespace(table[name]), missing) for name in names])
    return max(1, pc.sum(found).as_py() or 0)


def and_more(more: int, last: str, joined: str = "and in") -> str:
    """Say how many rows have the fault of the first one, up to the last row or line that was read."""
    return f", {joined} {more:,} more row{'s' * (more > 1)} up to {last}, as far as it was read" if more else ""


DROP = "leave such rows out first, as dropna of pandas and drop_nulls of polars do"
DROP_ENDS = 'set graph.empty = "drop" (--empty drop, or empty="drop" in Python) to leave out such rows'
