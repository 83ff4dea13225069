"""Predict the levels of frequent patterns: how many there are to try and to keep, and how many rows tables will have.

A level is mined as in a run as long as it is small. Then a sample of its embeddings goes on (`level_sample`): the
extensions of its rows are counted, the images of these are marked, and rows of what is frequent by them are made, of
which a sample goes on again. Where even the patterns are too many, some of them go on, each standing for several
(Knuth, 1975). Of many transactions some are left out, as long as the rest show which patterns are frequent.

The effort is a number of steps, not of seconds: the same plan, graph, memory and seed give the same prediction on every
engine.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from longwall.pipeline.execution.environment import Workplace
from longwall.pipeline.planning.stratified_sample import splitmix64, thinned
from longwall.pipeline.workloads.frequent.dfs_patterns import Ints, RightmostExtensions
from longwall.pipeline.workloads.frequent.grown_patterns import (
    FrequentPatterns,
    GrownPatterns,
    PatternParts,
    level_bytes,
)
from longwall.pipeline.workloads.frequent.pattern_grower import PatternGrower, grown_sizes
from longwall.pipeline.workloads.frequent.plan import FrequentPlan
from longwall.pipeline.workloads.frequent.prediction.level_sample import (
    GROUPS,
    Figure,
    LevelSample,
    Longs,
    Reals,
    fitting,
    images,
    spread,
)
from longwall.stages.aggregation.support import bits_on_host, on_host
from longwall.storage.memory.machine_budget import require

EFFORT = 3e7  # steps of a prediction
_LEVEL_SHARE = 16  # of what is left of the effort, that the rows of a level may take
_ROWS = 1 << 12, 1 << 20  # fewest and most rows of a level that go on, where there is memory for them
_LEAST_ROWS = 1 << 8  # that there must be memory for
_MADE = 2  # binary logarithm of the rows that are made for one that goes on, where some are left out
_PATTERNS = 1 << 5, 1 << 12  # fewest and most of a level that go on
_JUDGE_SHARE = 4  # of what is left of the effort, that the candidates of a level may take
_ROWS_OF_PATTERN = 8  # that tell whether a pattern is frequent, times the square root of the support
_CODE_STEPS = 40  # of a candidate, whose code may be minimal, times the square of its edges
_LEAST_SUPPORT = 64  # in transactions that are left, so that they tell what is frequent
_MANY = np.iinfo(np.int64).max
_ROW_BYTES, _COLUMN_BYTES = 64, 8  # of a row while it is made, and for each of its columns
_TRANSACTION_BYTES, _IMAGE_BYTES = 40, 160  # of a transaction; of the images of a vertex of a candidate
_NODE_BYTES = 12  # of a node of an embedding table; nodes of the last level have no offset
_VALUE_BYTES = 4
_NO_LONGS = np.empty(0, np.int64)
_NONE = GrownPatterns(_NO_LONGS, np.empty((0, 5), np.int32), _NO_LONGS, _NO_LONGS, _NO_LONGS)


@dataclass(frozen=True)
class LevelPrediction:
    """What is predicted of a level.

    Attributes
    ----------
    edges
        Of its patterns.
    candidates
        Patterns whose support is counted.
    patterns
        Those of them that are frequent.
    rows
        Mappings of those that grow on: rows of the level's table, where it has one.
    bytes
        Of the table; 0 where none is made.
    """

    edges: int
    candidates: Figure
    patterns: Figure
    rows: Figure
    bytes: int

    @property
    def exact(self) -> bool:
        """Whether all of it is known."""
        return self.candidates.exact and self.patterns.exact and self.rows.exact


def predict_levels(
    plan: FrequentPlan, work: Workplace, *, effort: float = EFFORT, seed: int = 0
) -> tuple[LevelPrediction, ...]:
    """Predict the levels of a plan, up to the first without frequent patterns, or with too many embeddings to count.

    Parameters
    ----------
    plan
        What is mined.
    work
        Where; nothing stays reserved there.
    effort
        Steps (rows read and made, codes looked at) that may be spent, about. What takes fewer is predicted exactly.
    seed
        Names the sample.

    Raises
    ------
    InputError
        If there is no memory for a small sample.
    RunError
        If there is none for the graph by edge types.
    """
    with closing(PatternGrower(plan, work)) as grower:
        _ = grower.stage
        with closing(_Descent(plan, work, grower, effort, seed)) as descent:
            return tuple(descent.levels())


class _Descent:
    """Goes down level by level, with what fits the memory and is left of the effort."""

    def __init__(self, plan: FrequentPlan, work: Workplace, grower: PatternGrower, effort: float, seed: int):
        self._plan, self._work, self._grower, self._left, self._seed = plan, work, grower, effort, seed
        free = work.resources.host.free // 4
        columns = min(plan.max_edges, 16) + 2
        least = (_ROW_BYTES + _COLUMN_BYTES * columns) << _MADE + 1
        require("predicting patterns", _LEAST_ROWS * least, free, work.resources.host.option)
        self._most = free // least
        self._held = grower.pool.reserve(free, "a sample of embeddings")
        self._of_patterns = grower.pool.reserve(0, "")
        self._held.join(
            grower.pool.reserve(_TRANSACTION_BYTES * work.graph.num_transactions, "the transactions of a sample")
        )
        self._transactions = np.arange(work.graph.num_transactions)
        self._units = self._patterns_for = 1  # transactions, and patterns, that one stands for
        self._chosen = 1.0  # candidates that a pattern grows into, about
        self._sample, self._nodes = self._roots()

    def close(self) -> None:
        """Release the memory."""
        self._held.release()
        self._of_patterns.release()

    def _limit(self) -> int:
        """How many rows may go on."""
        return int(min(max(self._left / _LEVEL_SHARE, _ROWS[0]), _ROWS[1], self._most))

    def _key(self, edges: int, use: int, first: int = 0) -> int:
        return splitmix64(self._seed, edges, use, first)

    def _roots(self) -> tuple[LevelSample, Reals]:
        """Return the vertices, and how many there are of each label."""
        roots, ranks = self._grower.roots, self._grower.ranks
        places, _ = thinned(self._key(0, 0), np.array([len(ranks)]), fitting(np.array([len(ranks)]), self._limit()))
        shift = (-(-len(ranks) // max(len(places), 1)) - 1).bit_length() if len(places) < len(ranks) else 0
        order = places[np.argsort(ranks[places], kind="stable")]
        rows = np.stack([ranks[order], order]).astype(np.uint32)
        groups = (np.arange(len(order)) % (2 * GROUPS)).astype(np.uint8)
        sample = LevelSample(roots, rows, np.full(len(order), shift, np.uint8), groups)
        return sample, np.bincount(ranks, minlength=len(roots))[:, None].astype(np.float64)

    def levels(self) -> Iterator[LevelPrediction]:
        """Predict level after level."""
        plan = self._plan
        while True:
            edges = self._sample.patterns.num_edges + 1
            with PatternParts(self._grower.pool.reserve) as parts:
                tried, frequent, of_rows = self._judge(parts)
                size = 2 * level_bytes(len(parts), edges) + 8 * (edges + 1) * len(parts)
                reserved = self._grower.pool.reserve(size, "the patterns of a sample")
                before, self._of_patterns = self._of_patterns, reserved
                found = FrequentPatterns.grown(self._sample.patterns, self._grower.types, _joined(parts.parts))
            rows = self._rows(found, of_rows)
            last = edges == plan.max_edges
            grows = len(found.patterns) > 0 and (not last or plan.embeddings)
            if edges == 1 and grows:
                self._grower.leave_out_rare(found)
            size = self._grow(found) if grows else 0
            before.release()
            yield LevelPrediction(edges, tried, frequent, rows, size)
            if last or not grows or self._too_many(edges, rows):
                return

    def _too_many(self, edges: int, rows: Figure) -> bool:
        """Whether 64-bit integers may not count what rows grow into: a run refuses them (`require_countable`)."""
        most = max(rows.value, rows.high) * self._work.graph.stats.max_degree
        return most * (edges + 1) >= 2**62  # a row grows from each of its vertices, by a degree at most

    def _batches(self, sample: LevelSample) -> Iterator[tuple[int, RightmostExtensions, LevelSample]]:
        for first, extensions in self._grower.batches(sample.patterns, most=_MANY):
            rows = sample.of(first, first + len(extensions.patterns))
            if len(rows):
                self._left -= len(rows)
                yield first, extensions, rows

    def _judge(self, parts: PatternParts) -> tuple[Figure, Figure, Reals]:
        """Find what is frequent.

        Returns
        -------
        Figure, Figure
            How many patterns are tried, and how many are frequent.
        float64[3]
            Rows of those that seem frequent, that are so in all likelihood, that may be so.
        """
        plan, instances = self._plan, self._plan.support == "instances"
        tried, frequent, of_rows, chosen = np.zeros(3), np.zeros(3), np.zeros(3), 0
        steps = self._candidate_steps(self._sample.patterns.num_edges + 1)
        for first, extensions, rows in self._batches(self._sample):
            counts, error = self._count(extensions, rows)
            numbers, part = self._grower.candidates(extensions, counts)
            tried += _bounds(counts, error, 1 if instances else plan.min_support, len(numbers))
            self._left -= steps * len(numbers)
            chosen += len(numbers)
            if instances:
                found = self._grower.frequent(extensions.patterns, part, None)
                supports, error = found.supports, error[numbers] / part.automorphisms
            else:
                supports, error = self._supports(extensions, rows, numbers)
                found = self._grower.frequent(extensions.patterns, part, supports)
            frequent += _bounds(supports, error, plan.min_support, int((found.supports >= plan.min_support).sum()))
            # With instances all patterns grow on: a part may be rarer than the whole.
            of_rows += _bounds(supports, error, 0 if instances else plan.min_support, int(found.rows.sum()), part.rows)
            parts.add(found._replace(parents=found.parents + first))
        self._chosen = chosen / max(len(self._sample.patterns), 1)
        return self._figure(tried), self._figure(frequent), of_rows * self._patterns_for

    def _candidate_steps(self, edges: int) -> int:
        """Steps that a candidate takes beside the rows: its code, and its images, which are sets of bits."""
        support = self._grower.support
        sets = 0 if self._plan.support == "instances" else support.columns(np.array([edges + 1])) * support.words
        return _CODE_STEPS * edges**2 + sets

    def _figure(self, bounds: Reals) -> Figure:
        """A number of patterns: what was found of it, at least, at most."""
        value, low, high = (bounds * self._patterns_for).tolist()
        if self._sample.whole:
            return Figure(value, low, high)
        off = math.exp(2 / len(self._sample.patterns) ** 0.5) if self._patterns_for > 1 else 1.0
        return Figure(value, max(min(low / off, value - 1), 0.0), max(high * off, value + 1))

    def _count(self, extensions: RightmostExtensions, rows: LevelSample) -> tuple[Longs, Reals]:
        """How many rows each extension has in all, and the standard errors."""
        counts, variance = np.zeros(extensions.total, np.int64), np.zeros(extensions.total)
        for shift in np.unique(rows.shifts).tolist():
            some = rows.kept(np.flatnonzero(rows.shifts == shift))
            weight = self._units << shift
            counted = self._grower.stage.count(some, extensions.growth, extensions.total)
            counts += counted * weight
            variance += counted * float(weight * (weight - 1))
        return counts, np.sqrt(variance)

    def _supports(self, extensions: RightmostExtensions, rows: LevelSample, numbers: Longs) -> tuple[Longs, Reals]:
        """The supports of candidates, and their standard errors."""
        steps = len(rows) * rows.num_levels
        if rows.factor == 1 and not rows.shifts.any():
            self._left -= steps
            return self._grower.supports(rows, extensions, numbers), np.zeros(len(numbers))
        self._left -= 4 * steps
        pattern, edges = extensions.edges(numbers)
        sizes = grown_sizes(extensions.patterns, pattern, edges)
        columns = self._grower.support.columns(sizes)
        with self._grower.pool.reserve(_IMAGE_BYTES * len(numbers) * columns, "the images of a sample"):
            certain, half = rows.shifts == 0, rows.groups & 1 == 0
            kinds = (certain, certain | half, certain | ~half, np.ones(len(rows), np.bool_))
            some = (rows.kept(np.flatnonzero(kind)) for kind in kinds)
            found, errors = images(*(self._images(extensions, one, pattern, edges, columns) for one in some))
            if self._grower.support.of == "images":
                found[np.arange(columns) >= sizes[:, None]] = np.inf
            at = np.arange(len(numbers)), found.argmin(axis=1)
            least, error = found[at], errors[at]
        error = np.sqrt(error**2 + least * (self._units - 1) / self._units) * self._units
        return np.rint(least * self._units).astype(np.int64), error

    def _images(
        self, extensions: RightmostExtensions, rows: LevelSample, pattern: Longs, edges: Ints, columns: int
    ) -> Longs:
        """How many images each vertex of candidates has, or in how many transactions they are: int64[k, columns]."""
        found, at, grower = np.zeros((len(pattern), columns), np.int64), 0, self._grower
        if len(rows) and len(pattern):
            for some in grower.sets(rows, extensions, pattern, edges, columns):
                with grower.pool.reserve(len(some) * grower.support.counting_bytes(columns), "the images of a sample"):
                    found[at : at + len(some)] = bits_on_host(some)
                at += len(some)
        return found

    def _rows(self, found: FrequentPatterns, bounds: Reals) -> Figure:
        """How many rows the frequent patterns have.

        Groups of the sample say how far that is off; and some patterns may be frequent, or not be so: `bounds`.
        """
        value, low, high = bounds.tolist()
        if self._sample.whole:
            return Figure(value, low, high)
        groups, known = np.zeros(GROUPS), 0.0
        for first, extensions, rows in self._batches(self._sample):
            _, numbers = _numbers_of(found, first, extensions)
            counts = self._child_counts(extensions, rows, numbers) * rows.weights * rows.factor
            sampled = (rows.shifts > 0) | (rows.factor > 1)
            known += float(counts[~sampled].sum())
            groups += np.bincount(rows.groups[sampled] >> 1, counts[sampled], GROUPS)
        off = spread(known, groups)
        return Figure(value, low * off.low / max(off.value, 1), high * off.high / max(off.value, 1))

    def _transactions_of(self, rows: LevelSample) -> Longs:
        transactions = self._work.graph.transactions
        assert transactions is not None
        found: Longs = transactions[rows.rows[1]].astype(np.int64)
        return found

    def _grow(self, found: FrequentPatterns) -> int:
        """Go on to the next level with a sample of its rows; return the bytes of its table."""
        limit, edges = self._limit(), found.patterns.num_edges
        found, blocks = self._some_patterns(found, limit)
        sample = self._some_transactions(float(found.rows.sum()) / self._units, limit)
        made = [np.empty((sample.num_levels + 1, 0), np.uint32)]
        others: list[NDArray[np.uint8]] = [np.empty((2, 0), np.uint8)]
        share = (limit << _MADE) / max(float(found.rows.sum()), 1)  # of the limit, for a row of the run
        for first, extensions, rows in self._batches(sample):
            lowest, numbers = _numbers_of(found, first, extensions)
            expected = float(found.rows[lowest : lowest + len(numbers)].sum())
            most = max(round(expected * share), len(numbers))
            rows, number, parent, vertex = self._children(extensions, rows, numbers, most, self._key(edges, 1, first))
            number = (number + lowest).astype(np.uint32)
            made.append(np.concatenate([number[None], rows.rows[1:, parent], vertex[None]]))
            others.append(np.stack([rows.shifts[parent], rows.groups[parent]]))
        shifts, groups = np.concatenate(others, axis=1)
        columns = np.concatenate(made, axis=1)
        grown = LevelSample(found.patterns, columns, shifts, groups, self._patterns_for * self._units)
        if blocks is not None:
            grown = grown.regrouped(blocks[columns[0]])
        self._nodes = np.column_stack([self._nodes[found.parents], found.rows])
        self._sample = grown.thinned(self._key(edges, 2), limit)
        return self._bytes(grown)

    def _some_patterns(self, found: FrequentPatterns, limit: int) -> tuple[FrequentPatterns, Longs | None]:
        """Leave patterns out where they are too many; return the blocks of the others, where some are left out."""
        steps = self._chosen * self._candidate_steps(found.patterns.num_edges + 1)
        most = min(max(int(self._left / _JUDGE_SHARE / max(steps, 1)), _PATTERNS[0]), _PATTERNS[1])
        if not self._sample.whole or int(found.rows.sum()) > limit:
            most = min(most, max(limit // int(_ROWS_OF_PATTERN * (self._plan.min_support / self._units) ** 0.5), 1))
        shift = (-(-len(found.patterns) // most) - 1).bit_length()
        if not shift:
            return found, None
        key = self._key(found.patterns.num_edges, 3)
        places, blocks = thinned(key, np.array([len(found.patterns)]), np.array([shift]))
        self._patterns_for <<= shift
        return found.selected(places), blocks

    def _some_transactions(self, rows: float, limit: int) -> LevelSample:
        """Leave transactions out where there are too many rows; the others must still tell what is frequent."""
        sample, shift = self._sample, 0
        if self._plan.support == "transactions":
            while rows > limit << shift and self._plan.min_support // (self._units << shift + 1) >= _LEAST_SUPPORT:
                shift += 1
        if not shift:
            return sample
        key = self._key(sample.patterns.num_edges, 4)
        places, blocks = thinned(key, np.array([len(self._transactions)]), np.array([shift]))
        self._transactions, self._units = self._transactions[places], self._units << shift
        block_of = np.full(self._work.graph.num_transactions, -1)
        block_of[self._transactions] = blocks
        block = block_of[self._transactions_of(sample)]
        kept = np.flatnonzero(block >= 0)
        return sample.kept(kept).regrouped(block[kept])

    def _bytes(self, grown: LevelSample) -> int:
        """About how many bytes the table of a level takes: a node where a row begins otherwise than the one before it.

        Of a sample no more than there are rows of the pattern without its last edges.
        """
        rows, (patterns, levels) = grown.rows, self._nodes.shape
        weights = grown.weights * self._units
        new = np.ones(len(grown), np.bool_)
        new[1:] = rows[0, 1:] != rows[0, :-1]
        size = _NODE_BYTES * patterns + _VALUE_BYTES * float(self._nodes[:, -1].sum())
        for level in range(1, levels):
            new[1:] |= rows[level, 1:] != rows[level, :-1]
            nodes = np.bincount(rows[0, new], weights[new], patterns)
            size += _NODE_BYTES * float(np.minimum(nodes, self._nodes[:, level - 1]).sum())
        return int(size * self._patterns_for)

    def _child_counts(self, extensions: RightmostExtensions, rows: LevelSample, numbers: Longs) -> Longs:
        """How many rows each row grows into, by some extensions: int64[n]."""
        xp = self._work.engine.xp
        kernel, growth = self._grower.stage.kernel(extensions.growth)
        alive = xp.asarray(_alive(extensions, numbers))
        counts: Longs = on_host(kernel.child_counts(xp.ascontiguousarray(xp.asarray(rows.rows)), growth, alive))
        return counts

    def _children(
        self, extensions: RightmostExtensions, rows: LevelSample, numbers: Longs, most: int, key: int
    ) -> tuple[LevelSample, Longs, Longs, NDArray[np.uint32]]:
        """Make the rows that some rows grow into by extensions; these are thinned out until there are about `most`.

        Returns
        -------
        LevelSample
            The rows that grow.
        int64[k], int64[k], uint32[k]
            The extension's place in `numbers`, ascending, the row, and the far end of the new edge.
        """
        xp = self._work.engine.xp
        counts = self._child_counts(extensions, rows, numbers)
        while int(counts.sum()) > 2 * most:
            rows, key = rows.thinned(key, most, counts), splitmix64(key)
            counts = self._child_counts(extensions, rows, numbers)
        self._left -= int(counts.sum())
        kernel, growth = self._grower.stage.kernel(extensions.growth)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        found, vertices = kernel.children(
            xp.ascontiguousarray(xp.asarray(rows.rows)),
            growth,
            xp.asarray(_alive(extensions, numbers)),
            xp.asarray(offsets),
        )
        number, parent = on_host(found).astype(np.int64), np.repeat(np.arange(len(rows)), counts)
        order = np.argsort(number, kind="stable")
        return rows, number[order], parent[order], on_host(vertices)[order]


def _alive(extensions: RightmostExtensions, numbers: Longs) -> NDArray[np.int32]:
    alive = np.full(extensions.total, -1, np.int32)
    alive[numbers] = np.arange(len(numbers))
    return alive


def _numbers_of(found: FrequentPatterns, first: int, extensions: RightmostExtensions) -> tuple[int, Longs]:
    """The first of the found patterns that grow from a batch, and the extensions that lead to these."""
    low, high = np.searchsorted(found.parents, [first, first + len(extensions.patterns)]).tolist()
    return low, extensions.numbers(found.parents[low:high] - first, found.patterns.codes[low:high, -1])


def _bounds(values: Longs, error: Reals, least: int, kept: int, each: Longs | None = None) -> Reals:
    """How many of some values, `kept` of which are above a threshold and wanted: an estimate, at least, at most.

    With `each`, the sum of what belongs to each of them.
    """
    each = np.ones(len(values), np.int64) if each is None else each
    above, sure, possible = (int(each[values + sign * 2 * error >= least].sum()) for sign in (0, -1, 1))
    if not above:
        return np.array([0.0, 0.0, possible])
    return np.array([kept, kept * (min(sure, above) / above), kept * (max(possible, above) / above)])


def _joined(parts: Sequence[GrownPatterns]) -> GrownPatterns:
    columns = zip(*parts, strict=True) if parts else ([empty] for empty in _NONE)
    return GrownPatterns(*(np.concatenate(column) for column in columns))
