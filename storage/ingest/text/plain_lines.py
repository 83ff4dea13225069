"""The quick way through lines of two numbers and nothing else, of which most files consist: eight digits at a time."""

import numpy as np
import numpy.typing as npt

from longwall.kernels.jit.compile import compiled
from longwall.storage.arrays.raw_memory import load_word

_LONGEST = 48  # bytes of a line that is looked at here, and of what is loaded behind its numbers
_MOST_DIGITS = 18  # of a number; all of them fit 63 bits
_OWN, _BLANKS, _BLANK, _SEPARATOR, _NEWLINE = 0, 32, 1, 2, 3  # separators and kinds of bytes, as of `text_kernel`
_NEITHER = ord("x")  # begins no plain line and no comment


def parse_plain_block(
    block: npt.NDArray[np.uint8],
    at: int,
    kinds: npt.NDArray[np.uint8],
    separator: int,
    comments: npt.NDArray[np.uint8],
    columns: npt.NDArray[np.int64],
    lines: npt.NDArray[np.int32],
) -> tuple[int, int, int, int]:
    """Parse lines of a block while each is plain, a comment or empty.

    Parameters
    ----------
    block, kinds, separator, comments, columns, lines
        As of `text_kernel.parse_lines`.
    at
        Where a line begins.

    Returns
    -------
    at, row, line, number of comments
        Of the first line that is something else.
    """
    layout = kinds, separator, comments, columns, lines
    at, row, line, found = skim_lines(block, at, *layout, 0, 0)
    rest = block[at:]
    if 0 < rest.size < _LONGEST:  # behind its last line there is not enough to load
        end = rest.size + (rest[-1] != 10)
        padded = np.full(end + _LONGEST, _NEITHER, np.uint8)
        padded[end - 1] = 10
        padded[: rest.size] = rest
        ahead, row, line, more = skim_lines(padded, 0, *layout, row, line)
        at, found = at + min(ahead, rest.size), found + more
    return at, row, line, found


@compiled("u1[::1], i8, u1[::1], i8, const(u1[::1]), i8[:,::1], i4[::1], i8, i8")
def skim_lines(
    block: npt.NDArray[np.uint8],
    at: int,
    kinds: npt.NDArray[np.uint8],
    separator: int,
    comments: npt.NDArray[np.uint8],
    columns: npt.NDArray[np.int64],
    lines: npt.NDArray[np.int32],
    row: int,
    line: int,
) -> tuple[int, int, int, int]:
    """Parse lines as `parse_plain_block` does, `row` rows and `line` lines after the first, but for the last few."""
    found = 0
    while True:
        at, row, line = parse_plain_lines(block, at, kinds, separator, columns, lines, row, line)
        if at == block.size:
            break
        is_comment = False
        for byte in comments:
            is_comment |= block[at] == byte
        end = at
        while is_comment and end < block.size and kinds[block[end]] < _NEWLINE:
            end += 1
        end += end < block.size and block[end] == 13
        if end == block.size or block[end] != 10:
            break
        found += is_comment
        at = end + 1
        line += 1
    return at, row, line, found


@compiled
def parse_plain_lines(
    block: npt.NDArray[np.uint8],
    at: int,
    kinds: npt.NDArray[np.uint8],
    separator: int,
    columns: npt.NDArray[np.int64],
    lines: npt.NDArray[np.int32],
    row: int,
    line: int,
) -> tuple[int, int, int]:
    """Parse lines while each is a number, one separator, another number and the end of the line.

    Parameters
    ----------
    block, kinds, separator, columns, lines
        As of `text_kernel.parse_lines`.
    at
        Where a line begins.
    row, line
        Rows and lines ahead of it.

    Returns
    -------
    at, row, line
        Of the first line that is something else, or near the block's end.
    """
    address = block.ctypes.data
    while at + _LONGEST <= block.size:
        first, end = _number(block, address, at)
        if end < 0:
            break
        kind = kinds[block[end]]
        if separator == _OWN:
            separated = kind in (_BLANK, _SEPARATOR)
        else:
            separated = kind == _BLANK if separator == _BLANKS else block[end] == separator
        second, end = _number(block, address, end + 1)
        if end < 0 or not separated:
            break
        end += block[end] == 13
        if block[end] != 10:
            break
        columns[0, row] = first
        columns[1, row] = second
        lines[row] = line
        at = end + 1
        row += 1
        line += 1
    return at, row, line


@compiled
def _number(block: npt.NDArray[np.uint8], address: int, at: int) -> tuple[int, int]:
    """Return the number that begins at a byte, and its end; -1 if it is too long, begins with 0s, or is no number."""
    word = np.uint64(load_word(address + at)) ^ np.uint64(0x3030303030303030)
    # The top bit of each byte that is no digit; the lowest one is right, whatever carries come from it.
    others = ((word + np.uint64(0x7676767676767676)) | word) & np.uint64(0x8080808080808080)
    zero = word & np.uint64(0xFF) == 0
    if others == 0:
        if zero:
            return 0, -1
        value, digits, end = _eight(word), 8, at + 8
        while True:
            digit = block[end] - np.uint8(48)  # wraps round for bytes below "0"
            if digit > 9:
                break
            value = value * np.uint64(10) + np.uint64(digit)
            digits += 1
            end += 1
            if digits > _MOST_DIGITS:
                return 0, -1
        return int(np.int64(value)), end
    lowest = others & (~others + np.uint64(1))
    # Bytes ahead of the first other one: the bits below its top bit, in ones and then counted by a product.
    ones = ((lowest - np.uint64(1)) >> np.uint64(7)) & np.uint64(0x0101010101010101)
    digits = int(np.int64((ones * np.uint64(0x0101010101010101)) >> np.uint64(56)))
    if digits == 0 or (zero and digits > 1):
        return 0, -1
    return int(np.int64(_eight(word << np.uint64(64 - 8 * digits)))), at + digits


@compiled
def _eight(word: np.uint64) -> np.uint64:
    """Return the number of eight digits, the first one in the lowest byte."""
    pairs = ((word * np.uint64(10 * 2**8 + 1)) >> np.uint64(8)) & np.uint64(0x00FF00FF00FF00FF)
    fours = ((pairs * np.uint64(100 * 2**16 + 1)) >> np.uint64(16)) & np.uint64(0x0000FFFF0000FFFF)
    return (fours * np.uint64(10_000 * 2**32 + 1)) >> np.uint64(32)
