"""Lists of members become lists of ascending ids, as Python sorts them."""

from __future__ import annotations

import numpy as np
import pytest

from longwall.kernels.host.sorted_lists import list_room, sort_lists

_EXTREMES = {
    np.int64: [-(2**63), -1, 0, 1, 2**63 - 1],
    np.uint64: [0, 1, 2**63 - 1, 2**63, 2**64 - 1],
}


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
@pytest.mark.parametrize("longest", [1, 2, 5, 41, 64, 65, 70, 3000])
def test_lists_are_sorted_each_by_itself(dtype: type, longest: int) -> None:
    draw = np.random.default_rng(longest)
    limits = np.iinfo(dtype)
    ids = draw.integers(limits.min, limits.max, 5000, dtype=dtype)
    ids[: len(_EXTREMES[dtype])] = _EXTREMES[dtype]
    assert len(np.unique(ids)) == len(ids)
    ids.flags.writeable = False  # as those of a graph in a file
    sizes = draw.integers(1, longest + 1, 40)
    lists = [draw.permutation(len(ids))[:size].astype(np.uint32) for size in sizes]
    lists += [np.arange(longest, dtype=np.uint32), np.arange(longest, dtype=np.uint32)[::-1]]
    offsets = np.cumsum([0, *map(len, lists)])
    found = np.empty(offsets[-1], dtype)
    sort_lists(offsets, np.concatenate(lists), ids, found, list_room(dtype))
    for members, begin, end in zip(lists, offsets, offsets[1:], strict=False):
        assert found[begin:end].tolist() == sorted(ids[members].tolist())


def test_no_lists_are_no_work() -> None:
    none = np.empty(0, np.int64)
    sort_lists(np.zeros(1, np.int64), none.astype(np.uint32), none, none, list_room(np.int64))
