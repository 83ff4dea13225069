"""Collect the names of vertices: each once, numbered in the order in which they come first.

Most repetitions are caught by a small table of the names seen last; the others by sorting what is left by its hash.
Neither the sizes of blocks nor those of tables change the numbers.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from longwall.kernels.interface.sorting import KeyLayout
from longwall.kernels.jit.compile import compiled
from longwall.storage.errors import InputError
from longwall.storage.ingest.names.named_positions import NamedPositions
from longwall.storage.ingest.names.texts import HashedTexts, Texts
from longwall.storage.sorting.key_sorter import ScratchSorter
from longwall.storage.sorting.scratch_arrays import Scratch, ScratchArray
from longwall.storage.sorting.sorted_keys import merging_memory
from longwall.storage.system.plain_text import visible

MOST_NAMES = 2**32 - 1
_MOST_SLOTS, _SLOT = 2**20, 16  # of the table of names seen last; bytes
_SEGMENT = 2**20  # bytes that go to scratch arrays at once
_LONGEST = 2**16

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]


class NameTable:
    """The names of an input.

    Parameters
    ----------
    source
        What is read, for messages.
    scratch
        Holds the names, and lends a part of its work space until `finish`.
    memory
        Bytes of the work space.
    """

    def __init__(self, source: str, scratch: Scratch, memory: int) -> None:
        self._source, self._scratch = source, scratch
        self._lent = scratch.lend(memory // 4)
        slots = min(_MOST_SLOTS, max(1, self._lent.size // _SLOT))
        self._seen = np.zeros((2, 1 << (slots.bit_length() - 1)), np.uint64)
        self._sorter = ScratchSorter(scratch, KeyLayout(2, payload=True), memory - memory // 4)
        self._data = _Appended(scratch.array(np.uint8))
        self._lengths = _Appended(scratch.array(np.uint32))
        self._count = 0

    def add(self, names: HashedTexts, place: Callable[[int], str]) -> None:
        """Add names, seen before or not, in the order of the input.

        Parameters
        ----------
        names
            Two for each edge.
        place
            Says where in the input an edge stands, for messages.

        Raises
        ------
        InputError
            If one of them is not UTF-8, or too long.
        """
        rows = np.empty(len(names), np.int64)
        rows = rows[: _pick_unseen(names.ids, names.checks, self._seen, rows)]
        texts = names.take(rows)
        lengths = np.diff(texts.starts)
        if len(rows) and (longest := int(np.argmax(lengths))) >= 0 and lengths[longest] > _LONGEST:
            where = place(int(rows[longest]) // 2)
            raise InputError(
                f"{self._source}, {where}: a name of {lengths[longest]:,} bytes; names have at most {_LONGEST:,}"
            )
        if (damaged := texts.first_damaged()) >= 0:
            where, name = place(int(rows[damaged]) // 2), visible(texts.show(damaged))
            raise InputError(f"{self._source}, {where}: the name {name:.40} is not UTF-8; convert the file to UTF-8")
        self._sorter.add((names.ids[rows].view(np.uint64), names.checks[rows]), np.arange(len(rows)) + self._count)
        self._count += len(rows)
        self._data.append(texts.data)
        self._lengths.append(lengths.astype(np.uint32))

    def finish(self) -> NamedPositions:
        """Number the names.

        Raises
        ------
        InputError
            If there are too many, or two have the same hash.
        """
        self._scratch.take_back(self._lent)
        del self._seen
        scratch, data, lengths = self._scratch, self._data.finish(), self._lengths.finish()
        self._sorter.finish()
        hashes, firsts = scratch.array(np.uint64), scratch.array(np.int64)
        repeated = np.zeros(-(-self._count // 64), np.uint64)
        before = scratch.reserve(2 * repeated.nbytes, "the names of the vertices")
        last: tuple[int, int, int] | None = None
        with self._sorter as sorter:
            for keys, numbers in sorter.blocks(merging_memory(scratch)):
                assert numbers is not None
                ids, checks = keys
                again = np.zeros(len(ids), bool)
                again[1:] = ids[1:] == ids[:-1]
                again[0] = last is not None and last[0] == ids[0]
                different = np.flatnonzero(again[1:] & (checks[1:] != checks[:-1])) + 1
                if last is not None and again[0] and last[1] != checks[0]:
                    raise self._clash(last[2], int(numbers[0]), data, lengths)
                if len(different):
                    at = int(different[0])
                    raise self._clash(int(numbers[at - 1]), int(numbers[at]), data, lengths)
                _mark(numbers[again], repeated)
                hashes.append(ids[~again])
                firsts.append(numbers[~again])
                scratch.settle()
                last = int(ids[-1]), int(checks[-1]), int(numbers[-1])
        if len(hashes) > MOST_NAMES:
            raise InputError(
                f"{self._source}: {len(hashes)} vertices, Longwall holds at most {MOST_NAMES}; split the graph"
            )
        positions = NamedPositions(scratch, hashes, self._numbered(firsts, repeated), data, lengths, repeated)
        before.resize(repeated.nbytes, "the names of the vertices")
        return positions

    def _numbered(self, firsts: ScratchArray, repeated: UInt64s) -> ScratchArray:
        """Return uint32[n]: the number of each name, without those that are repeated."""
        ahead = np.zeros(len(repeated) + 1, np.int64)
        np.cumsum(np.bitwise_count(repeated), out=ahead[1:])
        numbers = self._scratch.array(np.uint32)
        for _, part in firsts.tables(_SEGMENT):
            out = np.empty(len(part), np.uint32)
            _number(part, repeated, ahead, out)
            numbers.append(out)
        firsts.drop()
        return numbers

    def _clash(self, one: int, other: int, data: ScratchArray, lengths: ScratchArray) -> InputError:
        names = [visible(Texts(*_name_at(number, data, lengths)).show(0)) for number in sorted((one, other))]
        return InputError(
            f"{self._source}: Longwall cannot tell the names {names[0]:.40} and {names[1]:.40} apart, their hashes are "
            "the same; rename one of them"
        )


class _Appended:
    """Collects small arrays before they go to a scratch array, whose segments should be few."""

    def __init__(self, array: ScratchArray) -> None:
        self._array = array
        self._waiting: list[npt.NDArray[np.generic]] = []
        self._size = 0

    def append(self, values: npt.NDArray[np.generic]) -> None:
        self._waiting.append(values)
        self._size += values.nbytes
        if self._size >= _SEGMENT:
            self._flush()

    def finish(self) -> ScratchArray:
        self._flush()
        return self._array

    def _flush(self) -> None:
        if self._waiting:
            self._array.append(np.concatenate(self._waiting))
        self._waiting, self._size = [], 0


def _name_at(number: int, data: ScratchArray, lengths: ScratchArray) -> tuple[npt.NDArray[np.uint8], Int64s]:
    """Return one of the names that were collected, as the arrays of `Texts`."""
    begin = 0
    for start, part in lengths.tables(_SEGMENT):
        if number < start + len(part):
            begin += int(part[: number - start].sum(dtype=np.int64))
            length = int(part[number - start])
            return data.read(begin, begin + length), np.array([0, length])
        begin += int(part.sum(dtype=np.int64))
    raise IndexError(number)


@compiled("i8[::1], u8[::1], u8[:,::1], i8[::1]")
def _pick_unseen(ids: Int64s, checks: UInt64s, seen: UInt64s, rows: Int64s) -> int:
    """Write the rows of names that are not in the table of those seen last; return how many."""
    count = 0
    mask = np.int64(seen.shape[1] - 1)
    for row in range(ids.size):
        slot = ids[row] & mask
        word = np.uint64(ids[row])
        if seen[0, slot] != word or seen[1, slot] != checks[row] or (word == 0 and checks[row] == 0):
            seen[0, slot], seen[1, slot] = word, checks[row]
            rows[count] = row
            count += 1
    return count


@compiled("i8[::1], u8[::1]")
def _mark(numbers: Int64s, bits: UInt64s) -> None:
    for at in range(numbers.size):
        bits[numbers[at] >> np.int64(6)] |= np.uint64(1) << np.uint64(numbers[at] & np.int64(63))


@compiled("i8[::1], u8[::1], i8[::1], u4[::1]")
def _number(firsts: Int64s, repeated: UInt64s, ahead: Int64s, out: npt.NDArray[np.uint32]) -> None:
    """Subtract from each number the repeated ones below it."""
    for at in range(firsts.size):
        word, bit = firsts[at] >> np.int64(6), np.uint64(firsts[at] & np.int64(63))
        rest = repeated[word] & ((np.uint64(1) << bit) - np.uint64(1))
        count = 0
        while rest:
            rest &= rest - np.uint64(1)
            count += 1
        out[at] = np.uint32(firsts[at] - ahead[word] - count)
