"""Keys that wait in memory: sorted at once where there is room, handed on where there is not."""

from pathlib import Path

import numpy as np
import pytest
from budgets import make_budgets
from cases import each_case

from longwall.storage.memory.spill_folder import SpillFolder
from longwall.storage.sorting import key_pile
from longwall.storage.sorting.key_pile import KeyPile
from longwall.storage.sorting.scratch_arrays import Scratch
from longwall.storage.sorting.sorted_keys import sort_distinct

RANDOM = np.random.default_rng(3)
KEYS = {
    "random": RANDOM.integers(0, 2**64, 300_000, dtype=np.uint64),
    "few": RANDOM.integers(0, 50, 300_000, dtype=np.uint64),
    "one vertex": RANDOM.integers(0, 2**20, 300_000, dtype=np.uint64) | np.uint64(7 << 32),
    "one that is far": np.append(RANDOM.integers(0, 2**20, 300_000, dtype=np.uint64), np.uint64(2**64 - 1)),
    "the same": np.full(200_000, 5, np.uint64),
}


@pytest.mark.slow
@each_case("kind", KEYS)
@each_case("cut", [1_000, 120_000])
def test_what_fits_is_sorted_at_once(tmp_path: Path, kind: str, cut: int) -> None:
    keys = KEYS[kind]
    budgets = make_budgets(1 << 26)
    with SpillFolder(tmp_path) as spill, Scratch(budgets.at(spill), most_work=1 << 24) as scratch:
        with KeyPile(scratch) as pile:
            assert pile.fill(keys[at : at + cut] for at in range(0, len(keys), cut)) is None
            made = pile.sort_distinct()
            assert made is not None
            np.testing.assert_array_equal(made.read(0, len(made)), np.unique(keys))
        assert budgets.host.used == scratch.work + made.held
        made.drop()
    assert budgets.host.used == 0


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("capacity", [2.5, 1.5, 0.5])
def test_what_does_not_fit_is_merged(tmp_path: Path, capacity: float) -> None:
    """Beside the work space there is room for the keys once, for a part of them, or for their first copy only."""
    keys = KEYS["random"]
    work = 1 << 20
    budgets = make_budgets(work + int(capacity * keys.nbytes))
    with SpillFolder(tmp_path) as spill, Scratch(budgets.at(spill), most_work=work) as scratch:
        made = sort_distinct((keys[at : at + 30_000] for at in range(0, len(keys), 30_000)), scratch, work // 2)
        np.testing.assert_array_equal(made.keys.read(0, len(made)), np.unique(keys))
    assert budgets.host.peak <= budgets.host.limit


def test_keys_of_a_bucket_without_room_are_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_pile, "_MOST_BUCKETS", 1)
    keys, work = KEYS["random"], 1 << 20
    budgets = make_budgets(1 << 26)
    with (
        SpillFolder(tmp_path) as spill,
        Scratch(budgets.at(spill), most_work=work) as scratch,
        KeyPile(scratch) as pile,
    ):
        assert pile.fill([keys]) is None
        assert pile.sort_distinct() is None
        np.testing.assert_array_equal(np.sort(np.concatenate(list(pile.drain(1 << 20)))), np.sort(keys))


def test_a_pile_that_others_push_to_the_disk_is_merged(tmp_path: Path) -> None:
    keys = KEYS["random"]
    work, budgets = 1 << 20, make_budgets(1 << 26)
    with (
        SpillFolder(tmp_path) as spill,
        Scratch(budgets.at(spill), most_work=work) as scratch,
        KeyPile(scratch) as pile,
    ):
        assert pile.fill([keys[:100_000], keys[100_000:]]) is None
        scratch.make_room(scratch.host.free + 1)
        assert pile.sort_distinct() is None
        np.testing.assert_array_equal(np.concatenate(list(pile.drain(50_000))), keys)
