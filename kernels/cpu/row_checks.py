"""Checks of the rows of a graph: each ascends, and sums of hashes show that they have each edge in both directions."""

import numpy as np
import numpy.typing as npt

from longwall.kernels.cpu.device import CpuDevice
from longwall.kernels.jit.bisect import first_above
from longwall.kernels.jit.compile import compiled

Int64s = npt.NDArray[np.int64]
UInt32s = npt.NDArray[np.uint32]


def check_rows(
    device: CpuDevice,  # noqa: ARG001
    indptr: Int64s,
    split: Int64s,
    indices: UInt32s,
    key: npt.NDArray[np.uint64],
) -> tuple[bool, int]:
    """Check all rows of a graph."""
    hashed = np.zeros(1, np.uint64)
    good = check_some_rows(0, 0, indptr, split, indices, np.zeros(0, np.int32), key, len(split), hashed)
    return bool(good), int(hashed[0])


@compiled("i8, i8, i8[::1], i8[::1], u4[::1], i4[::1], u8[::1], i8, u8[::1]")
def check_some_rows(
    start: int,
    base: int,
    indptr: Int64s,
    split: Int64s,
    block: UInt32s,
    transactions: npt.NDArray[np.int32],
    key: npt.NDArray[np.uint64],
    n: int,
    hashed: npt.NDArray[np.uint64],
) -> bool:
    """Check the rows in a block, which may begin and end inside a row; add up hashes of its edges.

    `indptr` and `split` are those of the rows from `base` on; the graph has `n` rows. An edge is hashed as a word with
    its smaller end in the high half; the row of that end subtracts the hash. Compilers vectorise the loops over a row.
    """
    total = np.uint64(0)
    at, row = 0, base + first_above(indptr, start) - 1
    while at < block.size:
        end = min(indptr[row - base + 1] - start, block.size)
        middle = min(max(split[row - base] - start, at), end)
        smaller, larger = block[at:middle], block[middle:end]
        if (smaller.size and np.int64(smaller[-1]) >= row) or (larger.size and np.int64(larger[0]) <= row):
            return False
        if not _ascends(block[at:end]) or (at < end and np.int64(block[end - 1]) >= n):
            return False
        total += _hash_smaller(np.uint64(row), smaller, key)
        total -= _hash_larger(np.uint64(row), larger, key)
        if transactions.size:
            for arc in range(at, end):
                if transactions[block[arc]] != transactions[row]:
                    return False
        at = end
        row += 1
    hashed[0] = total
    return True


@compiled
def _ascends(row: UInt32s) -> bool:
    falls = np.uint32(0)
    for at in range(1, row.size):
        falls |= np.uint32(row[at - 1] >= row[at])
    return bool(falls == 0)


@compiled
def _hash_smaller(own: np.uint64, others: UInt32s, key: npt.NDArray[np.uint64]) -> np.uint64:
    """Add up the hashes of edges from a vertex to smaller ones."""
    add, first, second, shift = key[0], key[1], key[2], np.uint64(32)
    total = np.uint64(0)
    for at in range(others.size):
        mixed = ((np.uint64(others[at]) << shift | own) + add) * first
        mixed = (mixed ^ (mixed >> shift)) * second
        total += mixed ^ (mixed >> shift)
    return total


@compiled
def _hash_larger(own: np.uint64, others: UInt32s, key: npt.NDArray[np.uint64]) -> np.uint64:
    """Add up the hashes of edges from a vertex to larger ones."""
    add, first, second, shift = key[0], key[1], key[2], np.uint64(32)
    high, total = own << shift, np.uint64(0)
    for at in range(others.size):
        mixed = ((high | np.uint64(others[at])) + add) * first
        mixed = (mixed ^ (mixed >> shift)) * second
        total += mixed ^ (mixed >> shift)
    return total
