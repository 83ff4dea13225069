"""The hash of an array against its definition, in one piece and by threads; XXH64 against published values."""

import hashlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from cases import each_case

from longwall.storage.arrays import array_hash
from longwall.storage.arrays.array_hash import ArrayHash
from longwall.storage.arrays.raw_memory import address_of
from longwall.storage.arrays.xxh64 import hash_segments
from tests.support.xxh64 import xxh64


def naive(array: np.ndarray, segment: int) -> str:
    data = array.tobytes()
    parts = [data[at : at + segment] for at in range(0, len(data), segment)]
    return hashlib.sha256(b"".join(xxh64(part).to_bytes(8, "little") for part in parts)).hexdigest()


def hashed(data: bytes, offset: int = 0) -> int:
    memory = np.frombuffer(bytes(offset) + data + b"more", np.uint8).copy()
    digests = np.full(1, 7, np.uint64)
    hash_segments(address_of(memory) + offset, len(data), 1 << 20, digests)
    return int(digests[0])


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"a", 0xD24EC4F1A98C6E5B),
        (b"abc", 0x44BC2CF5AD770999),
        (b"Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
    ],
)
def test_published_values(data: bytes, expected: int) -> None:
    assert xxh64(data) == hashed(data) == expected


def test_all_lengths_and_places_are_those_of_the_oracle() -> None:
    data = np.random.default_rng(1).bytes(200)
    for length in (*range(1, 101), 127, 128, 200):
        for offset in (0, 1, 5):
            assert hashed(data[:length], offset) == xxh64(data[:length])


def test_a_flipped_bit_is_always_noticed() -> None:
    data = np.random.default_rng(1).integers(0, 256, 1 << 12).astype(np.uint8)
    digests = set()
    for bit in range(0, 8 * len(data), 5):
        changed = data.copy()
        changed[bit // 8] ^= 1 << bit % 8
        digests.add(hashed(changed.tobytes()))
    assert hashed(data.tobytes()) not in digests
    assert len(digests) == len(range(0, 8 * len(data), 5))


@each_case("length", [0, 1, 7, 8, 9, 64, 1000])
@each_case("dtype", ["<u4", "<i8", "u1"])
@each_case("segment", [32, 256])
def test_all_ways_to_hash_are_the_definition(
    monkeypatch: pytest.MonkeyPatch, length: int, dtype: str, segment: int
) -> None:
    monkeypatch.setattr(array_hash, "SEGMENT_BYTES", segment)
    array = np.random.default_rng(length).integers(0, 200, length).astype(dtype)
    expected = f"name {np.dtype(dtype).str} {length} {naive(array, segment)}\n"
    by_threads, whole, piecewise = (ArrayHash(dtype, length) for _ in range(3))
    step = 2 * by_threads.segment
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda at: by_threads.put(at, array[at : at + step]), reversed(range(0, length, step))))
    whole.put(0, array)
    for at in range(0, length, 96):  # whole stripes
        piecewise.update(array[at : at + 96])
    assert [hashed.line("name") for hashed in (by_threads, whole, piecewise)] == [expected] * 3


def test_type_and_length_count_and_byte_order_does_not() -> None:
    def line(dtype: str, length: int) -> str:
        hashed = ArrayHash(dtype, length)
        hashed.put(0, np.ones(length, dtype))
        return hashed.line("a")

    assert line(">i8", 3) == line("<i8", 3)
    assert len({line("<i8", 3), line("<i8", 4), line("<u8", 3)}) == 3


def test_a_segment_has_256_kib() -> None:
    """Content hashes of larger arrays depend on it."""
    array = np.arange(100_000, dtype=np.uint32)
    hashed = ArrayHash(array.dtype, len(array))
    hashed.put(0, array)
    assert hashed.line("a").split()[-1] == naive(array, 1 << 18)
