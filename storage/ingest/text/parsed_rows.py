"""The format of the rows of a text, and the result of parsing a block of them."""

import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from longwall.storage.ingest.text.missing_rows import table_of
from longwall.storage.ingest.text.plain_lines import parse_plain_block
from longwall.storage.ingest.text.text_kernel import OK, OWN_SEPARATOR, count_newlines, parse_lines

COMMENTS = b"#%"
"""Bytes that begin a comment, by default."""
_SHORTEST_FIELD = 2  # bytes, with what ends it


class Convert(Protocol):
    """Converts the columns of a block while its text is in memory."""

    @property
    def texts(self) -> Sequence[int]:
        """The columns that are texts."""
        ...

    def make(self, text: npt.NDArray[np.uint8], columns: npt.NDArray[np.int64], tags: npt.NDArray[np.uint8]) -> Any:
        """Return the value of `Lines.converted` for a block, from its text, its columns and its letters."""
        ...


@dataclass(frozen=True, eq=False)
class Block:
    """Whole lines: bytes `start` to `end` of a buffer."""

    buffer: mmap.mmap
    start: int
    end: int
    position: int
    """Bytes of the file that were consumed when the block was complete."""


@dataclass(frozen=True, eq=False)
class Rows:
    """The format of the rows of a file; see `text_kernel.parse_lines`."""

    kinds: npt.NDArray[np.uint8]
    places: npt.NDArray[np.int64]
    needed: int
    separator: int = OWN_SEPARATOR
    fields: int = 0
    letters: bytes = b""
    comments: bytes = COMMENTS
    convert: "Convert | None" = None
    wide: int = 0
    """The number of leading columns that may hold integers below 0, or from 2^63 on."""
    drops: bool | None = None
    """Whether to drop rows without a value in one of these columns; None: the format has no such option."""
    missing: Sequence[str] = ()
    """Words that stand for a missing value."""

    @property
    def width(self) -> int:
        """The number of columns."""
        return int(self.places.max()) + 1

    @property
    def are_pairs(self) -> bool:
        """Each row is two integers, and has perhaps more fields."""
        plain = not self.letters and self.fields in (0, 2) and self.places.tolist() == [0, 1]
        return plain and (self.convert is None or not self.convert.texts)

    def roles_of(self, names: Sequence[str]) -> list[str]:
        """Return the name in messages of each of the first fields, "" for ends of edges."""
        return [names[place] if 0 <= place < len(names) else "" for place in self.places.tolist()]


@dataclass(frozen=True, eq=False)
class Parsed:
    """The result of `text_kernel.parse_lines` for a block."""

    converted: Any
    columns: npt.NDArray[np.int64]
    tags: npt.NDArray[np.uint8]
    lines: npt.NDArray[np.int32]
    beyond: npt.NDArray[np.int64]
    line_count: int
    code: int
    line_at: int
    token_at: int
    fields: int


@dataclass(frozen=True, eq=False)
class Spans:
    """Leaves texts where they are."""

    texts: Sequence[int]

    def make(self, text: object, columns: object, tags: object) -> None:
        """See `Convert`."""


def parse_block(block: Block, rows: Rows) -> Parsed:
    """Parse a block."""
    data = np.frombuffer(block.buffer, np.uint8)[: block.end]
    # Without blank lines and comments, the number of rows is the number of newlines.
    shortest = _SHORTEST_FIELD * min(rows.needed, 2)
    most = min(count_newlines(data, block.start), (block.end - block.start) // shortest) + 1
    columns = np.empty((rows.width, most), np.int64)
    tags, lines = np.empty(most if rows.letters else 0, np.uint8), np.empty(most, np.int32)
    letters, comments = np.frombuffer(rows.letters, np.uint8), np.frombuffer(rows.comments, np.uint8)
    beyond, wide = np.array([-1, -1, 0, 0, 0]), np.arange(rows.width) < rows.wide
    texts = np.zeros(rows.width, bool)
    if rows.convert is not None:
        texts[list(rows.convert.texts)] = True
    words = table_of(rows.missing) if rows.drops else None
    layout = rows.kinds, rows.separator, rows.places, rows.fields, rows.needed, letters, comments, texts, wide
    at, found, count, fault = block.start, 0, 0, [OK, 0, 0, 2]
    if rows.are_pairs:  # of these most files consist, and the kernel for all others takes long to compile
        at, found, count, beyond[2] = parse_plain_block(data, at, rows.kinds, rows.separator, comments, columns, lines)
    if at < data.size or not rows.are_pairs:
        found, count, *fault = parse_lines(data, at, *layout, columns, tags, lines, beyond, found, count, words)
    columns = columns[:, :found]
    converted = rows.convert.make(data, columns, tags[:found]) if rows.convert is not None else None
    return Parsed(converted, columns, tags[:found], lines[:found], beyond, count, *fault)
