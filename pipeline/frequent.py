"""Frequent patterns: level by level, each pattern once as its minimum DFS code (gSpan), over embedding tables.

A level has a barrier: what of it is frequent is known when all of its embeddings are aggregated. A level's patterns are
in the journal once they are known; its table is made anew when a run goes on.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.dfs_code import automorphisms
from longwall.kernels.engine import ScratchTooLarge
from longwall.kernels.growth import TypedGraph
from longwall.pipeline.checkpoint import Partial
from longwall.pipeline.config import MAX_PATTERN_EDGES
from longwall.pipeline.context import RunContext
from longwall.pipeline.dfs_patterns import DfsPatterns, Ways, ways_to_grow
from longwall.pipeline.frequent_plan import FrequentPlan
from longwall.pipeline.placement import bring_arrays
from longwall.pipeline.portion import Portion
from longwall.stages.pattern_growth import PatternGrowth
from longwall.stages.pattern_rows import PatternRows
from longwall.storage.errors import FinalError, RunError
from longwall.storage.parallel import map_ordered
from longwall.storage.sizes import round_size
from longwall.storage.tables.chunk_pool import ChunkPool
from longwall.storage.tables.chunked_table import ChunkedTable
from longwall.storage.tables.table import from_columns
from longwall.storage.typed_graph import EdgeTypes, Labels, typed_graph

UNKNOWN = -1
"""In place of a number of rows that nobody counted."""
_WORK_SHARE, _ROOM_SHARE, _CHUNK_SHARE = 4, 8, 32  # of what the graph leaves: what is counted; the rest; a chunk
_LARGEST_CHUNK = 32 << 20  # of vertices
_MOST_KNOWN = 1 << 24  # entries of the table of a batch's edges
_CODES_AT_ONCE = 256  # by a thread that nobody interrupts
_PATTERN_BYTES, _SLOT_BYTES = 200, 160  # of the patterns of a batch, for each vertex; of a way for them to grow
_CODE_BYTES = 400  # of a way to grow that is looked at as a pattern, for each of its edges


class Found(NamedTuple):
    """The frequent patterns of a batch: what they grew from and by, and their figures."""

    parents: NDArray[np.int64]
    edges: NDArray[np.int32]
    automorphisms: NDArray[np.int64]
    rows: NDArray[np.int64]
    supports: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FrequentPatterns:
    """The frequent patterns of a level.

    Attributes
    ----------
    patterns
        Their codes.
    types
        What the labels in the codes mean.
    parents : int64[p]
        The pattern of the level before that each grew from, ascending.
    automorphisms, rows, supports : int64[p]
        Automorphisms; mappings, or `UNKNOWN`; support.
    """

    patterns: DfsPatterns
    types: EdgeTypes
    parents: NDArray[np.int64]
    automorphisms: NDArray[np.int64]
    rows: NDArray[np.int64]
    supports: NDArray[np.int64]

    def selected(self, kept: NDArray[np.bool_]) -> "FrequentPatterns":
        """Some of the patterns."""
        patterns = DfsPatterns(self.patterns.roots[kept], self.patterns.codes[kept])
        numbers = (self.parents, self.automorphisms, self.rows, self.supports)
        return FrequentPatterns(patterns, self.types, *(array[kept] for array in numbers))


def mine_frequent(plan: FrequentPlan, context: RunContext) -> Iterator[tuple[FrequentPatterns, ChunkedTable | None]]:
    """Mine the frequent patterns, level by level.

    Yields
    ------
    FrequentPatterns
        The patterns of a level; where the support is `instances`, all of them: a part may be rarer than the whole.
    ChunkedTable
        Their embeddings (see :mod:`longwall.stages.pattern_growth`), until the next level is asked for; None of the
        last level, unless the plan asks for embeddings.

    Raises
    ------
    InputError, RunError
        If a budget has no room for the graph, or for a single pattern's images.
    """
    mining = _Mining(plan, context)
    try:
        yield from mining.levels()
    finally:
        mining.close()


class _Mining:
    """A level's patterns and embeddings, and what they grow with."""

    def __init__(self, plan: FrequentPlan, context: RunContext):
        self._plan, self._context = plan, context
        self._host = context.accounts.host
        self._pool = ChunkPool(self._host, context.accounts.disk, context.spill)
        self._portion = Portion(context.engine)
        self._labels = Labels(context.graph, self._host)
        self._types = self._labels.types(self._host)
        self._graph_bytes = 0
        self._stage = self._bring(self._types)

    def close(self) -> None:
        self._pool.close()
        self._labels.close()

    def levels(self) -> Iterator[tuple[FrequentPatterns, ChunkedTable | None]]:
        """Grow until nothing is frequent, or the patterns are as large as they may be; see `mine_frequent`."""
        patterns, table = self._vertices()
        while True:
            level = patterns.num_edges + 1
            last = level == self._plan.max_edges
            phase = self._context.checkpoint.phase(f"patterns of {level} edges", 1)
            began = time.perf_counter()
            if not phase.complete:
                parts = self._frequent(patterns, table, level)
                value = [[numbers.tolist() for numbers in part] for part in parts if len(part.parents)]
                phase.commit([(0, 1)], Partial(value))
            found = _from_plain(phase.partials[0].value, patterns, self._types)
            rows = int(found.rows.sum()) if self._plan.exact else 0
            self._context.metrics.record("aggregate", level, len(table), rows, time.perf_counter() - began)
            if level == MAX_PATTERN_EDGES and len(found.patterns):
                self._context.observer.note(f"patterns of more than {level} edges are not looked for")
            if not len(found.patterns) or (last and not self._plan.embeddings):
                yield found, None
                return
            began = time.perf_counter()
            if level == 1:
                self._leave_out_rare(found)
            grown = self._grown(patterns, table, found, level)
            table.drop()
            patterns, table = found.patterns, grown
            seconds = time.perf_counter() - began
            self._context.metrics.record("extend", level, 0, len(table), seconds, table.nbytes, table.num_chunks)
            if self._plan.embeddings:
                self._pool.book(self._room, "embeddings to write").release()  # the caller's; chunks take all there is
            yield found, table
            if last:
                return

    def _vertices(self) -> tuple[DfsPatterns, ChunkedTable]:
        """The patterns of one vertex: one per label."""
        ranks = self._labels.ranks
        table = self._new_table(2)
        order = np.argsort(ranks, kind="stable")
        step = max(min(self._host.free // _CHUNK_SHARE, _LARGEST_CHUNK) // 16, 1)
        with self._host.book(order.nbytes, "vertices by label"):
            for begin in range(0, len(order), step):
                some = order[begin : begin + step]
                table.append(from_columns(np.stack([ranks[some].astype(np.uint32), some.astype(np.uint32)]), np))
        roots = np.arange(len(self._labels.values), dtype=np.int32)
        return DfsPatterns(roots, np.empty((len(roots), 0, 5), np.int32)), table

    def _new_table(self, num_levels: int) -> ChunkedTable:
        return ChunkedTable(self._pool, num_levels, 1)  # chunks are not put together there: patterns would not ascend

    def _bring(self, types: EdgeTypes) -> PatternGrowth:
        """Lay the graph out by some types, and bring it to the engine."""
        context = self._context
        self._host.take(-self._graph_bytes, "")
        graph = typed_graph(context.graph, self._labels, types, self._host)
        self._graph_bytes = graph.nbytes - graph.targets.nbytes - graph.groups.nbytes
        self._room = self._host.free // _ROOM_SHARE
        brought, memory = bring_arrays(graph.arrays(), context.engine, context.budget.device, self._host)
        return PatternGrowth(
            context.engine, TypedGraph(*brought), self._portion.take, memory // _WORK_SHARE, self._pool, self._check
        )

    def _check(self, rows: int) -> None:
        """See that nobody interrupted; tell how far the level is."""
        if self._context.cancel.is_set():
            raise KeyboardInterrupt
        if rows:
            self._context.observer.advance(rows)

    def _batches(self, patterns: DfsPatterns) -> Iterator[tuple[int, Ways]]:
        """Patterns in batches that can be counted at once: the number of the first, and how they can grow."""
        width = int(patterns.sizes.max(initial=1))
        size = width * (_PATTERN_BYTES + 8 * width)
        most = max(min(self._stage.most_slots(), self._room // _SLOT_BYTES), 1)
        begin, step = 0, max(min(_MOST_KNOWN // width**2, self._room // size, len(patterns)), 1)
        with self._pool.book(size * step, "the patterns of a batch"):
            while begin < len(patterns):
                end = min(begin + step, len(patterns))
                ways = ways_to_grow(patterns.sliced(begin, end), begin, self._types, self._plan.max_vertices)
                if ways.num_slots > most and end - begin > 1:
                    step = max((end - begin) // 2, 1)
                    continue
                if ways.num_slots:
                    with self._pool.book(_SLOT_BYTES * ways.num_slots, "the ways in which patterns can grow"):
                        yield begin, ways
                begin = end

    def _frequent(self, patterns: DfsPatterns, table: ChunkedTable, level: int) -> list[Found]:
        self._context.observer.phase(f"patterns of {level} edges", len(table), "embeddings")
        found = []
        for first, ways in self._batches(patterns):
            part = self._frequent_of(table, ways)
            found.append(part._replace(parents=part.parents + first))
        return found

    def _frequent_of(self, table: ChunkedTable, ways: Ways) -> Found:
        """Aggregate the embeddings of a batch by the ways to grow, and keep what is frequent."""
        plan, stage = self._plan, self._stage
        if not plan.exact:
            return self._enough(table, ways)
        if len(table) * self._context.graph.stats.max_degree >= 2**62:  # a row adds at most a degree to a count
            raise FinalError("the embeddings of a pattern may not fit 64-bit integers: set workload.max_edges lower")
        rows = stage.count(table, ways.growth, ways.num_slots)
        slots = np.flatnonzero(rows >= (1 if plan.support == "instances" else plan.min_support))
        # Counting transactions is cheaper than to see whether codes are minimal; counting images is not.
        supports = np.zeros(len(slots), np.int64)
        if plan.support == "transactions":
            slots, supports = self._supported(table, ways, slots)
        counts = self._automorphisms(ways, slots)
        slots, supports, counts = slots[counts > 0], supports[counts > 0], counts[counts > 0]
        if plan.support == "mni":
            kept, supports = self._supported(table, ways, slots)
            slots, counts = kept, counts[np.searchsorted(slots, kept)]
        elif plan.support == "instances":
            supports = rows[slots] // counts
        parents, edges = ways.edges(slots)
        return Found(parents, edges, counts, rows[slots], supports)

    def _enough(self, table: ChunkedTable, ways: Ways) -> Found:
        """As `_frequent_of`, but embeddings are looked at only until it is known what is frequent."""
        slots = np.arange(ways.num_slots)
        counts = self._automorphisms(ways, slots)
        slots, supports = self._supported(table, ways, slots[counts > 0])
        parents, edges = ways.edges(slots)
        return Found(parents, edges, counts[slots], np.full(len(slots), UNKNOWN), supports)

    def _supported(
        self, table: ChunkedTable, ways: Ways, slots: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The ways that have the support that is asked for, and their supports."""
        pattern, edges = ways.edges(slots)
        sizes = ways.patterns.sizes[pattern] + (edges[:, 0] < edges[:, 1])
        try:
            supports = self._stage.supports(
                table,
                ways.growth,
                ways.num_slots,
                slots,
                pattern,
                sizes.astype(np.int64),
                "images" if self._plan.support == "mni" else "groups",
                self._context.graph.num_transactions,
                self._plan.min_support if not self._plan.exact else np.iinfo(np.int32).max,
            )
        except ScratchTooLarge as error:
            option = "memory.host" if self._context.engine.free_memory() is None else "memory.device"
            raise RunError(
                f"the images of one pattern need {round_size(error.needed)} for each worker: raise {option}"
            ) from None
        kept = supports >= self._plan.min_support
        return slots[kept], supports[kept]

    def _automorphisms(self, ways: Ways, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """The automorphisms of the grown patterns; 0 where another way leads to the pattern's minimum code."""
        parents, edges = ways.edges(slots)
        found = np.zeros(len(slots), np.int64)
        stop = np.zeros(1, np.uint8)
        workers = self._context.engine.workers
        size = _CODE_BYTES * (ways.patterns.num_edges + 1) * workers
        at_once = max(min(_CODES_AT_ONCE, len(slots), self._room // size), 1)

        def look(begin: int) -> None:
            end = min(begin + at_once, len(slots))
            self._check(0)
            codes = ways.patterns.grown(parents[begin:end], edges[begin:end]).codes
            automorphisms(codes, 0, end - begin, found[begin:end], stop)

        with self._pool.book(size * at_once, "codes of patterns"):
            for _ in map_ordered(look, range(0, len(slots), at_once), workers):
                pass
        return found

    def _grown(self, patterns: DfsPatterns, table: ChunkedTable, found: FrequentPatterns, level: int) -> ChunkedTable:
        """The embeddings of the frequent patterns of a level."""
        grown = self._new_table(level + 2)
        self._context.observer.phase(f"embeddings of {level} edges", len(table), "embeddings")
        done = 0
        with PatternRows(level + 2, grown.append, self._room, self._pool) as rows:
            for first, ways in self._batches(patterns):
                end = int(np.searchsorted(found.parents, first + len(ways.patterns)))
                if end > done:
                    slots = ways.slots(found.parents[done:end] - first, found.patterns.codes[done:end, -1])
                    self._stage.children(table, ways.growth, ways.num_slots, slots, done, rows.add)
                done = end
        return grown

    def _leave_out_rare(self, found: FrequentPatterns) -> None:
        """Leave edges out that no frequent pattern has: every part of a frequent pattern is frequent."""
        if self._plan.support == "instances":
            return  # a part may have fewer instances than the whole
        here, edge, there = found.patterns.codes[:, 0, 2], found.patterns.codes[:, 0, 3], found.patterns.codes[:, 0, 4]
        keys = np.concatenate([self._types.keys(here, there, edge), self._types.keys(there, here, edge)])
        kept = np.isin(self._types.keys(self._types.here, self._types.there, self._types.edge), keys)
        if not kept.all():
            self._types = self._types.selected(kept)
            del self._stage
            self._stage = self._bring(self._types)


def _from_plain(value: list[list[Any]], patterns: DfsPatterns, types: EdgeTypes) -> FrequentPatterns:
    """A level's patterns as the journal has them: a list per batch."""
    parts = [Found(*map(np.array, part)) for part in value]
    parents = np.concatenate([np.empty(0, np.int64), *(part.parents for part in parts)])
    edges = np.concatenate([np.empty((0, 5), np.int32), *(part.edges.astype(np.int32) for part in parts)])
    numbers = [
        np.concatenate([np.empty(0, np.int64), *(getattr(part, name) for part in parts)])
        for name in ("automorphisms", "rows", "supports")
    ]
    return FrequentPatterns(patterns.grown(parents, edges), types, parents, *numbers)
