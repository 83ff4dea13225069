"""Read lines of integers from a text file, block by block, with the exact place of the first bad line."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from longwall.storage.errors import InputError
from longwall.storage.readers import text_kernel
from longwall.storage.readers.source import Progress, Source
from longwall.storage.readers.text_kernel import parse_lines

BLOCK_BYTES = 16 * 2**20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SHOWN = 40
_TOKEN = re.compile(rb"[^\s,;|]+")
_NOT_TEXT = re.compile(rb"[^\t-\r -~]")


@dataclass(frozen=True, eq=False)
class Lines:
    """The integers of consecutive lines."""

    columns: npt.NDArray[np.int64]
    """int64[width, rows]; -1 where a line has fewer integers. Valid until the next block is read."""
    tags: npt.NDArray[np.uint8]
    """uint8[rows]: the letter that a line begins with, in tagged files."""
    numbers: npt.NDArray[np.int64]
    """int64[rows]: line numbers, from 1."""


class TextFile:
    """A text file, opened: `peek` and `take` read a header line by line, `parse` the rest."""

    def __init__(self, path: Path, progress: Progress | None = None) -> None:
        self.path = path
        self._source = Source(path, progress)
        self._line = 1
        self._rest = b""
        try:
            self._block = self._next_block()
        except BaseException:
            self._source.close()
            raise
        self._at = len(_BYTE_ORDER_MARK) if self._block.startswith(_BYTE_ORDER_MARK) else 0

    def __enter__(self) -> "TextFile":
        return self

    def __exit__(self, *exc: object) -> None:
        self._source.close()

    def error(self, line: int, what: str) -> InputError:
        """Make the error for a line (from 1)."""
        return InputError(f"{self.path}, line {line}: {what}")

    def peek(self) -> tuple[int, str]:
        """Return number and text of the next line that is neither blank nor a `#` or `%` comment.

        The text is empty at the end of the file. Blank lines and comments before it are consumed.
        """
        while True:
            number, text, following = self._look()
            if not text or text.strip()[:1] not in ("", "#", "%"):
                return number, text.strip()
            self._at, self._line = following, number + 1

    def take(self) -> tuple[int, str]:
        """Return number and text of the next line, whatever it is, and consume it."""
        number, text, following = self._look()
        self._at, self._line = following, number + 1
        return number, text.strip()

    def _look(self) -> tuple[int, str, int]:
        if self._at >= len(self._block):
            self._block, self._at = self._next_block(), 0
        end = self._block.find(b"\n", self._at)
        following = len(self._block) if end < 0 else end + 1
        return self._line, self._block[self._at : following].decode("ascii", "replace"), following

    def parse(self, width: int, needed: int, tagged: bool = False, end: bytes | None = None) -> Iterator[Lines]:
        """Parse the rest of the file.

        Parameters
        ----------
        width
            Integers wanted of each line; further tokens are ignored.
        needed
            Integers that each line must have (at least 1 with a tag, at least 2 without).
        tagged
            Whether each line begins with the letter `v` or `e`.
        end
            A line which ends the file's contents where `tagged`.

        Yields
        ------
        Lines
            A block of lines; its arrays are reused for the next block.

        Raises
        ------
        InputError
            With file and line: binary data, missing columns, ids that are negative, not integers or >= 2^63.
        """
        kernel = parse_lines()
        columns = np.empty((width, 0), np.int64)
        tags, lines = np.empty(0, np.uint8), np.empty(0, np.int32)
        while self._block:
            block = np.frombuffer(self._block, np.uint8)
            capacity = len(block) // 4 + 1  # the shortest line with a row is 4 bytes
            if capacity > len(lines):
                columns = np.empty((width, capacity), np.int64)
                tags, lines = np.empty(capacity, np.uint8), np.empty(capacity, np.int32)
            rows, count, code, line_at, token_at = kernel(block, self._at, needed, tagged, columns, tags, lines)
            ended = code == text_kernel.UNKNOWN_TAG and self._block[line_at:].strip() == end
            if code != text_kernel.OK and not ended:
                raise self.error(self._line + count, self._explain(code, line_at, token_at, needed))
            numbers = lines[:rows].astype(np.int64) + self._line
            yield Lines(columns[:, :rows], tags[:rows], numbers)
            if ended:
                return
            self._line += count
            self._block, self._at = self._next_block(), 0

    def _explain(self, code: int, line_at: int, token_at: int, needed: int) -> str:
        line = self._block[line_at:].split(b"\n", 1)[0].strip()
        token = _TOKEN.match(self._block, token_at)
        word = token[0] if token else b""
        in_token = code != text_kernel.BINARY
        strange = _NOT_TEXT.search(word) if in_token else _NOT_TEXT.search(self._block, token_at)
        if strange:
            return (
                f"binary data (byte 0x{strange[0].hex()}), this is not a text file; "
                "give a text file, or name it by its format (.gz, .zst, .parquet)"
            )
        shown = _shorten(word)
        if code == text_kernel.FEW_COLUMNS:
            return f"too few columns in {_shorten(line)!r}, {needed} integers are needed; complete the line"
        if code == text_kernel.NEGATIVE:
            return f"negative number {shown}; use vertex ids and labels >= 0"
        if code == text_kernel.TOO_LARGE:
            return f"{shown} is 2^63 or more; renumber the vertices with smaller ids"
        if code == text_kernel.LONE_RETURN:
            return "a carriage return without a newline; convert the file to Unix line ends"
        if code == text_kernel.UNKNOWN_TAG and line.startswith(b"t"):
            return f"{_shorten(line)!r} starts another graph, only one a file is read; split the file"
        if code == text_kernel.UNKNOWN_TAG:
            return f"{_shorten(line)!r} is neither a vertex (v ...) nor an edge (e ...); remove the line"
        return f"{shown!r} is not an integer; vertex ids and labels are whole numbers >= 0"

    def _next_block(self) -> bytes:
        """Read whole lines; what follows the last newline waits for the next block."""
        wanted = BLOCK_BYTES - len(self._rest)
        data = self._source.read(wanted)
        at_end = len(data) < wanted
        data = self._rest + data
        cut = len(data) if at_end else data.rfind(b"\n") + 1
        if not at_end and cut == 0:
            raise self.error(
                self._line,
                f"longer than {BLOCK_BYTES} bytes, this is not a list of edges; check the file",
            )
        self._rest = data[cut:]
        return data[:cut]


def _shorten(text: bytes) -> str:
    shown = text.decode("ascii", "replace")
    return shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "..."
