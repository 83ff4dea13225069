"""Read lines of integers from a text file, block by block, with the exact place of the first bad line."""

import mmap
from collections import deque
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from longwall.storage.errors import InputError
from longwall.storage.readers import text_kernel
from longwall.storage.readers.in_order import blocks_in_flight, in_order
from longwall.storage.readers.source import Progress, Source, decompression_bytes
from longwall.storage.readers.text_errors import explain, line_of
from longwall.storage.readers.text_kernel import count_newlines, parse_lines

LEAST_BLOCK = 2**16
LARGEST_BLOCK = 2**21
_SHORTEST_ROW = 4
_BYTES_PER_BYTE = 6  # the text, and what the shortest lines ("1 2", 4 bytes) become: 20 bytes each
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, eq=False)
class Lines:
    """The integers of consecutive lines; the arrays are the receiver's own."""

    columns: npt.NDArray[np.int64]
    """int64[width, rows]; -1 where a line has fewer integers."""
    tags: npt.NDArray[np.uint8]
    """uint8[rows]: the letter that a line begins with, in tagged files."""
    lines: npt.NDArray[np.int32]
    """int32[rows]: the line of each row, counted from `first`."""
    first: int
    """The number of the block's first line, from 1."""

    def number(self, row: int) -> int:
        """Return the line number of a row, from 1."""
        return self.first + int(self.lines[row])

    def place(self, row: int) -> str:
        """Name the line of a row."""
        return f"line {self.number(row)}"

    def select(self, mask: npt.NDArray[np.bool_]) -> "Lines":
        """Return the rows where `mask`, bool[rows], is true."""
        if mask.all():
            return self  # most blocks of a file have rows of one kind
        return Lines(self.columns[:, mask], self.tags[mask], self.lines[mask], self.first)


@dataclass(frozen=True, eq=False)
class _Block:
    """Whole lines: bytes `start` to `end` of a buffer."""

    buffer: mmap.mmap
    start: int
    end: int
    position: int
    """Bytes of the file that were consumed when the block was complete."""


@dataclass(frozen=True, eq=False)
class _Parsed:
    columns: npt.NDArray[np.int64]
    tags: npt.NDArray[np.uint8]
    lines: npt.NDArray[np.int32]
    line_count: int
    code: int
    line_at: int
    token_at: int


class _EndlessLine(Exception):
    """A line that does not fit in a block."""


class TextFile:
    """A text file, opened: `peek` and `take` read a header line by line, `parse` the rest.

    Parameters
    ----------
    path
        The file, compressed if it is named .gz or .zst.
    memory
        Bytes that may be held: decompression, blocks of text, and blocks of integers up to the last one yielded,
        with as much again for what the caller makes of that one. 2 MiB and decompression are needed in any case.
    workers
        Threads that parse, fewer where memory is short.
    progress
        Called with the bytes of the file consumed and its size.
    """

    def __init__(self, path: Path, memory: int, workers: int, progress: Progress | None = None) -> None:
        self.path = path
        self._progress = progress
        self._workers, self._block_bytes = _divide(memory - decompression_bytes(path), workers)
        self._buffers: deque[mmap.mmap] = deque()
        self._source = Source(path)
        self._line = 1
        self._rest = b""
        self._ended = False
        self._parsing: Generator[tuple[_Block, _Parsed], None, None] | None = None
        try:
            self._header = self._header_block()
        except BaseException:
            self._source.close()
            raise
        if self._header and self._header.buffer[: len(_BYTE_ORDER_MARK)] == _BYTE_ORDER_MARK:
            self._move(len(_BYTE_ORDER_MARK))

    def __enter__(self) -> "TextFile":
        return self

    def __exit__(self, *exc: object) -> None:
        if self._parsing is not None:
            self._parsing.close()
        self._source.close()

    def error(self, line: int, what: str) -> InputError:
        """Make the error for a line (from 1)."""
        return InputError(f"{self.path}, line {line}: {what}")

    def peek(self) -> tuple[int, str]:
        """Return number and text of the next line that is neither blank nor a `#` or `%` comment.

        The text is empty at the end of the file. Blank lines and comments before it are consumed.
        """
        while True:
            text = self._look()
            if self._header is None or text[:1] not in ("", "#", "%"):
                return self._line, text
            self.take()

    def take(self) -> tuple[int, str]:
        """Return number and text of the next line, whatever it is, and consume it."""
        number, text = self._line, self._look()
        if self._header is not None:
            stop = self._header.buffer.find(b"\n", self._header.start, self._header.end)
            self._move(self._header.end if stop < 0 else stop + 1)
            self._line += 1
        return number, text

    def parse(
        self, width: int, needed: int, letters: bytes = b"", end: bytes | None = None
    ) -> Generator[Lines, None, None]:
        """Parse the rest of the file.

        Parameters
        ----------
        width
            Integers wanted of each line; further tokens are ignored.
        needed
            Integers that each line must have (at least 1 with a letter, at least 2 without).
        letters
            Each line begins with one of these letters, if there are any; `t` is followed by `#` and one integer.
        end
            A line which ends the file's contents where there are letters.

        Yields
        ------
        Lines
            A block of lines.

        Raises
        ------
        InputError
            With file and line: binary data, missing columns, ids that are negative, not integers or >= 2^63.
        """
        self._parsing = in_order(self._read, lambda block: _parse(block, width, needed, letters), self._workers)
        try:
            for block, parsed in self._parsing:
                ended = parsed.code != text_kernel.OK and line_of(block.buffer, parsed.line_at, block.end) == end
                if parsed.code != text_kernel.OK and not ended:
                    what = explain(block.buffer, parsed.code, parsed.line_at, parsed.token_at, block.end, needed)
                    raise self.error(self._line + parsed.line_count, what)
                yield Lines(parsed.columns, parsed.tags, parsed.lines, self._line)
                if self._progress is not None:
                    self._progress(self._source.size if ended else block.position, self._source.size)
                if ended:
                    return
                self._line += parsed.line_count
                self._buffers.append(block.buffer)
                del parsed
        except _EndlessLine:
            raise self._endless() from None

    def _look(self) -> str:
        """Return the next line of the header, which may be in the next block."""
        while self._header is not None and self._header.start == self._header.end:
            self._buffers.append(self._header.buffer)
            self._header = self._header_block()
        if self._header is None:
            return ""
        return line_of(self._header.buffer, self._header.start, self._header.end).decode("ascii", "replace")

    def _move(self, start: int) -> None:
        assert self._header is not None
        self._header = _Block(self._header.buffer, start, self._header.end, self._header.position)

    def _header_block(self) -> _Block | None:
        try:
            return self._fill()
        except _EndlessLine:
            raise self._endless() from None

    def _endless(self) -> InputError:
        return self.error(
            self._line, f"longer than {self._block_bytes} bytes, this is not a list of edges; check the file"
        )

    def _read(self) -> _Block | None:
        """Return what is left of the header's block, then the following ones."""
        if self._header is not None:
            block, self._header = self._header, None
            return block
        return self._fill()

    def _fill(self) -> _Block | None:
        """Read whole lines; what follows the last newline waits for the next block."""
        if self._ended:
            return None
        buffer = self._buffers.popleft() if self._buffers else mmap.mmap(-1, self._block_bytes, mmap.MAP_PRIVATE)
        kept = len(self._rest)
        buffer[:kept] = self._rest
        with memoryview(buffer) as view, view[kept:] as room:
            end = kept + self._source.fill(room)
        self._ended = end < self._block_bytes
        cut = end if self._ended else buffer.rfind(b"\n", 0, end) + 1
        if not self._ended and cut == 0:
            raise _EndlessLine
        self._rest = buffer[cut:end]
        return _Block(buffer, 0, cut, self._source.position)


def whole_number(word: str) -> int | None:
    """Return the number that a word of a header is, 2^63 for all from there on; None where it is no number >= 0."""
    if not (word.isascii() and word.isdigit()):
        return None
    digits = word.lstrip("0")
    return min(int(digits or "0"), 2**63) if len(digits) < 20 else 2**63  # Python refuses thousands of digits


def _divide(memory: int, workers: int) -> tuple[int, int]:
    """Return the number of parser threads and the size of a block of text that memory has room for."""
    more = blocks_in_flight(0) + 2  # besides those that are parsed; the caller's last one, and what it makes of it
    workers = max(1, min(workers, memory // (_BYTES_PER_BYTE * LEAST_BLOCK) - more))
    each = memory // (_BYTES_PER_BYTE * (workers + more))
    return workers, max(LEAST_BLOCK, min(LARGEST_BLOCK, each))


def _parse(block: _Block, width: int, needed: int, letters: bytes) -> _Parsed:
    data = np.frombuffer(block.buffer, np.uint8)[: block.end]
    # Short of blank lines and comments there are as many rows as newlines.
    most = min(count_newlines(data, block.start), (block.end - block.start) // _SHORTEST_ROW) + 1
    columns = np.empty((width, most), np.int64)
    tags, lines = np.empty(most if letters else 0, np.uint8), np.empty(most, np.int32)
    rows, count, code, line_at, token_at = parse_lines(
        data, block.start, needed, np.frombuffer(letters, np.uint8), columns, tags, lines
    )
    return _Parsed(columns[:, :rows], tags[:rows], lines[:rows], count, code, line_at, token_at)
