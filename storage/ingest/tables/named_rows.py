"""What becomes of rows with texts: names of vertices, hashed, and labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from longwall.kernels.jit.compile import compiled
from longwall.storage.ingest.names.texts import HashedTexts, gather_spans, hash_texts
from longwall.storage.ingest.text.missing_rows import MISSING, table_of

BYTES_PER_BYTE = 30
"""Of memory for a byte of text: spans, texts, hashes and lines of the shortest rows ("a b", 4 bytes)."""

_MISSING = table_of(MISSING)


class NamedColumns(NamedTuple):
    """The texts of a block."""

    vertices: HashedTexts | None
    """The first columns, side by side: one name a row, or two."""
    labels: HashedTexts | None
    """The last column."""
    missing: tuple[int, int] = (-1, 0)
    """The first row with a missing value in place of an end (-1: none), and the number of such rows."""


@dataclass(frozen=True)
class NamedRows:
    """Takes the texts of rows out of a block, see `text_file.Convert`.

    Attributes
    ----------
    ends
        The number of leading columns that hold vertices: 2 of edges, 1 of labelled vertices.
    columns
        The columns that are texts.
    refuse_missing
        Whether texts such as NaN are refused as names unless they stand in quotes.
    """

    ends: int
    columns: tuple[bool, ...]
    refuse_missing: bool = False

    @property
    def texts(self) -> Sequence[int]:
        """The columns that are texts."""
        return [at for at, is_text in enumerate(self.columns) if is_text]

    def make(self, text: npt.NDArray[np.uint8], columns: npt.NDArray[np.int64], tags: object) -> NamedColumns:  # noqa: ARG002
        """Copy the texts, and hash them."""
        vertices, labels, missing = None, None, (-1, 0)
        if self.columns[0]:
            spans = np.ascontiguousarray(columns[: self.ends].T).ravel()
            vertices = hash_texts(gather_spans(text, spans))
            if self.refuse_missing:
                missing = _missing_rows(text, spans, self.ends, *_MISSING)
        if len(self.columns) > self.ends and self.columns[-1]:
            labels = hash_texts(gather_spans(text, columns[-1]))
        return NamedColumns(vertices, labels, missing)


@compiled("u1[::1], i8[::1], i8, const(u1[:,::1]), i8[::1]")
def _missing_rows(
    text: npt.NDArray[np.uint8],
    spans: npt.NDArray[np.int64],
    ends: int,
    words: npt.NDArray[np.uint8],
    lengths: npt.NDArray[np.int64],
) -> tuple[int, int]:
    """Return the first row (-1: none) and the number of rows of `ends` spans with a word that is not in quotes."""
    first_row, last_row, count = -1, -1, 0
    for end in range(spans.size):
        begin, length = spans[end] >> np.int64(32), spans[end] & np.int64(0xFFFF_FFFF)
        first = text[begin]
        if length > words.shape[1] or (first != 78 and first != 110 and first != 60 and first != 35 and first != 45):
            continue  # none begins with "N", "n", "<", "#" or "-"
        if begin > 0 and text[begin - 1] == 34:
            continue
        for word in range(lengths.size):
            same = lengths[word] == length
            for at in range(length):
                same = same and text[begin + at] == words[word, at]
            row = end // ends
            if same and row != last_row:
                first_row = row if count == 0 else first_row
                last_row, count = row, count + 1
    return first_row, count
