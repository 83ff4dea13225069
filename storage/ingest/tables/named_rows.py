"""What becomes of rows with texts: names of vertices, hashed, and labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from longwall.storage.ingest.names.texts import HashedTexts, gather_spans, hash_texts

BYTES_PER_BYTE = 30
"""Of memory for a byte of text: spans, texts, hashes and lines of the shortest rows ("a b", 4 bytes)."""


class NamedColumns(NamedTuple):
    """The texts of a block."""

    vertices: HashedTexts | None
    """The first columns, side by side: one name a row, or two."""
    labels: HashedTexts | None
    """The last column."""


@dataclass(frozen=True)
class NamedRows:
    """Takes the texts of rows out of a block, see `text_file.Convert`.

    Attributes
    ----------
    ends
        How many of the first columns hold vertices: 2 of edges, 1 of labelled vertices.
    columns
        Which columns are texts.
    """

    ends: int
    columns: tuple[bool, ...]

    @property
    def texts(self) -> Sequence[int]:
        """The columns that are texts."""
        return [at for at, is_text in enumerate(self.columns) if is_text]

    def make(self, text: npt.NDArray[np.uint8], columns: npt.NDArray[np.int64]) -> NamedColumns:
        """Copy the texts, and hash them."""
        vertices = labels = None
        if self.columns[0]:
            vertices = hash_texts(gather_spans(text, np.ascontiguousarray(columns[: self.ends].T).ravel()))
        if len(self.columns) > self.ends and self.columns[-1]:
            labels = hash_texts(gather_spans(text, columns[-1]))
        return NamedColumns(vertices, labels)
