"""The text parser's compiled kernels: lines of integers out of a block of bytes."""

import numpy as np
import numpy.typing as npt

from longwall.storage.lazy_kernel import lazy_kernel

OK, FEW_COLUMNS, NEGATIVE, NOT_INTEGER, TOO_LARGE, BINARY, UNKNOWN_TAG, LONE_RETURN, BAD_HEADER = range(9)


@lazy_kernel
def parse_lines(
    block: npt.NDArray[np.uint8],
    start: int,
    needed: int,
    letters: npt.NDArray[np.uint8],
    columns: npt.NDArray[np.int64],
    tags: npt.NDArray[np.uint8],
    lines: npt.NDArray[np.int32],
) -> tuple[int, int, int, int, int]:
    """Parse whole lines of non-negative integers.

    Tokens are separated by spaces, tabs, commas, semicolons and bars; lines that start with `#` or `%` and
    lines without a token are skipped; tokens beyond the wanted columns are ignored.

    Parameters
    ----------
    block : uint8[size]
        Whole lines; only the last may lack its newline.
    start
        First byte to look at.
    needed
        Integers that each line must have; lines that begin with `t` need one, after `#`.
    letters : uint8[k]
        Letters that a line may begin with, before its integers; none: lines begin with integers.
    columns : int64[width, rows]
        Receives the integers, -1 where a line has fewer than `width`.
    tags : uint8[rows]
        Receives the letter of each row where there are `letters`.
    lines : int32[rows]
        Receives the line of each row, counted from 0 within the block.

    Returns
    -------
    rows, lines, code, offset of the faulty line, offset of the faulty token
    """
    size = block.size
    width = columns.shape[0]
    tagged = letters.size > 0
    limit = np.uint64(0x7FFF_FFFF_FFFF_FFFF)
    at = start
    row = 0
    line = 0
    while at < size:
        line_start = at
        column = -1 if tagged else 0
        wanted = width
        comment = False
        while at < size and block[at] != 10:
            byte = block[at]
            if byte < 32 and not 9 <= byte <= 13:
                return row, line, BINARY, line_start, at
            if byte == 13 and at + 1 < size and block[at + 1] != 10 and block[at + 1] != 13:
                return row, line, LONE_RETURN, line_start, at
            if comment or column == wanted:
                at += 1
                continue
            if byte <= 32 or byte == 44 or byte == 59 or byte == 124:  # white space , ; |
                at += 1
                continue
            token = at
            if (byte == 35 or byte == 37) and column == (-1 if tagged else 0):  # "#" or "%" begins the line
                comment = True
                continue
            if column < 0:
                at += 1
                following = block[at] if at < size else np.uint8(10)
                known = False
                for letter in letters:
                    known |= letter == byte
                if not known or following > 32:
                    return row, line, UNKNOWN_TAG, line_start, token
                tags[row] = byte
                column = 0
                if byte == 116:  # "t": "#" stands before its integer
                    wanted = 1
                    while at < size and (block[at] == 32 or block[at] == 9):
                        at += 1
                    if at == size or block[at] != 35 or (at + 1 < size and block[at + 1] > 32):
                        return row, line, BAD_HEADER, line_start, token
                    at += 1
                continue
            value = np.uint64(0)
            digits = 0
            while at < size:
                digit = block[at] - np.uint8(48)  # wraps round for bytes below "0"
                if digit > 9:
                    break
                value = value * np.uint64(10) + np.uint64(digit)
                if digits > 0 or value > 0:  # 20 digits may wrap round to 0
                    digits += 1
                if digits > 19 or value > limit:
                    return row, line, TOO_LARGE, line_start, token
                at += 1
            if at < size:
                byte = block[at]
                if not (byte <= 32 or byte == 44 or byte == 59 or byte == 124):
                    code = NOT_INTEGER
                    if at == token and byte == 45:  # "-" before a digit
                        following = block[at + 1] if at + 1 < size else np.uint8(10)
                        if 48 <= following <= 57:
                            code = NEGATIVE
                    return row, line, code, line_start, token
            columns[column, row] = np.int64(value)
            column += 1
        if column > 0 or (tagged and column == 0):
            header = tagged and tags[row] == 116
            if header and column == 0:
                return row, line, BAD_HEADER, line_start, line_start
            if column < needed and not header:
                return row, line, FEW_COLUMNS, line_start, line_start
            for rest in range(column, width):
                columns[rest, row] = -1
            lines[row] = line
            row += 1
        at += 1
        line += 1
    return row, line, OK, 0, 0


@lazy_kernel
def count_newlines(block: npt.NDArray[np.uint8], start: int) -> int:
    """Count the newlines of a block from byte `start` on."""
    count = 0
    for at in range(start, block.size):
        count += block[at] == 10
    return count
