"""How the arcs to smaller neighbours come to a device that does not hold them all.

What a phase reads of them is known before it begins: each list once for its own vertex, and once for each larger
neighbour. So the hottest pages for all of the phase are copied once, and others are read over the host link. Or, where
a kernel can count the arcs to some vertices alone, block after block of the lists is copied, and all roots of a range
are joined with each: then a list crosses the link once for a range, however often it is read. Whichever brings fewer
bytes is taken.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from longwall.kernels.interface.workspaces import Targets
from longwall.pipeline.execution.environment import Environment
from longwall.storage.pages.orientation import bytes_per_page, target_blocks

_ARC_BYTES = 4
_LEVEL = 1  # of the heat record


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

    def blocks(self, first: int, last: int) -> Iterator[Targets | None]:
        """Prepare the pages for a range of arcs, block by block where that is less to bring.

        Yields
        ------
        (int, int) or None
            The vertices to which arcs should be counted next; None: all.
        """
        room = self._pages.cache_arcs
        beyond = int(np.searchsorted(self._starts, last, side="left"))  # of the owners of these arcs
        if room <= self._pages.page_arcs or self._by_blocks(room, first, last, beyond) >= self._by_heat(first, last):
            self.prepare()
            yield None
            return
        # A page less: a block may begin anywhere in its first one.
        for low, high in target_blocks(self._starts[: beyond + 1], room - self._pages.page_arcs):
            self._pages.hold(int(self._starts[low]), int(self._starts[high]))
            yield low, high

    def _by_blocks(self, room: int, first: int, last: int, beyond: int) -> float:
        """Bytes over the link: all lists before the last owner's, and the owners' lists again for every block."""
        lists = int(self._starts[beyond])
        return _ARC_BYTES * (lists + (last - first) * -(-lists // room))

    def _by_heat(self, first: int, last: int) -> float:
        """Bytes over the link for an average range of so many arcs, with the hottest pages in the page cache."""
        if (room := self._pages.cache_arcs // self._pages.page_arcs) != self._room:
            spatial = bytes_per_page(self._graph, self._starts, self._pages.page_arcs)
            hottest = np.sort(spatial)[::-1]
            self._room, self._left = room, float(hottest[room:].sum())
        return self._left * (last - first) / self._graph.num_edges
