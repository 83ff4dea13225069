"""How the arcs to smaller neighbours come to a device that does not hold them all.

Where a kernel can read the lists of some vertices alone, pairs of blocks are copied: the lists of some owners, and
those of the vertices that their arcs lead to, block after block. Then a list crosses the link once for each block of
owners, however often it is read, and nothing is read over the link out of order. For other kernels, and where the page
cache has no room for blocks, the hottest pages for all of a phase are copied once: what it reads is known before it
begins, each list once for its own vertex, and once for each larger neighbour.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from longwall.kernels.interface.kcliques import TabledCliqueCounter, TablePiece, table_words
from longwall.kernels.interface.local_counts import ArcBlock, ArcDiamondCounter, ArcPiece, Corner
from longwall.kernels.interface.workspaces import Block, Targets
from longwall.kernels.jit.compile import compiled
from longwall.pipeline.execution.environment import Environment
from longwall.storage.pages.orientation import bytes_per_page, target_blocks

_ARC_BYTES = 4
_LEVEL = 1  # of the heat record
# Of the page cache, that the owners' lists have: all lists before come again for each block of owners.
_OWNERS_SHARE = 2 / 3
_LEAST_PIECE = 8  # parts: what there is room for, of a piece that counts with parts before it, and of some of these
_HELD = 3  # blocks that may be kept beside the next one
_CUTS_AT_ONCE = 1 << 10
_LEAST_PAGES = 12  # of the page cache: ranges begin and end anywhere in a page
_table_words = compiled(table_words)


class OrientedReads:
    """Prepares the pages for ranges of arcs; see above.

    Parameters
    ----------
    env
        What the process works with; its graph on the engine is oriented and has pages. When it is cancelled, no more
        pieces of a range come, and no more blocks.

    Attributes
    ----------
    predicted
        Bytes over the link of the ranges so far, block by block.
    """

    def __init__(self, env: Environment):
        loaded = env.device_graph
        assert loaded is not None
        assert loaded.starts is not None
        assert loaded.graph.pages is not None
        self._graph, self._starts, self._pages = env.graph, loaded.starts, loaded.graph.pages
        self.predicted, self._cancel = 0.0, env.cancel
        self._held: deque[list[Targets]] = deque(maxlen=_HELD)  # what kernels read that were launched last

    @property
    def _in_place(self) -> bool:
        """Whether lists are read where they are, since the page cache has no room for blocks."""
        return self._pages.cache_arcs < _LEAST_PAGES * self._pages.page_arcs

    def prepare(self) -> None:
        """Have the hottest pages of the phase in the page cache."""
        self._pages.prepare_all(_LEVEL, lambda: bytes_per_page(self._graph, self._starts, self._pages.page_arcs))

    def blocks(self, first: int, last: int) -> Iterator[Block]:
        """Prepare the pages for a range of arcs, block by block where there is room for that.

        Yields
        ------
        (int, int, (int, int) or None)
            A part of the range, and the vertices to which its arcs should be counted next; None: all.
        """
        for piece in self.pieces(first, last):
            for number, some in enumerate(piece.targets):
                yield Block(*piece.arcs, some, piece.parts[number + 1 :])

    def pieces(self, first: int, last: int, tables: TabledCliqueCounter | None = None) -> Iterator[TablePiece]:
        """Cut a range of arcs into pieces, and prepare the pages for each of them, block by block.

        Parameters
        ----------
        first, last
            The range.
        tables
            What has room for the tables of a piece; None: none are made.

        Yields
        ------
        TablePiece
            The vertices that its arcs lead to are in parts, to be asked for when those before were read.
        """
        in_place = self._in_place
        if in_place:
            self.prepare()
        owners = self._owners_of(first, last) if in_place and tables is None else self._owners(first, last, tables)
        backwards = False
        self._held.clear()
        for low, high in pairwise(owners):
            if self._cancel.is_set():
                return
            owned = int(self._starts[low]), int(self._starts[high])
            if not in_place:  # the owners' lists come once, and all before their last one
                self.predicted += _ARC_BYTES * float(2 * owned[1] - owned[0])
            # To and fro, since the last block is there already when the next owners come.
            parts = [] if in_place else self._beside(owned, 0, high)[:: -1 if backwards else 1]
            targets = iter([None]) if in_place else self._in_turn(owned, parts)
            yield TablePiece((max(first, owned[0]), min(last, owned[1])), (low, high), owned, targets, parts)
            backwards = not backwards

    def arc_pieces(self, first: int, last: int, most: int) -> Iterator[tuple[int, int, Iterator[ArcBlock] | None]]:
        """Cut a range of arcs into pieces, and copy what has triangles at their arcs, block by block.

        Other lists than those of a piece are read in order for it, each once, so nothing is gained by hot pages.

        Parameters
        ----------
        first, last
            The range.
        most
            The most arcs of a piece.

        Yields
        ------
        (int, int, iterator of ArcBlock or None)
            A piece, and what has triangles at its arcs, to be asked for when the blocks before were read; None: that is
            read where it is, since the page cache has no room for blocks.
        """
        capacity, page, starts = self._pages.cache_arcs, self._pages.page_arcs, self._starts
        if self._in_place:
            self.prepare()
            for begin in range(first, last, most):
                if self._cancel.is_set():
                    return
                yield begin, min(begin + most, last), None
            return
        low, high = self._owners_of(first, last)
        fits = starts[-1] <= capacity - page
        size = most if fits else min(most, max(int(_OWNERS_SHARE * capacity), 1))
        for owners in target_blocks(starts[low : high + 1], size):
            if self._cancel.is_set():
                return
            begin, end = low + owners[0], low + owners[1]
            arcs = max(first, int(starts[begin])), min(last, int(starts[end]))
            self.predicted += _ARC_BYTES * (starts[end] - starts[begin] + starts[-1])
            for at in range(*arcs, most):  # a list may be longer
                if self._cancel.is_set():
                    return
                yield at, min(at + most, arcs[1]), self._triangles_at(begin, end)

    def counted_pieces(self, first: int, last: int, counter: ArcDiamondCounter) -> Iterator[ArcPiece] | None:
        """Cut all arcs into pieces, and copy what has triangles with each of them and those before, block by block.

        Parameters
        ----------
        first, last
            A range of arcs.
        counter
            What has room for counts of arcs.

        Returns
        -------
        iterator of ArcPiece or None
            None where some are not in the range, or there is no room to count so.
        """
        capacity, page, longest = self._pages.cache_arcs, self._pages.page_arcs, self._graph.stats.max_out_degree
        # Parts that follow each other, and the piece, may begin and end anywhere in a page.
        capacity -= 3 * page
        most = min(counter.part_capacity, capacity // _LEAST_PIECE)
        size = min(counter.piece_capacity, capacity - 2 * most)
        if (first, last) != (0, self._starts[-1]) or min(size, most) < max(longest, page):
            return None
        return self._counted_pieces(size, most, counter.count_bytes)

    def _counted_pieces(self, size: int, most: int, count_bytes: int) -> Iterator[ArcPiece]:
        starts, pieces = self._starts, target_blocks(self._starts, size)
        before: list[Targets] = []
        self._held.clear()
        for number, (low, high) in enumerate(pieces):
            if self._cancel.is_set():
                return
            own, parts = (int(starts[low]), int(starts[high])), [*before, (low, high)]
            before += [(low + begin, low + end) for begin, end in target_blocks(starts[low : high + 1], most)]
            self.predicted += float(_ARC_BYTES * own[1] + count_bytes * own[0])  # lists, and counts of earlier arcs
            yield ArcPiece(own, self._with_arcs(own, parts), parts, number == len(pieces) - 1)

    def _with_arcs(self, own: Targets, blocks: Sequence[Targets]) -> Iterator[tuple[Targets, Targets]]:
        for begin, end in self._in_turn(own, blocks):
            yield (begin, end), (int(self._starts[begin]), int(self._starts[end]))

    def _triangles_at(self, low: int, high: int) -> Iterator[ArcBlock]:
        """Copy the lists of owners, and in turn all others, for the triangles at the owners' arcs."""
        starts = self._starts
        self._held.clear()
        own = int(starts[low]), int(starts[high])
        for begin, end in self._in_turn(own, self._beside(own, 0, high)):
            yield *own, (begin, end), Corner.LARGEST
        for begin, end in self._in_turn(own, self._beside(own, low, starts.size - 1)):
            yield int(starts[begin]), int(starts[end]), (low, high), Corner.SMALLER

    def _in_turn(self, own: tuple[int, int], blocks: Sequence[Targets]) -> Iterator[Targets]:
        """Copy a range of arcs, and the lists of blocks of vertices, each while kernels read the block before."""
        for begin, end in blocks:
            if self._cancel.is_set():
                return
            arcs = int(self._starts[begin]), int(self._starts[end])
            self._pages.hold([own, arcs], list(self._held))
            self._held.append([own, arcs])
            yield begin, end

    def _owners(self, first: int, last: int, tables: TabledCliqueCounter | None) -> Iterator[int]:
        """Cut the owners of a range of arcs: where each block of them begins, and where the last one ends."""
        capacity, starts = self._pages.cache_arcs, self._starts
        low, high = self._owners_of(first, last)
        fits = starts[high] <= capacity - self._pages.page_arcs
        size = max(capacity if fits else int(_OWNERS_SHARE * capacity), 1)
        if self._in_place:  # only the tables want room
            size = int(starts[-1])
        if tables is None:
            yield from [low + begin for begin, _ in target_blocks(starts[low : high + 1], size)]
            yield high
            return
        yield low
        cuts, number = np.empty(_CUTS_AT_ONCE, np.int64), _CUTS_AT_ONCE
        while number == cuts.size:
            number = _cut_by_tables(starts, low, high, size, tables.table_capacity, tables.least_degree, cuts)
            yield from cuts[:number].tolist()
            low = int(cuts[number - 1]) if number else low
        yield high

    def _owners_of(self, first: int, last: int) -> tuple[int, int]:
        """Return the first owner of a range of arcs, and one past the last."""
        first_owner = int(np.searchsorted(self._starts, first, side="right")) - 1
        return first_owner, int(np.searchsorted(self._starts, last, side="left"))

    def _beside(self, own: tuple[int, int], low: int, high: int) -> list[Targets]:
        """Cut the vertices `low` to `high` - 1 into blocks, two of whose lists have room beside a range of arcs."""
        capacity, page, starts = self._pages.cache_arcs, self._pages.page_arcs, self._starts
        if max(own[1], starts[high]) - min(own[0], starts[low]) <= capacity - page:
            return [(low, high)]
        # Two blocks that follow each other, and the range, may begin and end anywhere in a page.
        blocks = target_blocks(starts[low : high + 1], max((capacity - (own[1] - own[0]) - 3 * page) // 2, page))
        return [(low + begin, low + end) for begin, end in blocks]


@compiled("i8[::1], i8, i8, i8, i8, i8, i8[::1]")
def _cut_by_tables(starts: Any, low: int, high: int, arcs: int, words: int, least: int, cuts: Any) -> int:
    """Cut vertices into blocks, each of one or of few enough arcs and words of tables; return how many cuts were found.

    Cuts are where blocks begin, but for the first one; there are no more than `cuts` has room for.
    """
    number, begin, held = 0, low, 0
    for v in range(low, high):
        own = _table_words(starts[v + 1] - starts[v], least)
        if v > begin and (starts[v + 1] - starts[begin] > arcs or held + own > words):
            cuts[number] = v
            number += 1
            if number == cuts.size:
                break
            begin, held = v, 0
        held += own
    return number
