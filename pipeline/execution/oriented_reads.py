"""How the arcs to smaller neighbours come to a device that does not hold them all.

What a phase reads of them is known before it begins: each list once for its own vertex, and once for each larger
neighbour. So the hottest pages for all of the phase are copied once, and others are read over the host link. Or, where
a kernel can count the arcs to some vertices alone, pairs of blocks are copied: the lists of some owners, and those of
the vertices that their arcs lead to, block after block. Then a list crosses the link once for each block of owners,
however often it is read, and nothing is read over the link out of order. Whichever brings fewer bytes is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from longwall.kernels.interface.workspaces import Block, Targets
from longwall.pipeline.execution.environment import Environment
from longwall.storage.pages.orientation import bytes_per_page, target_blocks

_ARC_BYTES = 4
_LEVEL = 1  # of the heat record
# Of the page cache, that the owners' lists have: all lists before come again for each block of owners.
_OWNERS_SHARE = 2 / 3
_LEAST_PAGES = 12  # of the page cache: ranges begin and end anywhere in a page


class OrientedReads:
    """Prepares the pages for ranges of arcs; see above.

    Parameters
    ----------
    env
        What the process works with; its graph on the engine is oriented and has pages.
    """

    def __init__(self, env: Environment):
        loaded = env.device_graph
        assert loaded is not None
        assert loaded.starts is not None
        assert loaded.graph.pages is not None
        self._graph, self._starts, self._pages = env.graph, loaded.starts, loaded.graph.pages
        self._room, self._left = -1, 0.0

    def prepare(self) -> None:
        """Have the hottest pages of the phase in the page cache."""
        self._pages.prepare_all(_LEVEL, lambda: bytes_per_page(self._graph, self._starts, self._pages.page_arcs))

    def blocks(self, first: int, last: int) -> Iterator[Block]:
        """Prepare the pages for a range of arcs, block by block where that is less to bring.

        Yields
        ------
        (int, int, (int, int) or None)
            A part of the range, and the vertices to which its arcs should be counted next; None: all.
        """
        owners = self._owners(first, last)
        if not owners or self._by_blocks(first, owners) >= self._by_heat(first, last):
            self.prepare()
            yield first, last, None
            return
        starts, backwards = self._starts, False
        for low, high in pairwise(owners):
            arcs = max(first, int(starts[low])), min(last, int(starts[high]))
            own = int(starts[low]), int(starts[high])
            blocks = self._targets(low, high)
            # To and fro, since the last block is there already when the next owners come.
            for targets in reversed(blocks) if backwards else blocks:
                self._pages.hold([own, (int(starts[targets[0]]), int(starts[targets[1]]))])
                yield *arcs, targets
            backwards = not backwards

    def _owners(self, first: int, last: int) -> Sequence[int]:
        """Cut the owners of a range of arcs: where each block of them begins, and where the last one ends.

        There are none where the page cache has no room for blocks.
        """
        room, page = self._pages.cache_arcs, self._pages.page_arcs
        if room < _LEAST_PAGES * page:
            return ()
        low = int(np.searchsorted(self._starts, first, side="right")) - 1
        high = int(np.searchsorted(self._starts, last, side="left"))
        size = room if self._starts[high] <= room - page else int(_OWNERS_SHARE * room)
        blocks = target_blocks(self._starts[low : high + 1], size)
        return [low + begin for begin, _ in blocks] + [high]

    def _targets(self, low: int, high: int) -> list[Targets]:
        """Cut the vertices before `high` into blocks that have room beside the owners `low` to `high` - 1."""
        room, page, starts = self._pages.cache_arcs, self._pages.page_arcs, self._starts
        if starts[high] <= room - page:
            return [(0, high)]
        # Both may begin and end anywhere in a page.
        return target_blocks(starts[: high + 1], max(room - int(starts[high] - starts[low]) - 3 * page, page))

    def _by_blocks(self, first: int, owners: Sequence[int]) -> float:
        """Bytes over the link: the owners' lists once, and for every block of owners all lists before its last one."""
        ends = self._starts[owners[1:]]
        return _ARC_BYTES * float(ends[-1] - first + ends.sum())

    def _by_heat(self, first: int, last: int) -> float:
        """Bytes over the link for an average range of so many arcs, with the hottest pages in the page cache."""
        if (room := self._pages.cache_arcs // self._pages.page_arcs) != self._room:
            spatial = bytes_per_page(self._graph, self._starts, self._pages.page_arcs)
            hottest = np.sort(spatial)[::-1]
            self._room, self._left = room, float(hottest[room:].sum())
        return self._left * (last - first) / self._graph.num_edges
