"""Where the ends of edges stand, for vertices with names: names by number, numbers by hash."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from longwall.kernels.jit.compile import compiled
from longwall.storage.graph.graph_sink import Sink
from longwall.storage.sorting.scratch_arrays import Scratch, ScratchArray
from longwall.storage.system.concurrency import core_count, map_ordered
from longwall.storage.system.plain_text import visible

_SEGMENT = 2**20  # bytes of names that are written at once, and lengths
_PIECE = 2**16  # hashes that a thread looks up at once

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]


class NamedPositions:
    """The vertices of a graph with names: positions are the numbers of names.

    Parameters
    ----------
    scratch
        Work space.
    hashes : ScratchArray
        uint64[n]: of the names, ascending.
    numbers : ScratchArray
        uint32[n]: the number of each of these names.
    data, lengths : ScratchArray
        uint8[size] and uint32[k]: the names in the order of their numbers, with repetitions.
    repeated : uint64[]
        A bit for each of the k names: whether it is a repetition.

    Attributes
    ----------
    size
        Names.
    named, key_base, id_type
        See `edge_collector.Positions`.
    """

    named, key_base, id_type = True, 0, np.dtype(np.int64)

    def __init__(
        self,
        scratch: Scratch,
        hashes: ScratchArray,
        numbers: ScratchArray,
        data: ScratchArray,
        lengths: ScratchArray,
        repeated: UInt64s,
    ) -> None:
        self.size = len(hashes)
        self._scratch, self._hashes, self._numbers = scratch, hashes, numbers
        self._data, self._lengths, self._repeated = data, lengths, repeated
        hashes.gather()
        numbers.gather()

    def ids(self, start: int, stop: int) -> Int64s:
        """Return int64[stop - start]: the ids of consecutive positions, which are their numbers."""
        return np.arange(start, stop)

    def find(self, ids: Int64s) -> Int64s:
        """Return int64[k]: the numbers of the names with int64[k] hashes, -1 where there is none."""
        found = np.full(len(ids), -1, np.int64)
        words = ids.view(np.uint64)
        for start, table in self._hashes.tables(self._scratch.work // 8):
            numbers = self._numbers.read(start, start + len(table))
            pieces = [slice(low, low + _PIECE) for low in range(0, len(ids), _PIECE)]

            def find(part: slice, table: UInt64s = table, numbers: npt.NDArray[np.uint32] = numbers) -> None:
                _find(words[part], table, numbers, found[part])

            for _ in map_ordered(find, pieces, core_count()):
                """Each has written its part."""
        return found

    def show(self, position: int) -> str:
        """Return a name for a message."""
        for start, starts, data in self._names():
            if position < start + len(starts) - 1:
                at = position - start
                return visible(bytes(data[starts[at] : starts[at + 1]]).decode("utf-8", "replace"))
        raise IndexError(position)

    def write_names(self, sink: Sink) -> None:
        """Write the names, in the order of their numbers, to the arrays `name_starts` and `name_bytes`."""
        size = sum(len(data) for _, _, data in self._names())
        sink.begin("name_starts", np.int64, self.size + 1, self._scratch)
        sink.append("name_starts", np.zeros(1, np.int64))
        sink.begin("name_bytes", np.uint8, size, self._scratch)
        done = 0
        for _, starts, data in self._names():
            sink.append("name_starts", starts[1:] + done)
            sink.append("name_bytes", data)
            done += len(data)

    def drop(self) -> None:
        """Free the tables."""
        for array in (self._hashes, self._numbers, self._data, self._lengths):
            array.drop()

    def _names(self) -> Iterator[tuple[int, Int64s, Bytes]]:
        """Yield the names without repetitions, block by block: number of the first, starts, bytes."""
        number = begin = 0
        low = 0
        while low < len(self._lengths):
            lengths = self._lengths.read(low, min(low + _SEGMENT // 16, len(self._lengths)))
            starts = np.zeros(len(lengths) + 1, np.int64)
            np.cumsum(lengths, out=starts[1:])
            starts = starts[: max(2, int(np.searchsorted(starts, _SEGMENT, side="right")))]
            lengths = lengths[: len(starts) - 1]
            kept_starts, kept = np.zeros(len(lengths) + 1, np.int64), np.empty(int(starts[-1]), np.uint8)
            data = self._data.read(begin, begin + int(starts[-1]))
            count = _keep(data, starts, low, self._repeated, kept_starts, kept)
            yield number, kept_starts[: count + 1], kept[: kept_starts[count]]
            number, begin, low = number + count, begin + len(data), low + len(lengths)


@compiled("u1[::1], i8[::1], i8, u8[::1], i8[::1], u1[::1]")
def _keep(data: Bytes, starts: Int64s, first: int, repeated: UInt64s, kept_starts: Int64s, kept: Bytes) -> int:
    """Copy the names that are no repetitions; return how many."""
    count = 0
    to = np.int64(0)
    for row in range(starts.size - 1):
        number = np.int64(first + row)
        if repeated[number >> np.int64(6)] >> np.uint64(number & np.int64(63)) & np.uint64(1):
            continue
        for at in range(starts[row], starts[row + 1]):
            kept[to] = data[at]
            to += 1
        count += 1
        kept_starts[count] = to
    return count


@compiled("u8[::1], u8[::1], u4[::1], i8[::1]")
def _find(words: UInt64s, table: UInt64s, numbers: npt.NDArray[np.uint32], found: Int64s) -> None:
    """Look words up; hashes are spread evenly, so that the search begins close to where each of them stands."""
    size = np.int64(table.size)
    low, high = table[0], table[size - 1]
    scale = float(size - 1) / max(float(high - low), 1.0)
    for row in range(words.size):
        word = words[row]
        if word < low or word > high:
            continue
        at = min(np.int64(float(word - low) * scale), size - 1)
        step = np.int64(64)
        if table[at] <= word:
            left, right = at, at + step
            while right < size and table[right] <= word:
                left, step = right, 2 * step
                right = left + step
            right = min(right, size)
        else:
            left, right = at - step, at
            while left > 0 and table[left] > word:
                right, step = left, 2 * step
                left = right - step
            left = max(left, np.int64(0))
        while right - left > 1:  # table[left] <= word < table[right]
            middle = (left + right) >> 1
            if table[middle] <= word:
                left = middle
            else:
                right = middle
        if table[left] == word:
            found[row] = np.int64(numbers[left])
