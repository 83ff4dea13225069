"""The pool of blocks that an extension writes to; see ``block_pool.cuh`` and ``gather_blocks.cu``."""

from typing import Any

import numpy as np

from longwall.kernels.cuda.device import WARP, Device
from longwall.kernels.cuda.runtime.constants import BLOCK_VALUES, USED_BITS
from longwall.kernels.interface.engine import ShortOfMemory, WorkspaceTooLarge
from longwall.kernels.interface.search import Extension

Array = Any  # a CuPy array

WARPS_PER_BLOCK = 8  # of threads, as below
BLOCKS_PER_MULTIPROCESSOR = 4  # as in the kernels' launch bounds
LEAST_BLOCKS = 4  # a warp takes one when it begins, and again for rows with long sets
_MOST_BLOCKS = 1 << (32 - USED_BITS)  # a packed position has the other bits for the block's number
_BLOCK_WORDS = BLOCK_VALUES + 1  # with its link to the next one
BLOCK_BYTES = 4 * _BLOCK_WORDS


class BlockPool:
    """Blocks of values, each with a link to the next one, and what copies rows out of them.

    Parameters
    ----------
    device
        The device.
    memory
        The most bytes.
    warps
        Number of warps that fill the device.
    others
        Bytes of the rest of the workspace, for the message where not even the fewest blocks fit.
    """

    def __init__(self, device: Device, memory: int, warps: int, others: int):
        self._device, self._memory, self._warps, self._others = device, memory, warps, others
        self.blocks: Array = None  # the blocks, then their links

    def reserve(self, capacity: int) -> int:
        """Make blocks for a number of values, as far as the memory goes. Return their number."""
        wanted = min(-(-capacity // BLOCK_VALUES) + 2 * self._warps + LEAST_BLOCKS, _MOST_BLOCKS)
        blocks = min(self._memory // BLOCK_BYTES, wanted)
        if blocks < LEAST_BLOCKS:
            raise WorkspaceTooLarge(self._others + LEAST_BLOCKS * BLOCK_BYTES)
        if self.blocks is None or self.blocks.size < blocks * _BLOCK_WORDS:
            self.blocks = None  # freed before it is replaced
            while True:
                try:
                    self.blocks = self._device.xp.empty(blocks * _BLOCK_WORDS, np.uint32)
                    break
                except ShortOfMemory:
                    if blocks == LEAST_BLOCKS:
                        raise
                    blocks = max(blocks // 2, LEAST_BLOCKS)
                    self._memory = blocks * BLOCK_BYTES
        return int(self.blocks.size) // _BLOCK_WORDS

    def keep_rows(self, counts: Array, ends: Array, capacity: int) -> tuple[int, int, int]:
        """Keep rows as long as there is room. Return their number, where they end, and the number of new vertices."""
        kept, threads = self._device.xp.zeros(3, np.uint64), WARPS_PER_BLOCK * WARP
        self._device.launch(
            "search/gather_blocks.cu",
            "keep_rows",
            (counts, ends, ends.size, capacity, kept),
            blocks=max(min(-(-int(ends.size) // threads), self._device.multiprocessors * BLOCKS_PER_MULTIPROCESSOR), 1),
            threads=threads,
        )
        rows, last, found = kept.get().tolist()
        return rows, last, found

    def gather(self, result: Extension, ends: Array, starts: Array, follows: Array) -> Extension:
        """Fill in the new vertices, of which each row's end at `ends`, from the blocks."""
        if result.values.size:
            self._device.launch(
                "search/gather_blocks.cu",
                "gather_blocks",
                (self.blocks, follows, result.counts, ends, starts, ends.size, result.values),
                blocks=max(min(-(-int(ends.size) // WARP), self._warps) // WARPS_PER_BLOCK, 1),
                threads=WARPS_PER_BLOCK * WARP,
            )
        return result
