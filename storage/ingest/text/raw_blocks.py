"""Blocks of bytes of a text file, cut where a kernel can go on: behind a line, or behind a word."""

from collections.abc import Iterator
from pathlib import Path

from longwall.storage.errors import InputError
from longwall.storage.ingest.text import text_kernel
from longwall.storage.ingest.text.input_file import Progress, Source, decompression_bytes
from longwall.storage.ingest.text.text_errors import NOT_A_LINE, explain

_LEAST, _LARGEST = 2**16, 2**20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SHOWN = 40


class RawBlocks:
    """A file as blocks; the last one ends with a newline, even if the file does not.

    Parameters
    ----------
    path
        The file.
    memory
        Bytes that a block, and what becomes of it, may take.
    bytes_per_byte
        Bytes of memory for a byte of a block.
    ends
        The bytes behind which a block may end.
    progress
        Called with the bytes of the file consumed and its size.

    Attributes
    ----------
    line
        The number of the line that is parsed, for messages; kept by the owner.
    """

    def __init__(
        self, path: Path, memory: int, bytes_per_byte: int, ends: bytes, progress: Progress | None = None
    ) -> None:
        self.path, self.line = path, 1
        self._ends, self._progress = ends, progress
        size = (memory - decompression_bytes(path, memory)) // bytes_per_byte
        self._buffer = bytearray(max(_LEAST, min(_LARGEST, size)) + 1)

    def __iter__(self) -> Iterator[bytes]:
        source, kept, first, last = Source(self.path), b"", True, 0
        size = len(self._buffer) - 1
        try:
            ended = False
            while not ended:
                self._buffer[: len(kept)] = kept
                with memoryview(self._buffer) as view, view[len(kept) : size] as capacity:
                    end = len(kept) + source.fill(capacity)
                ended = end < size
                last = self._buffer[end - 1] if end else last
                if ended and last != 10:
                    self._buffer[end] = 10
                    end += 1
                if end == 0:
                    return
                cut = max(self._buffer.rfind(bytes((byte,)), 0, end) for byte in self._ends) + 1
                if cut == 0:
                    raise self.error(f"longer than {size:,} bytes, this is not a graph; check the file")
                start = len(_BYTE_ORDER_MARK) if first and self._buffer.startswith(_BYTE_ORDER_MARK) else 0
                first = False
                yield bytes(memoryview(self._buffer)[start:cut])
                kept = bytes(memoryview(self._buffer)[cut:end])
                if self._progress is not None:
                    self._progress(source.position, source.size)
        finally:
            source.close()

    def error(self, what: str) -> InputError:
        """Make the error for the present line."""
        return InputError(f"{self.path}, line {self.line}: {what}")

    def binary(self, block: bytes, at: int) -> InputError:
        """Make the error for a byte that no text has, or for a carriage return inside a line."""
        fault = NOT_A_LINE.search(block, at)
        lone = fault is not None and fault[0].startswith(b"\r")
        code = text_kernel.LONE_RETURN if lone else text_kernel.BINARY
        return self.error(explain(block, code, at, at, len(block), needed=0))


def word_at(block: bytes, at: int) -> str:
    """Return the word at a place, for a message."""
    words = block[at : at + _SHOWN].split(None, 1)
    return repr(words[0].decode("utf-8", "replace")) if words else "''"
