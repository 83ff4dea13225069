"""The text parser's compiled kernels: lines of integers out of a block of bytes."""

import numpy as np
import numpy.typing as npt

from longwall.kernels.jit.compile import compiled
from longwall.storage.ingest.text.plain_lines import parse_plain_lines

(
    OK,
    FEW_COLUMNS,
    NEGATIVE,
    NOT_INTEGER,
    TOO_LARGE,
    BINARY,
    UNKNOWN_TAG,
    LONE_RETURN,
    BAD_HEADER,
    EMPTY_FIELD,
    OTHER_FIELDS,
    MIXED_SEPARATORS,
    OPEN_QUOTE,
) = range(13)

# Kinds of bytes. All from `NEWLINE` on end a line, rightly or not.
TEXT, BLANK, SEPARATOR, NEWLINE, RETURN, CONTROL = range(6)
OWN_SEPARATOR, BLANKS = 0, 32
"""Separators of a row: the one between its first two fields; blanks."""


def byte_kinds(tab_separates: bool) -> npt.NDArray[np.uint8]:
    """Return uint8[256]: the kind of each byte; a tab is a separator, or a blank as any other."""
    kinds = np.full(256, TEXT, np.uint8)
    kinds[:32] = CONTROL
    kinds[[9, 11, 12, 32]] = BLANK
    kinds[list(b",;|")] = SEPARATOR
    kinds[10], kinds[13] = NEWLINE, RETURN
    if tab_separates:
        kinds[9] = SEPARATOR
    return kinds


@compiled(
    "u1[::1], i8, u1[::1], i8, i8[::1], i8, i8, const(u1[::1]), const(u1[::1]), b1[::1], b1[::1], i8[:,::1], "
    "u1[::1], i4[::1], i8[::1], i8, i8, none",
    "u1[::1], i8, u1[::1], i8, i8[::1], i8, i8, const(u1[::1]), const(u1[::1]), b1[::1], b1[::1], i8[:,::1], "
    "u1[::1], i4[::1], i8[::1], i8, i8, tuple(const(u1[:,::1]), const(i8[::1]))",
)
def parse_lines(
    block: npt.NDArray[np.uint8],
    start: int,
    kinds: npt.NDArray[np.uint8],
    separator: int,
    places: npt.NDArray[np.int64],
    fields: int,
    needed: int,
    letters: npt.NDArray[np.uint8],
    comments: npt.NDArray[np.uint8],
    texts: npt.NDArray[np.bool_],
    wide: npt.NDArray[np.bool_],
    columns: npt.NDArray[np.int64],
    tags: npt.NDArray[np.uint8],
    lines: npt.NDArray[np.int32],
    beyond: npt.NDArray[np.int64],
    row: int,
    line: int,
    words: tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]] | None,
) -> tuple[int, int, int, int, int, int]:
    """Parse whole lines of integers, which may stand in quotes, and texts.

    The fields of a row are separated by blanks, or by one comma, semicolon, bar or tab each: by the separator after the
    first field of the row. One separator may end the row. Fields that are not read may be empty. Comments and blank
    lines are skipped. A line ends with a newline; carriage returns may stand only before it. A field in quotes may have
    newlines, unless blanks separate the fields.

    Parameters
    ----------
    block : uint8[size]
        Whole lines; only the last may lack its newline.
    start
        First byte to look at.
    kinds : uint8[256]
        See `byte_kinds`.
    separator
        The byte that separates fields, or `BLANKS`; `OWN_SEPARATOR`: each row's own, if its first field is wanted.
    places : int64[k]
        The row of `columns` of each of the first fields, -1 for fields that are not read.
    fields
        Fields that each row must have; 0: any number.
    needed
        The number of integers that each line must have; lines that begin with `t` need one, after `#`.
    letters : uint8[k]
        Letters that a line may begin with, before its integers; fields beyond `places` are not read then. If empty,
        lines begin with integers.
    comments : uint8[k]
        Bytes that begin a comment.
    texts : bool[width]
        The columns that are texts, which may stand in quotes; if one is, the separator must be given. With letters, the
        second column is a text in lines that begin with `v`, and the third one in other lines.
    wide : bool[width]
        The columns that hold integers from -2^63 to 2^64 - 1; others hold integers from 0 to 2^63 - 1.
    columns : int64[width, rows]
        Receives the integers (less 2^64 from 2^63 on), or -1 if a line has fewer than `width`. A text is its beginning,
        shifted by 32 bits, plus its length, plus 2^31 if a quote in it is written twice.
    tags : uint8[rows]
        Receives the letter of each row, if `letters` is not empty.
    lines : int32[rows]
        Receives the line of each row, counted from 0 within the block.
    beyond : int64[5]
        Receives the first row with an integer below 0, and the first one with an integer from 2^63 on, where they are
        -1. The kernel adds the numbers of comments, of wide integers that begin with a zero and have further digits,
        and of dropped rows.
    row, line
        Rows and lines of the block ahead of `start`.
    words : (uint8[w, longest], int64[w]) or None
        Words for a missing value, and their lengths: rows are dropped in which a wide column is empty or, without
        quotes, one of these words. None: no rows are dropped.

    Returns
    -------
    rows, lines, code, offset of the faulty line, offset of the faulty token, fields of the last row
    """
    size = block.size
    width = columns.shape[0]
    tagged = letters.size > 0
    limit = np.uint64(0x7FFF_FFFF_FFFF_FFFF)
    at = start
    field = 0
    plain = not tagged and width == 2 and places.size == 2 and places[0] == 0 and places[1] == 1
    plain = plain and (fields == 0 or fields == 2) and not texts[0] and not texts[1]
    while at < size:
        if plain:
            at, row, line = parse_plain_lines(block, at, kinds, separator, columns, lines, row, line)
            field = 2
        line_start = at
        while at < size and kinds[block[at]] == BLANK:
            at += 1
        first = block[at] if at < size else np.uint8(10)
        is_row = kinds[first] < NEWLINE
        for byte in comments:
            if is_row and byte == first:
                is_row = False
                beyond[2] += 1
        wanted, needed_here, found = places.size, needed, 0
        if is_row:
            if tagged:
                token = at
                at += 1
                following = block[at] if at < size else np.uint8(10)
                known = False
                for letter in letters:
                    known |= letter == first
                if not known or following > 32:
                    return row, line, UNKNOWN_TAG, line_start, token, 0
                tags[row] = first
                while at < size and kinds[block[at]] == BLANK:
                    at += 1
                if first == 116:  # "t": "#" stands before its integer
                    wanted = needed_here = 1
                    if at == size or block[at] != 35 or (at + 1 < size and block[at + 1] > 32):
                        return row, line, BAD_HEADER, line_start, token, 0
                    at += 1
                    while at < size and kinds[block[at]] == BLANK:
                        at += 1
            for column in range(width):
                columns[column, row] = -1
            field = inside = 0
            lacks, unlabelled, padded = False, np.int64(-1), beyond[3]
            between = np.int64(separator)
            while at < size and kinds[block[at]] < NEWLINE:
                token = at
                place = places[field] if field < wanted else np.int64(-1)
                if words is not None:  # in a branch of its own, which is not compiled for None
                    lacking, ending = False, int(between)
                    if place >= 0 and wide[place]:
                        lacking, ending = _lacking(block, at, kinds, int(between), words)
                    if lacking:
                        lacks, place, between = True, np.int64(-1), np.int64(ending)
                is_text = place >= 0 and texts[place]
                if tagged and is_text:
                    is_text = (place == 1) == (first == 118)  # "v"
                if place >= 0 and not is_text:
                    value = np.uint64(0)
                    digits = 0
                    quoted = negative = False
                    if block[at] < 48 and not tagged:
                        quoted = block[at] == 34
                        at += quoted
                        negative = at < size and block[at] == 45 and wide[place]  # "-"
                        at += negative
                    begin = at
                    while at < size:
                        digit = block[at] - np.uint8(48)  # wraps round for bytes below "0"
                        if digit > 9:
                            break
                        value = value * np.uint64(10) + np.uint64(digit)
                        if digits > 0 or value > 0:  # 20 digits may wrap round to 0
                            digits += 1
                        if digits > 19 or value > limit:
                            # A number of 20 digits is below 2^64 if it begins with a 1 and did not wrap round.
                            fits = digits == 20 and block[at - 19] == 49 and value >= np.uint64(10**19)
                            small = negative and value > limit + np.uint64(1)
                            if not wide[place] or small or (digits > 19 and not fits):
                                return row, line, TOO_LARGE, line_start, token, field
                        at += 1
                    closed = quoted and at > begin and at < size and block[at] == 34
                    at += closed
                    if quoted > closed or (at < size and kinds[block[at]] == TEXT):
                        code = NOT_INTEGER
                        if at == token and at < size and block[at] == 45:  # "-" before a digit
                            following = block[at + 1] if at + 1 < size else np.uint8(10)
                            if 48 <= following <= 57:
                                code = NEGATIVE
                        return row, line, code, line_start, token, field
                    if at == begin:
                        if words is None or negative:
                            return row, line, NOT_INTEGER if negative else EMPTY_FIELD, line_start, token, field
                        unlabelled = np.int64(field)  # which does not matter if an end is missing, too
                    else:
                        if block[begin] == 48 and at - closed - begin > 1 and wide[place]:
                            beyond[3] += 1
                        columns[place, row] = -np.int64(value) if negative else np.int64(value)
                        if columns[place, row] < 0 and beyond[0 if negative else 1] < 0:
                            beyond[0 if negative else 1] = row
                        found += 1
                elif tagged and place < 0:
                    while at < size and kinds[block[at]] < NEWLINE:
                        at += 1
                    break
                else:
                    # A separator may stand between quotes.
                    quotes = block[at] == 34 and (between != BLANKS or place >= 0)
                    quoted = False
                    while at < size:
                        byte = block[at]
                        if kinds[byte] >= NEWLINE:
                            ends = byte == 10 or (byte == 13 and at + 1 < size and block[at + 1] == 10)
                            if not (quoted and ends and between != BLANKS):
                                break
                            inside += byte == 10
                        elif quotes and byte == 34:
                            quoted = not quoted
                        elif not quoted and (byte == between or (between == BLANKS and kinds[byte] == BLANK)):
                            break
                        at += 1
                    if quoted and (at == size or kinds[block[at]] != CONTROL):
                        return row, line, OPEN_QUOTE, line_start, token, field
                    if at == token and place >= 0:
                        if words is None:
                            return row, line, EMPTY_FIELD, line_start, token, field
                        unlabelled = np.int64(field)
                    elif place >= 0:
                        begin, end = token, at
                        while end > begin and kinds[block[end - 1]] == BLANK:
                            end -= 1
                        doubled = np.int64(0)
                        if quotes and end > begin + 1 and block[end - 1] == 34:
                            begin, end = begin + 1, end - 1
                            for inner in range(begin, end):
                                if block[inner] == 34:
                                    doubled = np.int64(1) << np.int64(31)
                        if begin == end:
                            if words is None:
                                return row, line, EMPTY_FIELD, line_start, token, field
                            unlabelled = np.int64(field)
                        else:
                            columns[place, row] = np.int64(begin) << np.int64(32) | np.int64(end - begin) | doubled
                            found += 1
                field += 1
                ended = at
                while at < size and kinds[block[at]] == BLANK:
                    at += 1
                if at == size or kinds[block[at]] >= NEWLINE:
                    break
                byte = block[at]
                if kinds[byte] != SEPARATOR or (between == BLANKS and ended < at):
                    if between == OWN_SEPARATOR:
                        between = np.int64(BLANKS)
                    if between != BLANKS:
                        return row, line, MIXED_SEPARATORS, line_start, token, field
                    continue
                if between == OWN_SEPARATOR:
                    between = np.int64(byte)
                at += 1
                while at < size and kinds[block[at]] == BLANK:
                    at += 1
                if byte != between and at < size and kinds[block[at]] < NEWLINE:
                    return row, line, MIXED_SEPARATORS, line_start, token, field
        else:
            while at < size and kinds[block[at]] < NEWLINE:
                at += 1
        while at < size and block[at] == 13:
            at += 1
        if at < size and block[at] != 10:
            code = BINARY if kinds[block[at]] == CONTROL else LONE_RETURN
            return row, line, code, line_start, at, field
        if is_row:
            if tagged and first == 116 and found == 0:
                return row, line, BAD_HEADER, line_start, line_start, field
            if field == fields - 1 or (fields == 0 and not tagged and field < needed_here):
                last = at - 1
                while last > line_start and kinds[block[last]] in (BLANK, RETURN):
                    last -= 1
                if block[last] == between:  # the last field is empty
                    if field < wanted and places[field] >= 0:
                        if words is not None:
                            lacks = lacks or wide[places[field]]
                        if not lacks:
                            return row, line, EMPTY_FIELD, line_start, line_start, field
                    field += 1
            if words is not None:
                if lacks and (fields == 0 or field == fields):
                    beyond[3] = padded
                    for sign in range(2):
                        if beyond[sign] == row:
                            beyond[sign] = -1
                    beyond[4] += 1
                    at += 1
                    line += 1 + inside
                    continue
                if unlabelled >= 0:
                    return row, line, EMPTY_FIELD, line_start, line_start, int(unlabelled)
            if found < needed_here:
                code = FEW_COLUMNS if field < needed_here else OTHER_FIELDS
                return row, line, code, line_start, line_start, field
            if fields > 0 and field != fields:
                return row, line, OTHER_FIELDS, line_start, line_start, field
            lines[row] = line
            row += 1
            line += inside
        at += 1
        line += 1
    return row, line, OK, 0, 0, field


@compiled
def _lacking(
    block: npt.NDArray[np.uint8],
    at: int,
    kinds: npt.NDArray[np.uint8],
    between: int,
    words: tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]],
) -> tuple[bool, int]:
    """Return whether the field that begins at a byte lacks its value, and the separator behind it.

    Such a field is empty, two quotes, or one of `words`; `between` is the separator if that is known.
    """
    letters, lengths = words
    value = at
    first = block[at]
    if 48 <= first <= 57:  # most ids begin with a digit, and no word for a missing value does
        return False, between
    if at + 1 < block.size and first == 34 and block[at + 1] == 34:
        value = at + 2
    for number in range(lengths.size):
        if letters[number, 0] != first:
            continue
        stop = at + lengths[number]
        same = stop == block.size or (stop < block.size and kinds[block[stop]] != TEXT)
        for place in range(lengths[number]):
            same = same and block[at + place] == letters[number, place]
        if same:
            value = stop
    end = value
    while end < block.size and kinds[block[end]] == BLANK:
        end += 1
    if end == block.size or kinds[block[end]] >= NEWLINE:
        return value > at, between
    byte = np.int64(block[end])
    if kinds[block[end]] == SEPARATOR and between in (OWN_SEPARATOR, byte):
        return True, int(byte)
    if end > value > at and between in (OWN_SEPARATOR, BLANKS):
        return True, BLANKS
    return False, between


def count_newlines(block: npt.NDArray[np.uint8], start: int) -> int:
    """Count the newlines of a block from byte `start` on: NumPy does it many bytes at a time."""
    return int(np.count_nonzero(block[start:] == 10))


@compiled("u1[::1], u1[::1]")
def end_of_rows(block: npt.NDArray[np.uint8], kinds: npt.NDArray[np.uint8]) -> int:
    """Return the place behind the last newline outside of a field in quotes, 0 if there is none.

    The block begins with a row. A tab may separate fields, whatever `kinds` says.
    """
    found = np.int64(0)
    begins, quotes, quoted = True, False, False
    for at in range(block.size):
        byte = block[at]
        if byte == 34 and (begins or quotes):
            quotes, quoted = True, not quoted
            begins = False
        elif not quoted and (byte == 10 or byte == 9 or kinds[byte] == SEPARATOR):
            begins, quotes = True, False
            if byte == 10:
                found = np.int64(at) + 1
        elif kinds[byte] != BLANK:
            begins = False
    return int(found)
