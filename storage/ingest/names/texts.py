"""Many texts in two arrays, as Arrow lays them out; and their hashes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from longwall.kernels.jit.compile import compiled

Bytes = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]

# The key of the hash, which need not be secret: digits of pi.
_KEYS = 0x243F6A8885A308D3, 0x13198A2E03707344
_SPAN_BITS = 32
DOUBLED = 1 << 31
"""Added to the length in a span whose text has doubled quotes."""


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts in UTF-8."""

    data: Bytes
    """uint8[size]: one behind the other."""
    starts: Int64s
    """int64[k + 1]: text i is `data[starts[i]:starts[i + 1]]`."""

    def __len__(self) -> int:
        """How many texts there are."""
        return len(self.starts) - 1

    @property
    def nbytes(self) -> int:
        """Bytes of both arrays."""
        return self.data.nbytes + self.starts.nbytes

    def to_arrow(self) -> Any:
        """Return a pyarrow.LargeStringArray of the same memory."""
        import pyarrow as pa

        buffers = [None, pa.py_buffer(self.starts), pa.py_buffer(self.data)]
        return pa.Array.from_buffers(pa.large_string(), len(self), buffers)

    @classmethod
    def of_arrow(cls, column: Any) -> "Texts":
        """Return the texts of a pyarrow array of large strings without nulls."""
        _, starts, data = column.buffers()
        offsets = np.frombuffer(starts, np.int64)[column.offset : column.offset + len(column) + 1]
        low, high = int(offsets[0]), int(offsets[-1])
        whole = np.frombuffer(data, np.uint8)[low:high] if high > low else np.empty(0, np.uint8)
        return cls(whole, offsets - low)

    def take(self, rows: Int64s) -> "Texts":
        """Return some of the texts, in their order."""
        lengths = np.diff(self.starts)[rows]
        starts = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(lengths, out=starts[1:])
        data = np.empty(int(starts[-1]), np.uint8)
        _copy(self.data, self.starts[rows], lengths, starts, data)
        return Texts(data, starts)

    def first_damaged(self) -> int:
        """Return the first text that is not UTF-8, -1 if there is none."""
        import pyarrow as pa

        try:
            self.to_arrow().validate(full=True)
        except pa.ArrowInvalid:
            low, high = 0, len(self)
            while high - low > 1:  # one of [low, high) is damaged, and none before
                middle = (low + high) // 2
                low, high = (low, middle) if self._is_damaged(low, middle) else (middle, high)
            return low
        return -1

    def _is_damaged(self, low: int, high: int) -> bool:
        try:
            self.data[self.starts[low] : self.starts[high]].tobytes().decode()
        except UnicodeDecodeError:
            return True
        return False

    def show(self, row: int) -> str:
        """Return one text for a message."""
        return self.data[self.starts[row] : self.starts[row + 1]].tobytes().decode("utf-8", "replace")


@dataclass(frozen=True, eq=False)
class HashedTexts:
    """Rows of texts, and 127 bits of a hash of each: two texts with the same bits are taken for the same."""

    texts: Texts
    ids: Int64s
    """int64[k]: 63 bits."""
    checks: UInt64s
    """uint64[k]: 64 more."""
    index: Int64s | None = None
    """int64[k]: which of the texts each row has; row i has text i if it is None."""

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self.ids)

    def take(self, rows: Int64s) -> Texts:
        """Return the texts of some rows."""
        return self.texts.take(rows if self.index is None else self.index[rows])

    def show(self, row: int) -> str:
        """Return the text of a row for a message."""
        return self.texts.show(row if self.index is None else int(self.index[row]))

    def spread(self, index: Int64s) -> "HashedTexts":
        """Return rows that have the texts of these rows, by number."""
        return HashedTexts(self.texts, self.ids[index], self.checks[index], index)


def hash_texts(texts: Texts) -> HashedTexts:
    """Hash texts by SipHash-2-4 with 128 bits (Aumasson and Bernstein, 2012)."""
    ids, checks = np.empty(len(texts), np.int64), np.empty(len(texts), np.uint64)
    key0, key1 = np.uint64(_KEYS[0]), np.uint64(_KEYS[1])
    _sip_hash(texts.data, texts.starts[:-1], texts.starts[1:], key0, key1, ids, checks)
    return HashedTexts(texts, ids, checks)


def hash_spans(data: Bytes, begins: Int64s, ends: Int64s, key: UInt64s) -> UInt64s:
    """Return 64 bits of a hash of each text from one of `begins` to one of `ends`; `key` has two words."""
    ids, checks = np.empty(len(begins), np.int64), np.empty(len(begins), np.uint64)
    _sip_hash(data, begins, ends, key[0], key[1], ids, checks)
    return checks


def gather_spans(block: Bytes, spans: Int64s) -> Texts:
    """Copy texts out of a block.

    Parameters
    ----------
    block : uint8[size]
        What they are in.
    spans : int64[k]
        Where each begins, shifted by 32 bits, plus its length; plus `DOUBLED` where a quote inside is written twice.
    """
    starts = np.zeros(len(spans) + 1, np.int64)
    np.cumsum(spans & (DOUBLED - 1), out=starts[1:])
    data = np.empty(int(starts[-1]), np.uint8)
    size = _copy_spans(block, spans, starts, data)
    return Texts(data[:size], starts)


@compiled("u1[::1], i8[::1], i8[::1], i8[::1], u1[::1]")
def _copy(source: Bytes, begins: Int64s, lengths: Int64s, starts: Int64s, data: Bytes) -> None:
    for row in range(begins.size):
        begin, to = begins[row], starts[row]
        for at in range(lengths[row]):
            data[to + at] = source[begin + at]


@compiled("u1[::1], i8[::1], i8[::1], u1[::1]")
def _copy_spans(block: Bytes, spans: Int64s, starts: Int64s, data: Bytes) -> int:
    """Copy; where quotes are doubled the texts become shorter, and `starts` change."""
    to = np.int64(0)
    for row in range(spans.size):
        begin, length = spans[row] >> np.int64(32), spans[row] & np.int64(0x7FFF_FFFF)
        doubled = spans[row] & np.int64(0x8000_0000) != 0
        starts[row] = to
        at = begin
        while at < begin + length:
            data[to] = block[at]
            to += 1
            at += 2 if doubled and block[at] == 34 and at + 1 < begin + length and block[at + 1] == 34 else 1
    starts[spans.size] = to
    return int(to)


@compiled("const(u1[::1]), i8[::1], i8[::1], u8, u8, i8[::1], u8[::1]")
def _sip_hash(
    data: Bytes, begins: Int64s, ends: Int64s, key0: np.uint64, key1: np.uint64, ids: Int64s, checks: UInt64s
) -> None:
    for row in range(ids.size):
        begin, end = begins[row], ends[row]
        v0 = np.uint64(0x736F6D6570736575) ^ key0
        v1 = np.uint64(0x646F72616E646F6D) ^ key1 ^ np.uint64(0xEE)
        v2 = np.uint64(0x6C7967656E657261) ^ key0
        v3 = np.uint64(0x7465646279746573) ^ key1
        words = (end - begin) >> np.int64(3)
        first = np.uint64(0)
        # The words of the text, the last of them with its length; then what ends the first half, and the second.
        for step in range(words + 3):
            word = np.uint64(0)
            if step < words:
                at = begin + 8 * step
                for byte in range(8):
                    word |= np.uint64(data[at + byte]) << np.uint64(8 * byte)
            elif step == words:
                word = np.uint64((end - begin) & 0xFF) << np.uint64(56)
                at = begin + 8 * words
                for byte in range(end - at):
                    word |= np.uint64(data[at + byte]) << np.uint64(8 * byte)
            rounds = 2
            if step == words + 1:
                v2 ^= np.uint64(0xEE)
                rounds = 4
            elif step == words + 2:
                v1 ^= np.uint64(0xDD)
                rounds = 4
            else:
                v3 ^= word
            for _ in range(rounds):
                v0 += v1
                v1 = (v1 << np.uint64(13)) | (v1 >> np.uint64(51))
                v1 ^= v0
                v0 = (v0 << np.uint64(32)) | (v0 >> np.uint64(32))
                v2 += v3
                v3 = (v3 << np.uint64(16)) | (v3 >> np.uint64(48))
                v3 ^= v2
                v0 += v3
                v3 = (v3 << np.uint64(21)) | (v3 >> np.uint64(43))
                v3 ^= v0
                v2 += v1
                v1 = (v1 << np.uint64(17)) | (v1 >> np.uint64(47))
                v1 ^= v2
                v2 = (v2 << np.uint64(32)) | (v2 >> np.uint64(32))
            if step <= words:
                v0 ^= word
            elif step == words + 1:
                first = v0 ^ v1 ^ v2 ^ v3
        ids[row] = np.int64(first >> np.uint64(1))
        checks[row] = v0 ^ v1 ^ v2 ^ v3
