"""Read lines of integers from a text file, block by block, with the exact place of the first bad line."""

import mmap
import re
from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from longwall.storage.errors import InputError
from longwall.storage.ingest.text import text_kernel
from longwall.storage.ingest.text.input_file import Progress, Source, decompression_bytes, format_suffix
from longwall.storage.ingest.text.missing_rows import DROP, DROP_ENDS, MISSING, count_missing_rows
from longwall.storage.ingest.text.parallel_parse import blocks_in_flight, in_order
from longwall.storage.ingest.text.parsed_rows import COMMENTS, Block, Convert, Parsed, Rows, Spans, parse_block
from longwall.storage.ingest.text.tabs import tabs_separate
from longwall.storage.ingest.text.text_errors import NOT_A_LINE, explain, line_of
from longwall.storage.ingest.text.text_kernel import BLANKS, OWN_SEPARATOR, byte_kinds

LEAST_BLOCK = 2**16
LARGEST_BLOCK = 2**21
_TAGGED_ROLES = ("", "", "label"), ("", "label")  # of edges, of vertices
_TAB = 9
BYTES_OF_INTEGERS = 6  # the text, and what the shortest lines ("1 2", 4 bytes) become: 20 bytes each
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_PASSED = rb"(?:[%b]*+(?:[#%%][^\x00-\x08\n\r\x0e-\x1f]*+)?+\r*+\n)*+"
_BLANKS, _BLANKS_BUT_TAB = rb" \t\v\f", rb" \v\f"


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
    converted: Any = None
    """What `Convert` made of the columns."""
    unsigned: bool = False
    """Whether wide integers below 0 stand for those from 2^63 on."""

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
        return Lines(self.columns[:, mask], self.tags[mask], self.lines[mask], self.first, unsigned=self.unsigned)


class _EndlessLine(Exception):
    """A line that does not fit in a block."""


class TextFile:
    """A text file, opened: `peek` and `take` read a header line by line, `parse` the rest.

    Parameters
    ----------
    path
        The file, compressed if its extension says so.
    memory
        Bytes that may be held: decompression, blocks of text, and blocks of integers up to the last one yielded,
        with as much again for what the caller makes of that one. 2 MiB and decompression are needed in any case.
    workers
        Threads that parse, fewer where memory is short.
    progress
        Called with the bytes of the file consumed and its size.
    bytes_per_byte
        Bytes of memory for a byte of the text: itself, and what becomes of it.
    is_table
        Whether tabs alone separate fields if the first rows look like it, see `tabs_separate`; otherwise they do so
        only in .tsv files.

    Attributes
    ----------
    tab_separates
        Whether a tab separates fields even if one of them is empty.
    last_comment
        The comment above the line that `peek` returned, "" if there is none.
    comments
        The number of comments skipped so far.
    padded
        The number of wide integers that began with zeros so far.
    """

    def __init__(
        self,
        path: Path,
        memory: int,
        workers: int,
        progress: Progress | None = None,
        bytes_per_byte: int = BYTES_OF_INTEGERS,
        *,
        is_table: bool = False,
    ) -> None:
        self.path = path
        self._separate_by_tabs(format_suffix(path) == ".tsv")
        self._progress = progress
        self._workers, self._block_bytes = _divide(memory - decompression_bytes(path, memory), workers, bytes_per_byte)
        self._buffers: deque[mmap.mmap] = deque()
        self._source = Source(path)
        self._line, self.comments, self.padded, self.dropped = 1, 0, 0, 0
        self.last_comment = ""
        self._rest = b""
        self._ended = False
        self._parsing: Generator[tuple[Block, Parsed], None, None] | None = None
        try:
            self._header = self._header_block()
        except BaseException:
            self._source.close()
            raise
        if self._header and self._header.buffer[: len(_BYTE_ORDER_MARK)] == _BYTE_ORDER_MARK:
            self._move(len(_BYTE_ORDER_MARK))
        if is_table and self._header and not self.tab_separates:
            self._separate_by_tabs(tabs_separate(self._header.buffer[self._header.start : self._header.end]))

    def __enter__(self) -> "TextFile":
        return self

    def __exit__(self, *exc: object) -> None:
        if self._parsing is not None:
            self._parsing.close()
        self._source.close()

    def error(self, line: int, what: str) -> InputError:
        """Make the error for a line (from 1)."""
        return InputError(f"{self.path}, line {line}: {what}")

    def peek(self, comments: bool = True) -> tuple[int, str]:
        """Return number and text of the next line that is neither blank nor, with `comments`, one of these.

        The text is empty at the end of the file; what is not UTF-8 becomes U+FFFD. Blank lines and comments before it
        are consumed.

        Raises
        ------
        InputError
            A line holds binary data, or a carriage return inside.
        """
        while True:
            text = self.look()
            if self._header is None or text[:1] not in (("", "#", "%") if comments else ("",)):
                return self._line, text
            if comments:
                self._pass()
            else:
                self.take()

    def begins_like(self, pattern: re.Pattern[bytes]) -> bool:
        """Whether the rest of the first block begins with a match of a pattern."""
        block = self._header
        return block is not None and pattern.match(block.buffer, block.start, block.end) is not None

    def has_field(self, fields: Sequence[str]) -> bool:
        """Whether the rest of the first block has one of some texts as a field, with any separator but blanks."""
        if self._header is None:
            return False
        words = b"|".join(re.escape(field.encode()) for field in fields)
        found = re.compile(rb"(?m)(?:^|[,;|\t\"])[ ]*(?:%b)[ ]*(?:[,;|\t\"\r]|$)" % words)
        return found.search(self._header.buffer, self._header.start, self._header.end) is not None

    def take(self) -> tuple[int, str]:
        """Return number and text of the next line, whatever it is, and consume it."""
        number, text = self._line, self.look()
        if self._header is not None:
            stop = self._header.buffer.find(b"\n", self._header.start, self._header.end)
            self._move(self._header.end if stop < 0 else stop + 1)
            self._line += 1
        return number, text

    def count_fields(self) -> int:
        """Return the number of fields of the next row, 0 if that row is wrong; call `peek` first."""
        if self._header is None:
            return 0
        stop = self._header.buffer.find(b"\n", self._header.start, self._header.end)
        row = Block(self._header.buffer, self._header.start, self._header.end if stop < 0 else stop, 0)
        parsed = parse_block(row, self.rows(wide=2))
        return parsed.fields if parsed.code == text_kernel.OK else 0

    def rows(
        self,
        places: tuple[int, ...] = (0, 1),
        separator: int = OWN_SEPARATOR,
        fields: int = 0,
        convert: "Convert | None" = None,
        wide: int = 0,
        comments: bytes = COMMENTS,
        drops: bool | None = None,
        missing: Sequence[str] = (),
    ) -> Rows:
        """Return the format of rows that have the same number of fields.

        Parameters
        ----------
        places
            The column of each of the first fields, -1 for fields that are not read.
        separator
            The byte that separates the fields, see `text_kernel.parse_lines`.
        fields
            Fields of each row; 0: any number.
        convert
            Names the columns that are texts, and converts a block on the thread that parses it.
        wide
            The number of leading columns that hold integers from -2^63 to 2^63 - 1, or from 0 to 2^64 - 1; the others
            hold integers from 0 to 2^63 - 1.
        comments
            Bytes that begin a comment.
        drops
            Whether to drop and count rows that lack a value in a wide column; None: the format has no such option, and
            messages do not name it.
        missing
            Words that stand for a missing value, if rows are dropped.
        """
        wanted = np.array(places, np.int64)
        kinds = byte_kinds(True) if separator == _TAB else self._kinds
        needed = int((wanted >= 0).sum())
        return Rows(kinds, wanted, needed, separator, fields, b"", comments, convert, wide, drops, missing)

    def tagged_rows(
        self, letters: bytes, convert: "Convert | None" = None, comments: bytes = COMMENTS, width: int = 3
    ) -> Rows:
        """Return the format of lines of a letter, then two or three integers; what follows them is ignored.

        Parameters
        ----------
        letters
            Each line begins with one of these letters; after `t` come `#` and one integer.
        convert
            As of `rows`; see `text_kernel.parse_lines` for texts behind letters.
        comments
            Bytes that begin a comment.
        width
            The number of integers to read of a line, two or three.
        """
        separator = BLANKS if convert is not None else OWN_SEPARATOR
        return Rows(self._kinds, np.arange(width), 2, separator, 0, letters, comments, convert)

    def tagged_texts(self, letters: bytes) -> tuple[bool, bool]:
        """Whether labels of `v` lines, and of other lines, are texts in the rest of the first block."""
        texts: list[int] = []
        while self._header is not None:
            rows = self.tagged_rows(letters, Spans(texts) if texts else None)
            parsed = parse_block(self._header, rows)
            column = 1 if self._header.buffer[parsed.line_at : parsed.line_at + 1] == b"v" else 2
            if parsed.code != text_kernel.NOT_INTEGER or parsed.fields != column or column in texts:
                break
            texts.append(column)
        return 1 in texts, 2 in texts

    def has_texts(self, column: int, rows: Rows) -> bool:
        """Whether a column of integers has a text in the rest of the first block."""
        if self._header is None:
            return False
        parsed = parse_block(self._header, rows)
        found = int(rows.places[parsed.fields]) if parsed.fields < len(rows.places) else -1
        return parsed.code == text_kernel.NOT_INTEGER and found == column

    def parse(self, rows: Rows, end: bytes | None = None, roles: Sequence[str] = ()) -> Generator[Lines, None, None]:
        """Parse the rest of the file.

        Parameters
        ----------
        rows
            The format of its rows.
        end
            A line that ends the file's contents; None: no such line.
        roles
            The names of the columns in messages; by default all are ends of edges.

        Yields
        ------
        Lines
            A block of lines.

        Raises
        ------
        InputError
            With file and line: binary data, missing columns, empty fields, rows with another number of fields,
            something else than integers, or integers that are out of range.
        """
        self._parsing = in_order(self._read, lambda block: parse_block(block, rows), self._workers)
        seen = np.full(2, -1, np.int64)  # lines of the first integers below 0, and from 2^63 on
        try:
            for block, parsed in self._parsing:
                self._require_one_sign(parsed, seen)
                self.comments += int(parsed.beyond[2])
                self.padded += int(parsed.beyond[3])
                self.dropped += int(parsed.beyond[4])
                ended = parsed.code != text_kernel.OK and line_of(block.buffer, parsed.line_at, block.end) == end
                if parsed.code != text_kernel.OK and not ended:
                    fault = parsed.code, parsed.line_at, parsed.token_at
                    fields = parsed.fields, rows.fields
                    if rows.letters:
                        roles = _TAGGED_ROLES[block.buffer[parsed.line_at : parsed.line_at + 1] == b"v"]
                    named = rows.roles_of(roles)
                    more = self._more_missing(rows, block, parsed)
                    advice = DROP if rows.drops is None else DROP_ENDS
                    what = explain(
                        block.buffer, *fault, block.end, rows.needed, fields, rows.wide > 0, named, more, advice
                    )
                    raise self.error(self._line + parsed.line_count, what)
                unsigned = bool(seen[1] >= 0)
                yield Lines(parsed.columns, parsed.tags, parsed.lines, self._line, parsed.converted, unsigned)
                if self._progress is not None:
                    self._progress(self._source.size if ended else block.position, self._source.size)
                if ended:
                    return
                self._line += parsed.line_count
                self._buffers.append(block.buffer)
                del parsed
        except _EndlessLine:
            raise self._endless() from None

    def _more_missing(self, rows: Rows, block: Block, parsed: Parsed) -> tuple[int, int]:
        """Return how many rows of the block lack a value behind a faulty one, and the last line of the block."""
        codes = text_kernel.EMPTY_FIELD, text_kernel.FEW_COLUMNS, text_kernel.NOT_INTEGER
        if rows.letters or parsed.code not in codes:
            return 0, 0
        text = block.buffer[parsed.line_at : block.end].rstrip(b"\r\n")
        line = line_of(text, 0, len(text))
        own = (byte for byte in line if rows.kinds[byte] == text_kernel.SEPARATOR)
        separator = chr(rows.separator or next(own, BLANKS))
        columns = np.flatnonzero(rows.places >= 0).tolist()
        words = () if rows.convert is not None and rows.convert.texts else MISSING
        more = count_missing_rows(text, separator, columns, words) - 1
        return more, self._line + parsed.line_count + text.count(b"\n")

    def _require_one_sign(self, parsed: Parsed, seen: npt.NDArray[np.int64]) -> None:
        """Refuse a file with integers below 0 and others from 2^63 on; `seen` are the lines of the first ones."""
        for kind, row in enumerate(parsed.beyond[:2].tolist()):
            if 0 <= row < len(parsed.lines) and seen[kind] < 0:  # the row after them has another fault
                seen[kind] = self._line + parsed.lines[row]
        if (seen >= 0).all():
            first, second = sorted(seen.tolist())
            raise self.error(
                second,
                f"ids below 0 and ids from 2^63 on (see line {first}) do not fit one type of 64 bits; "
                'renumber the vertices, or set graph.ids = "names"',
            )

    def look(self) -> str:
        """Return the next line of the header, which may be in the next block, even if it is blank or a comment."""
        while self._header is not None and self._header.start == self._header.end:
            self._buffers.append(self._header.buffer)
            self._header = self._header_block()
        if self._header is None:
            return ""
        buffer, start, end = self._header.buffer, self._header.start, self._header.end
        stop = buffer.find(b"\n", start, end)
        if fault := NOT_A_LINE.search(buffer, start, end if stop < 0 else stop):
            code = text_kernel.LONE_RETURN if fault[0].startswith(b"\r") else text_kernel.BINARY
            raise self.error(self._line, explain(buffer, code, start, fault.start(), end, needed=0))
        line = buffer[start : end if stop < 0 else stop]
        return line.strip(b" \v\f\r" if self.tab_separates else None).decode("utf-8", "replace")

    def _separate_by_tabs(self, tab_separates: bool) -> None:
        self.tab_separates = tab_separates
        self._kinds = byte_kinds(tab_separates)
        self._passed = re.compile(_PASSED % (_BLANKS_BUT_TAB if tab_separates else _BLANKS))

    def _pass(self) -> None:
        """Consume the next line, which is blank or a comment, and all such lines of the block behind it."""
        assert self._header is not None
        buffer, start, end = self._header.buffer, self._header.start, self._header.end
        passed = self._passed.match(buffer, start, end)
        assert passed is not None, "it may be empty"
        stop = passed.end() if passed.end() > start else end  # only the last line of a file lacks its newline
        passed_lines = buffer[start:stop]
        last = passed_lines.rstrip().rpartition(b"\n")[2].strip(b" \r")
        self.last_comment = last.decode("utf-8", "replace") or self.last_comment
        self._line += max(1, passed_lines.count(b"\n"))
        # The skipped lines are not rows, so the parser counts only comments.
        self.comments += int(parse_block(Block(buffer, start, stop, 0), self.rows()).beyond[2])
        self._move(stop)

    def _move(self, start: int) -> None:
        assert self._header is not None
        self._header = Block(self._header.buffer, start, self._header.end, self._header.position)

    def _header_block(self) -> Block | None:
        try:
            return self._fill()
        except _EndlessLine:
            raise self._endless() from None

    def _endless(self) -> InputError:
        return self.error(
            self._line, f"longer than {self._block_bytes} bytes, this is not a list of edges; check the file"
        )

    def _read(self) -> Block | None:
        """Return what is left of the header's block, then the following ones."""
        if self._header is not None:
            block, self._header = self._header, None
            return block
        return self._fill()

    def _fill(self) -> Block | None:
        """Read whole lines; what follows the last newline waits for the next block."""
        if self._ended:
            return None
        buffer = self._buffers.popleft() if self._buffers else mmap.mmap(-1, self._block_bytes, mmap.MAP_PRIVATE)
        kept = len(self._rest)
        buffer[:kept] = self._rest
        with memoryview(buffer) as view, view[kept:] as capacity:
            end = kept + self._source.fill(capacity)
        self._ended = end < self._block_bytes
        cut = end if self._ended else self._end_of_rows(buffer, end)
        if not self._ended and cut == 0:
            raise _EndlessLine
        self._rest = buffer[cut:end]
        return Block(buffer, 0, cut, self._source.position)

    def _end_of_rows(self, buffer: mmap.mmap, end: int) -> int:
        """Return where a block is cut: behind a newline, if possible one outside of a field in quotes."""
        cut = 0
        if buffer.find(b'"', 0, end) >= 0:
            cut = text_kernel.end_of_rows(np.frombuffer(buffer, np.uint8)[:end], self._kinds)
        return cut or buffer.rfind(b"\n", 0, end) + 1


def whole_number(word: str) -> int | None:
    """Return the number that a word of a header is, 2^63 for all from there on; None where it is no number >= 0."""
    if not (word.isascii() and word.isdigit()):
        return None
    digits = word.lstrip("0")
    return min(int(digits or "0"), 2**63) if len(digits) < 20 else 2**63  # Python refuses thousands of digits


def _divide(memory: int, workers: int, bytes_per_byte: int) -> tuple[int, int]:
    """Return the number of parser threads and the size of a block of text that memory has room for."""
    more = blocks_in_flight(0) + 2  # besides those that are parsed; the caller's last one, and what it makes of it
    workers = max(1, min(workers, memory // (bytes_per_byte * LEAST_BLOCK) - more))
    each = memory // (bytes_per_byte * (workers + more))
    return workers, max(LEAST_BLOCK, min(LARGEST_BLOCK, each))
