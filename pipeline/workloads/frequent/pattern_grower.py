"""What a process needs to grow frequent patterns: the graph by edge types, tables of embeddings, and its budgets.

What grows, and when, is in :mod:`longwall.pipeline.workloads.frequent.levels`.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.host.patterns.dfs_codes import automorphisms
from longwall.kernels.interface.engine import WorkspaceTooLarge
from longwall.kernels.interface.pattern_growth import TypedGraph
from longwall.pipeline.execution.adaptive_batch import AdaptiveBatch
from longwall.pipeline.execution.environment import Workplace
from longwall.pipeline.run_store.run_files import RunFiles
from longwall.pipeline.workloads.frequent.dfs_patterns import DfsPatterns, RightmostExtensions, rightmost_extensions
from longwall.pipeline.workloads.frequent.grown_patterns import (
    GROWN_BYTES,
    UNKNOWN,
    FrequentPatterns,
    GrownPatterns,
    level_bytes,
    read_patterns,
)
from longwall.pipeline.workloads.frequent.plan import FrequentPlan
from longwall.stages.aggregation.support import Candidates, Support, on_host
from longwall.stages.extension.grow_patterns import GrowPatterns
from longwall.stages.extension.pattern_rows import Rows
from longwall.stages.extension.row_buffer import PatternRows
from longwall.storage.errors import FinalError, RunError
from longwall.storage.graph.typed_graph import Labels, typed_graph
from longwall.storage.mapping.mapped_arrays import MappedArrays
from longwall.storage.memory.reservations import Reservation
from longwall.storage.memory.sizes import round_size
from longwall.storage.pages.placement import bring_arrays
from longwall.storage.system.concurrency import map_ordered
from longwall.storage.tables.chunk_pool import ChunkPool
from longwall.storage.tables.chunked_table import ChunkedTable
from longwall.storage.tables.embedding_table import from_columns

_WORK_SHARE, _ROOM_SHARE, _CHUNK_SHARE = 4, 8, 32  # of what the graph leaves: what is counted; the rest; a chunk
_LARGEST_CHUNK = 32 << 20  # of vertices
_MOST_KNOWN = 1 << 24  # entries of the table of a batch's edges
_MOST_ROWS = 1 << 62  # where they were not counted
_CODES_AT_ONCE = 256  # by a thread, between two looks at whether the run is cancelled
_PATTERN_BYTES, _EXTENSION_BYTES = 200, 160  # of the patterns of a batch, for each vertex; of an extension
_CODE_BYTES = 400  # of an extension as a pattern, for each of its edges


class PatternGrower:
    """Grow tables of embeddings, and choose the patterns that they grow into.

    Parameters
    ----------
    plan
        What is mined.
    env
        Where; its budgets hold what is made here until `close`.

    Attributes
    ----------
    types
        The edge types to grow by.
    pool
        Where tables are.
    room : int
        Bytes for what is no table, and not counted by the stage.
    support
        What supports a pattern, and how far it is counted.
    roots
        The patterns of one vertex: one per label.
    """

    def __init__(self, plan: FrequentPlan, env: Workplace):
        self._plan, self._env = plan, env
        self._host = env.resources.host
        self.pool = ChunkPool(self._host, env.resources.disk, env.resources.spill)
        self._batch = AdaptiveBatch(env.engine)
        self._labels = Labels(env.graph, self._host)
        self.types = self._labels.types(self._host)
        labels = np.arange(len(self._labels.values), dtype=np.int32)
        self.roots = DfsPatterns(labels, np.empty((len(labels), 0, 5), np.int32))
        self._of_roots = self._host.reserve(level_bytes(len(labels), 0), "the labels of vertices")
        self.capacity = self._host.free // _ROOM_SHARE
        enough = int(np.iinfo(np.int32).max) if plan.exact else plan.min_support
        if plan.support == "mni":
            self.support = Support("images", env.graph.num_vertices, enough)
        else:
            self.support = Support("groups", env.graph.num_transactions, enough)
        self._graph_bytes = self._device_bytes = 0
        self._files: MappedArrays | None = None

    def close(self) -> None:
        """Drop all tables, and the graph by edge types."""
        self.pool.close()
        self._drop_stage()
        self._of_roots.release()
        self._labels.close()

    @cached_property
    def stage(self) -> GrowPatterns:
        """The stage on the graph by edge types, which is brought to the engine when this is first asked for."""
        env = self._env
        self._files = None if env.graph.files is None else MappedArrays(env.resources)
        graph = typed_graph(env.graph, self._labels, self.types, self._host, self._files)
        in_files = 0 if self._files is None else self._files.nbytes
        self._graph_bytes = graph.nbytes - graph.targets.nbytes - graph.groups.nbytes - in_files
        self.capacity = self._host.free // _ROOM_SHARE
        resources = env.resources
        brought, self._device_bytes = bring_arrays(graph.arrays(), resources)
        run, work, host = self._batch.run, resources.work.free // _WORK_SHARE, self.pool.reserve
        reserve = _unreserved if resources.on_device else host
        return GrowPatterns(env.engine, TypedGraph(*brought), self.support, run, work, reserve, host, self.check)

    def check(self, rows: int) -> None:
        """Raise if the run was cancelled; report the progress of the level."""
        if self._env.cancel.is_set():
            raise KeyboardInterrupt
        if rows:
            self._env.observer.advance(rows)

    def read_level(
        self, files: RunFiles, patterns: DfsPatterns, file: dict[str, Any]
    ) -> tuple[FrequentPatterns, Reservation]:
        """Return the frequent patterns of a level, and what is reserved for them; tables make room.

        Parameters
        ----------
        files
            The run's.
        patterns
            What they grow from.
        file
            Their array of the checkpoint, as a commit names it.

        Raises
        ------
        BudgetExceeded
            If there is no room for them.
        """
        size, edges = int(file["shape"][0]), patterns.num_edges + 1
        with ExitStack() as held, self.pool.reserve(GROWN_BYTES * size, "patterns that are read"):
            reserved = held.enter_context(self.pool.reserve(2 * level_bytes(size, edges), f"patterns of {edges} edges"))
            found = FrequentPatterns.grown(patterns, self.types, read_patterns(files, file))
            reserved.resize(level_bytes(size, edges), "")  # codes are copied once
            held.pop_all()
        return found, reserved

    @property
    def ranks(self) -> NDArray[np.int32]:
        """The pattern of `roots` that each vertex is of: the rank of its label."""
        return self._labels.ranks

    def vertices(self, part: int, parts: int) -> ChunkedTable:
        """Return the embeddings of `roots` in every `parts`-th vertex from `part` on: every part has some hubs."""
        ranks = self._labels.ranks[part::parts]
        table = self._new_table(2)
        order = np.argsort(ranks, kind="stable")
        step = max(min(self._host.free // _CHUNK_SHARE, _LARGEST_CHUNK) // 16, 1)
        with self._host.reserve(order.nbytes, "vertices by label"):
            for begin in range(0, len(order), step):
                some = order[begin : begin + step]
                vertices = some * parts + part
                table.append(from_columns(np.stack([ranks[some].astype(np.uint32), vertices.astype(np.uint32)]), np))
        return table

    def _new_table(self, num_levels: int) -> ChunkedTable:
        return ChunkedTable(self.pool, num_levels, 1)  # chunks are not put together there: patterns would not ascend

    def batches(
        self, patterns: DfsPatterns, begin: int = 0, last: int | None = None, most: int | None = None
    ) -> Iterator[tuple[int, RightmostExtensions]]:
        """Cut patterns into batches whose extensions can be counted at once.

        Parameters
        ----------
        patterns
            A level's.
        begin, last
            Patterns `begin` to `last` - 1 of them; all by default.
        most
            Extensions that can be counted at once; as many as the stage can count by default.

        Yields
        ------
        int
            The number of the first pattern of a batch.
        RightmostExtensions
            How they can grow; there is at least one extension.
        """
        last = len(patterns) if last is None else last
        width = int(patterns.sizes.max(initial=1))
        size = width * (_PATTERN_BYTES + 8 * width)
        most = max(min(self.stage.most_extensions() if most is None else most, self.capacity // _EXTENSION_BYTES), 1)
        step = max(min(_MOST_KNOWN // width**2, self.capacity // size, last - begin), 1)
        with self.pool.reserve(size * step, "the patterns of a batch"):
            while begin < last:
                end = min(begin + step, last)
                extensions = rightmost_extensions(
                    patterns.sliced(begin, end), begin, self.types, self._plan.max_vertices
                )
                if extensions.total > most and end - begin > 1:
                    step = max((end - begin) // 2, 1)
                    continue
                if extensions.total:
                    with self.pool.reserve(_EXTENSION_BYTES * extensions.total, "the counts of rightmost extensions"):
                        yield begin, extensions
                begin = end

    def require_countable(self, rows: int) -> None:
        """Check that counts of the rows that embeddings grow into fit 64-bit integers.

        Raises
        ------
        FinalError
            If they may not.
        """
        if rows * self._env.graph.stats.max_degree >= 2**62:  # a row adds at most a degree to a count
            raise FinalError("the embeddings of a pattern may not fit 64-bit integers: set workload.max_edges lower")

    def candidates(
        self, extensions: RightmostExtensions, rows: NDArray[np.int64] | None
    ) -> tuple[NDArray[np.int64], GrownPatterns]:
        """Choose the extensions whose support is to be counted.

        Parameters
        ----------
        extensions
            A batch of patterns.
        rows : int64[extensions.total]
            The mappings of what they grow into, or None.

        Returns
        -------
        int64[k]
            Their numbers, ascending.
        GrownPatterns
            The same as patterns; what they grow from is numbered in the batch.
        """
        support = self._plan.support
        numbers = np.arange(extensions.total)
        if rows is not None:
            numbers = np.flatnonzero(rows >= (1 if support == "instances" else self._plan.min_support))
        counts = np.zeros(len(numbers), np.int64)
        if support != "transactions":
            counts = self._automorphisms(extensions.patterns, *extensions.edges(numbers))
            numbers, counts = numbers[counts > 0], counts[counts > 0]
        mappings = np.full(len(numbers), UNKNOWN) if rows is None else rows[numbers]
        return numbers, GrownPatterns(*extensions.edges(numbers), counts, mappings, np.zeros(len(numbers), np.int64))

    def frequent(
        self, patterns: DfsPatterns, candidates: GrownPatterns, supports: NDArray[np.int64] | None
    ) -> GrownPatterns:
        """Keep the frequent ones of some candidates.

        Parameters
        ----------
        patterns
            What they grow from.
        candidates
            See `candidates`.
        supports : int64[k]
            Their supports; None where instances are counted.
        """
        if supports is None:  # a part may be rarer than the whole
            return candidates._replace(supports=candidates.rows // candidates.automorphisms)
        kept = np.flatnonzero(supports >= self._plan.min_support)
        found = candidates._replace(supports=supports).selected(kept)
        if self._plan.support == "transactions":
            # Counting transactions is cheaper than to see whether codes are minimal; counting images is not.
            counts = self._automorphisms(patterns, found.parents, found.edges)
            found = found._replace(automorphisms=counts).selected(counts > 0)
        return found

    def supports(self, table: Rows, extensions: RightmostExtensions, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count the supports of extensions, int64[numbers]; where the plan is not exact, only up to `min_support`.

        Raises
        ------
        RunError
            If there is no room for the images of one pattern.
        """
        with self._naming_the_budget():
            return self.stage.supports(table, _candidates(extensions, numbers))

    def sets(
        self,
        table: Rows,
        extensions: RightmostExtensions,
        pattern: NDArray[np.int64],
        edges: NDArray[np.int32],
        columns: int,
    ) -> Iterator[NDArray[np.uint32]]:
        """Yield the sets that support some patterns, each grown by an edge: uint32[some, columns, words], on the host.

        Raises
        ------
        RunError
            As `supports`.
        """
        with self._naming_the_budget():
            for _, sets in self.stage.sets(table, _candidates(extensions, extensions.numbers(pattern, edges)), columns):
                copied = int(sets.nbytes) if self._env.resources.on_device else 0
                with self.pool.reserve(copied, "the images of patterns"):
                    yield on_host(sets)

    @contextmanager
    def _naming_the_budget(self) -> Iterator[None]:
        try:
            yield
        except WorkspaceTooLarge as error:
            option = self._env.resources.work.option
            raise RunError(
                f"the images of one pattern need {round_size(error.needed)} for each worker: raise {option}"
            ) from None

    def _automorphisms(
        self, patterns: DfsPatterns, parents: NDArray[np.int64], edges: NDArray[np.int32]
    ) -> NDArray[np.int64]:
        """Return the automorphisms of grown patterns; 0 where the code is not the minimum code of its pattern."""
        found = np.zeros(len(parents), np.int64)
        stop = np.zeros(1, np.uint8)
        workers = self._env.engine.workers
        size = _CODE_BYTES * (patterns.num_edges + 1) * workers
        at_once = max(min(_CODES_AT_ONCE, len(parents), self.capacity // size), 1)

        def look(begin: int) -> None:
            end = min(begin + at_once, len(parents))
            self.check(0)
            codes = patterns.grown(parents[begin:end], edges[begin:end]).codes
            automorphisms(codes, 0, end - begin, found[begin:end], stop)

        with self.pool.reserve(size * at_once, "codes of patterns"):
            for _ in map_ordered(look, range(0, len(parents), at_once), workers):
                pass
        return found

    def grown(self, patterns: DfsPatterns, table: ChunkedTable, found: FrequentPatterns) -> ChunkedTable:
        """Return the embeddings of what a level's patterns grow into.

        Parameters
        ----------
        patterns, table
            The level: its patterns, and embeddings of them.
        found
            The next one's.
        """
        levels = found.patterns.num_edges + 2
        grown = self._new_table(levels)
        done = 0
        with PatternRows(levels, grown.append, self.capacity, self.pool) as rows:
            for first, extensions in self.batches(patterns):
                end = int(np.searchsorted(found.parents, first + len(extensions.patterns)))
                if end > done:
                    numbers = extensions.numbers(found.parents[done:end] - first, found.patterns.codes[done:end, -1])
                    made = int(found.rows[done:end].sum()) if self._plan.exact else _MOST_ROWS
                    self.stage.children(table, extensions.growth, extensions.total, numbers, done, made, rows.add)
                done = end
        return grown

    def leave_out_rare(self, found: FrequentPatterns) -> None:
        """Remove the edges that no frequent pattern of one edge has; `found` are these patterns."""
        if self._plan.support == "instances":
            return  # a part may have fewer instances than the whole
        source, edge, target = found.patterns.codes[:, 0, 2:5].T
        keys = np.concatenate([self.types.keys(source, target, edge), self.types.keys(target, source, edge)])
        kept = np.isin(self.types.own_keys, keys)
        if not kept.all():
            self.types = self.types.selected(kept)
            self._drop_stage()

    def _drop_stage(self) -> None:
        self.__dict__.pop("stage", None)
        self._host.charge(-self._graph_bytes, "")
        self._env.resources.work.charge(-self._device_bytes, "")
        self._graph_bytes = self._device_bytes = 0
        if self._files is not None:
            self._files.close()
            self._files = None


def _unreserved(size: int, what: str) -> AbstractContextManager[object]:  # noqa: ARG001 - a `Reserve`
    """Reserve nothing: the engine's allocator keeps the limit of a device."""
    return nullcontext()


def grown_sizes(patterns: DfsPatterns, parents: NDArray[np.int64], edges: NDArray[Any]) -> NDArray[np.int64]:
    """Vertices of patterns with an edge more each: int64[k]."""
    sizes = patterns.sizes[parents] + (edges[:, 0] < edges[:, 1])
    return sizes.astype(np.int64)


def _candidates(extensions: RightmostExtensions, numbers: NDArray[np.int64]) -> Candidates:
    pattern, edges = extensions.edges(numbers)
    return Candidates(
        extensions.growth, extensions.total, numbers, pattern, grown_sizes(extensions.patterns, pattern, edges)
    )
