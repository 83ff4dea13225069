"""Sorted keys in scratch arrays, which can be read more than once."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from longwall.kernels.interface.sorting import KeyLayout
from longwall.storage.sorting.key_pile import KeyPile
from longwall.storage.sorting.key_sorter import ScratchSorter
from longwall.storage.sorting.scratch_arrays import Scratch, ScratchArray

_KEY, _LABEL = 8, 4  # bytes
_MERGING = 3 / 4  # of the work space, for windows; the rest is for what orders them
_DISTINCT = KeyLayout(reduce="distinct")

Keys = npt.NDArray[np.uint64]
Labels = npt.NDArray[np.int32]


class KeyBlock(NamedTuple):
    """Keys, and a label for each where keys are labelled."""

    keys: Keys
    """uint64[k]"""
    labels: Labels | None
    """int32[k]"""


class SortedKeys:
    """Distinct keys in ascending order, labelled or not.

    Attributes
    ----------
    keys : ScratchArray
        uint64[n]
    labels : ScratchArray, optional
        int32[n]

    Parameters
    ----------
    keys, labels
        See above.
    """

    def __init__(self, keys: ScratchArray, labels: ScratchArray | None = None) -> None:
        self.keys, self.labels = keys, labels

    @classmethod
    def empty(cls, scratch: Scratch, *, labelled: bool) -> "SortedKeys":
        """Make one to which keys will be added."""
        return cls(scratch.array(np.uint64), scratch.array(np.int32) if labelled else None)

    def __len__(self) -> int:
        """How many keys there are."""
        return len(self.keys)

    def append(self, block: KeyBlock) -> None:
        """Add keys behind the others; they must not change until the scratch has settled."""
        self.keys.append(block.keys)
        if self.labels is not None:
            assert block.labels is not None
            self.labels.append(block.labels)

    def blocks(self, memory: int) -> Iterator[KeyBlock]:
        """Yield all keys in blocks of at most `memory` bytes, not to be changed."""
        size = max(1, memory // (_KEY + _LABEL))
        for start in range(0, len(self), size):
            stop = min(start + size, len(self))
            labels = None if self.labels is None else self.labels.read(start, stop)
            yield KeyBlock(self.keys.read(start, stop), labels)

    def drop(self) -> None:
        """Free all memory and files; raises RunError where a file is damaged."""
        self.keys.drop()
        if self.labels is not None:
            self.labels.drop()


def sort_distinct(blocks: Iterable[Keys], scratch: Scratch, memory: int) -> SortedKeys:
    """Sort blocks of uint64[k] keys, in any order, repeated or not.

    Where there is memory for all of them and as much again they are sorted at once, bucket by bucket. Else they are
    sorted chunk by chunk and merged, and `memory` bytes of the work space are for chunks. Blocks must not change.
    """
    with KeyPile(scratch) as pile:
        left = pile.fill(blocks)
        made = pile.sort_distinct() if left is None else None
        return (
            SortedKeys(made)
            if made is not None
            else _merge_distinct(chain(pile.drain(scratch.work // 8), left or ()), scratch, memory)
        )


def _merge_distinct(blocks: Iterable[Keys], scratch: Scratch, memory: int) -> SortedKeys:
    with ScratchSorter(scratch, _DISTINCT, memory) as sorter:
        for keys in blocks:
            sorter.add(keys)
        columns = sorter.take()
        if columns is not None:
            return SortedKeys(*columns)
        made = SortedKeys.empty(scratch, labelled=False)
        for block in sorter.blocks(merging_memory(scratch)):
            made.append(KeyBlock(block.keys, None))
            scratch.settle()
        return made


def merging_memory(scratch: Scratch) -> int:
    """Return how much of the work space windows may take."""
    return int(scratch.work * _MERGING)
