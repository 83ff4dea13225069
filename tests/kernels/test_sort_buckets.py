"""Words brought to buckets and sorted there, against NumPy's sort; rows of arcs against lists."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longwall.kernels.cpu.sorting.buckets import (
    COLUMN_BITS,
    COLUMN_DIGITS,
    DIGIT_BITS,
    DIGITS,
    bin_starts,
    scatter_arcs,
    scatter_piece,
    sort_distinct_buckets,
    sort_row_buckets,
)

Words = npt.NDArray[np.uint64]


def scattered(pieces: Sequence[Words], low: int, shift: int, buckets: int) -> tuple[Words, npt.NDArray[np.int64]]:
    size, start = sum(map(len, pieces)), 0
    area, places = np.empty(size, np.uint64), np.empty((len(pieces), buckets + 1), np.int64)
    for number, piece in enumerate(pieces):
        scatter_piece(
            piece, np.uint64(low), np.uint64(shift), np.arange(buckets, dtype=np.uint16), start, area, places[number]
        )
        start += len(piece)
    return area, places


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 60) | st.integers(2**36, 2**36 + 9) | st.integers(0, 2**40 - 1), max_size=60),
    st.integers(1, 9),
)
def test_words_of_buckets_come_in_order_and_once(keys: list[int], cut: int) -> None:
    words = np.array(keys, np.uint64)
    pieces = [words[at : at + cut] for at in range(0, len(words), cut)]
    area, places = scattered(pieces, 0, 37, 8)
    np.testing.assert_array_equal(np.sort(area), np.sort(words))
    for number, piece in enumerate(pieces):
        for bucket in range(8):
            found = area[places[number, bucket] : places[number, bucket + 1]].tolist()
            assert found == [word for word in piece.tolist() if word >> 37 == bucket]
    space = [np.empty(len(words), np.uint64) for _ in range(2)]
    counts, out = np.empty((DIGITS, 1 << DIGIT_BITS), np.int64), np.empty(len(words), np.uint64)
    found = []
    for first, last in ((0, 3), (3, 8)):
        count = sort_distinct_buckets(area, places, first, last, *space, counts, out)
        found += out[:count].tolist()
    assert found == sorted(set(keys))


@pytest.mark.parametrize("ranks", [1, 2, 1024, 2047, 2048, 2049, 5000, 70_000])
def test_rows_of_arcs_are_sorted(ranks: int) -> None:
    generator = np.random.default_rng(ranks)
    base, pieces = 1000, 3
    ends = generator.permutation(ranks).astype(np.uint32)
    starts = bin_starts(ranks)
    assert starts.tolist() == sorted(set(starts.tolist()))
    assert starts[0] == 0
    assert starts[-1] < ranks
    bucket_of = (np.arange(len(starts)) * 5 // len(starts)).astype(np.uint16)
    cuts = [int(starts[bucket_of == bucket][0]) if (bucket_of == bucket).any() else None for bucket in range(5)]
    present = [cut for cut in cuts if cut is not None]
    bucket_of = np.unique(bucket_of, return_inverse=True)[1].astype(np.uint16)
    pairs = generator.integers(0, ranks, (400, 2)).astype(np.uint64) + np.uint64(base)
    edges = pairs[:, 0] << np.uint64(32) | pairs[:, 1]
    area, places = np.empty(2 * len(edges), np.uint64), np.empty((pieces, len(present) + 1), np.int64)
    expected: list[list[int]] = [[] for _ in range(ranks)]
    for u, v in (pairs - np.uint64(base)).astype(np.int64).tolist():
        expected[ends[u]].append(int(ends[v]))
        expected[ends[v]].append(int(ends[u]))
    bounds = [len(edges) * piece // pieces for piece in range(pieces + 1)]
    for piece in range(pieces):
        part = edges[bounds[piece] : bounds[piece + 1]]
        both = np.empty(2 * len(part), np.uint64)
        scatter_arcs(part, np.uint64(base), ends, bucket_of, both, 2 * bounds[piece], area, places[piece])
    found: list[list[int]] = []
    below: list[int] = []
    for bucket, (low, high) in enumerate(zip(present, [*present[1:], ranks], strict=True)):
        lengths = [len(row) for row in expected[low:high]]
        cursors = np.cumsum([0, *lengths])
        out, smaller = np.empty(sum(lengths), np.uint32), np.empty(high - low, np.int64)
        space = [np.empty(len(area), np.uint64) for _ in range(2)]
        counts = np.empty((COLUMN_DIGITS, 1 << COLUMN_BITS), np.int64)
        bits = (ranks - 1).bit_length()
        where = area, places, bucket, bucket + 1, bits, low, cursors[:-1].copy()
        sort_row_buckets(*where, *space, counts, out, smaller)
        found += [part.tolist() for part in np.split(out, cursors[1:-1])]
        below += smaller.tolist()
    assert found == [sorted(row) for row in expected]
    assert below == [sum(column < row for column in columns) for row, columns in enumerate(expected)]
