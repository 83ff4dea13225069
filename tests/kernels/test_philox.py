"""Random words against NumPy's Philox, and edges of R-MAT against a descent of one edge at a time."""

import numpy as np
import pytest
from cases import each_case

from longwall.kernels.host.philox import draw_edges, fill_words, scatter_words


def words_of(seed: int, stream: int, start: int, size: int) -> np.ndarray:
    return np.random.Philox(key=np.array([seed, stream], np.uint64)).random_raw(start + size)[start:]


@each_case("seed", [0, 1, 2**64 - 1])
@each_case("start", [0, 1, 2, 3, 4, 1003])
@each_case("size", [0, 1, 3, 4, 5, 6, 100, 1001])
def test_words_are_those_of_numpy(seed: int, start: int, size: int) -> None:
    found = np.empty(size, np.uint64)
    stream = 1 << 56 | 12345
    fill_words(np.uint64(seed), np.uint64(stream), np.uint64(start), found)
    np.testing.assert_array_equal(found, words_of(seed, stream, start, size))


@each_case("scale", [1, 2, 5, 8])
@each_case("chances", [(0.57, 0.19, 0.19), (0, 1, 0), (1, 0, 0), (0.25, 0.25, 0.25), (0, 0, 0)])
def test_edges_descend_level_by_level(scale: int, chances: tuple[float, float, float]) -> None:
    length, start, size = 100, 7, 50
    limits = [min(round(p * 2**32), 2**32) for p in np.cumsum(chances).tolist()]
    permutation = np.random.default_rng(scale).permutation(1 << scale).astype(np.uint32)
    src, dst = np.zeros(size, np.int64), np.zeros(size, np.int64)
    key = np.uint64(9), np.uint64(3)
    draw_edges(*key, length, start, scale, np.array(limits, np.uint64), permutation, np.empty(16, np.uint64), src, dst)
    words = words_of(9, 3, 0, length * (scale + 1)).tolist()
    for edge in range(size):
        u = v = 0
        for level in range(scale):
            draw = words[level // 2 * length + start + edge] >> 32 * (level % 2) & 0xFFFF_FFFF
            quadrant = sum(draw >= limit for limit in limits)
            u, v = 2 * u + quadrant // 2, 2 * v + quadrant % 2
        assert (src[edge], dst[edge]) == (permutation[u], permutation[v])


@pytest.mark.parametrize("bits", [0, 1, 5])
def test_words_are_brought_together_by_their_leading_bits(bits: int) -> None:
    words = words_of(1, 1, 0, 500)
    starts, scattered, places = np.zeros((1 << bits) + 1, np.int64), np.empty_like(words), np.empty(500, np.uint32)
    scatter_words(words, bits, starts, scattered, places)
    leading = [int(word) >> (64 - bits) for word in words]
    order = sorted(range(500), key=leading.__getitem__)
    assert places.tolist() == order
    assert scattered.tolist() == words[order].tolist()
    assert starts.tolist() == [sum(value < bucket for value in leading) for bucket in range((1 << bits) + 1)]
