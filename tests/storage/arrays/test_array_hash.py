"""The hash of an array against its definition, in one piece and by threads."""

import hashlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from longwall.storage.arrays import array_hash
from longwall.storage.arrays.array_hash import ArrayHash


def naive(array: np.ndarray, segment: int) -> str:
    data = array.tobytes()
    parts = [data[at : at + segment] for at in range(0, len(data), segment)]
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 64, 1000])
@pytest.mark.parametrize("dtype", ["<u4", "<i8", "u1"])
def test_all_ways_to_hash_are_the_definition(monkeypatch: pytest.MonkeyPatch, length: int, dtype: str) -> None:
    monkeypatch.setattr(array_hash, "SEGMENT_BYTES", 32)
    array = np.random.default_rng(length).integers(0, 200, length).astype(dtype)
    expected = f"name {np.dtype(dtype).str} {length} {naive(array, 32)}\n"
    by_threads, whole, piecewise = (ArrayHash(dtype, length) for _ in range(3))
    step = 2 * by_threads.segment
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda at: by_threads.put(at, array[at : at + step]), reversed(range(0, length, step))))
    whole.put(0, array)
    for at in range(0, length, 5):
        piecewise.update(array[at : at + 5])
    assert [hashed.line("name") for hashed in (by_threads, whole, piecewise)] == [expected] * 3


def test_type_and_length_count_and_byte_order_does_not() -> None:
    def line(dtype: str, length: int) -> str:
        hashed = ArrayHash(dtype, length)
        hashed.put(0, np.ones(length, dtype))
        return hashed.line("a")

    assert line(">i8", 3) == line("<i8", 3)
    assert len({line("<i8", 3), line("<i8", 4), line("<u8", 3)}) == 3


def test_a_segment_is_a_mebibyte() -> None:
    """Content hashes of larger arrays depend on it."""
    array = np.arange(300_000, dtype=np.uint32)
    hashed = ArrayHash(array.dtype, len(array))
    hashed.put(0, array)
    assert hashed.line("a").split()[-1] == naive(array, 1 << 20)
