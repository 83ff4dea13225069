"""Predict how many rows each level of a search will have, from a sample of its tree.

Knuth (1975) estimates the size of a tree from random walks down to its leaves; WanderJoin (2016) does the same for
joins; stochastic enumeration (Rubinstein, 2013) widens the walk to a set of rows, so that one heavy subtree does not
decide alone. Here, too, a set of rows goes down. It starts at a sample of the arcs; the engine's kernel
extends all of it; and where a level has more rows than may be kept, a kept row stands for 2, 4, 8, ... neighbouring
ones. Rows keep their order, hubs first, so each part of the graph has its share of every sample. All rows of a level
have the same chance to be kept, so the number of rows times its inverse is right on average (Horvitz and Thompson).

The spread of several independent descents says how far off their mean may be. The effort
is a number of steps, not of seconds: the same plan, graph, memory and seed give the same prediction on every
engine and machine.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from longwall.kernels.interface.engine import WorkspaceTooLarge
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.search import Extension
from longwall.kernels.interface.search_program import SetKind, admissible
from longwall.pipeline.planning.search.search_plan import MatchPlan
from longwall.pipeline.planning.search.search_planner import ROW_STEPS
from longwall.pipeline.planning.stratified_sample import StratifiedSample, positions, splitmix64
from longwall.storage.errors import RunError
from longwall.storage.memory.machine_budget import require
from longwall.storage.memory.resources import Resources
from longwall.storage.memory.sizes import round_size

Array = Any  # a NumPy or a CuPy array

EFFORT = 1e8  # steps of a prediction
VALUE_BYTES, OFFSET_BYTES = 4, 8  # of a node of an embedding table; nodes of the last level have no offset

_DESCENTS = 16
_STUDENT = 2.131  # for intervals of 95 %, from 16 descents
_RULE_OF_THREE = 3  # what n rows do not show is rarer than 3 in n, at 95 %
_ROWS = 64, 1 << 15  # fewest and most rows per level of a descent
_ARCS = 1 << 12, 1 << 17  # fewest and most arcs at which a descent starts
_PILOT_ROWS = 256
_WHOLE_ROWS = 1 << 20  # per level of a search that is predicted by running it
_ARCS_AT_ONCE = 1 << 16
_ARC_BYTES = 80  # of an arc until it is a row
_CHUNK_ROWS = 1 << 18


@dataclass(frozen=True)
class LevelEstimate:
    """Prediction for a level: a column of the embedding table, or the count that follows the last one.

    Attributes
    ----------
    level
        Number of the column. The count of embeddings has the number of the last vertex.
    rows
        Predicted number of rows, as the extension writes them: those that will have no extension are among them.
    low, high
        Interval that holds the true number in 95 of 100 predictions; equal where `rows` is exact.
    bytes
        Of the level's part of the table (a prefix tree); 0 for levels that are counted, never written.
    """

    level: int
    rows: float
    low: float
    high: float
    bytes: int

    @property
    def exact(self) -> bool:
        """Whether the number of rows is known."""
        return self.low == self.high


def estimate_levels(
    plan: MatchPlan, graph: GraphArrays, resources: Resources, memory: int, *, effort: float = EFFORT, seed: int = 0
) -> tuple[LevelEstimate, ...]:
    """Predict the number of rows of every level of a plan.

    Parameters
    ----------
    plan
        The search.
    graph
        The data graph, where the engine reads it.
    resources
        The engine that extends the sampled rows; one searcher is made.
    memory
        Bytes that sampling may take, where the engine works.
    effort
        Steps (elements read and rows written) that may be spent, about. A search that takes fewer is run as a whole,
        and the prediction is exact.
    seed
        Names the sample.

    Returns
    -------
    tuple of LevelEstimate
        One per enumerated level; where the last vertices are counted, one more for the embeddings.

    Raises
    ------
    InputError
        If `memory` has no room for the extensions of a few rows.
    RunError
        If the kernels' workspace does not fit, a count does not fit 64-bit integers, or the engine was interrupted.
    """
    sampler = _Sampler(plan, graph, resources, memory)
    whole = sampler.enumerate(effort)
    if whole is not None:
        return _summarize(plan, graph, [whole])
    # The pilot decides how large the others are, so it is no part of the mean: that would make large pilots count less.
    pilot = sampler.descend(_PILOT_ROWS, _ARCS[0], splitmix64(seed))
    rows = _clip(_PILOT_ROWS * effort / _DESCENTS / max(pilot.steps, 1.0), _ROWS)
    arcs = _clip(rows * graph.num_arcs / max(pilot.rows[1], 1.0), _ARCS)
    return _summarize(plan, graph, [sampler.descend(rows, arcs, splitmix64(seed, 1 + i)) for i in range(_DESCENTS)])


def predicted_rows(plan: MatchPlan, estimates: Sequence[LevelEstimate]) -> dict[int, float]:
    """Return predictions by the levels of a run's metrics.

    Returns
    -------
    dict of int to float
        Level to the predicted `rows_out` of its stage: the export follows the last level, and a count is not yet
        divided by the redundancy.
    """
    rows = {one.level: one.rows for one in estimates}
    last = estimates[-1]
    return rows | ({last.level: last.rows * plan.redundancy} if plan.suffix else {plan.program.depth: last.rows})


@dataclass
class _Descent:
    """Findings of one descent, level by level; a count is the last level."""

    rows: list[float] = field(default_factory=list)
    """Estimated number of rows."""
    seen: list[int] = field(default_factory=list)
    """Rows that were there: no level has fewer."""
    parents: list[int] = field(default_factory=list)
    """Rows (or arcs) that were extended to see them."""
    weights: list[int] = field(default_factory=list)
    """Rows for which one of them stands."""
    steps: float = 0.0
    """Effort that was spent on the extensions."""

    def add(self, rows: float, seen: int, parents: int, weight: int) -> None:
        self.rows.append(rows)
        self.seen.append(seen)
        self.parents.append(parents)
        self.weights.append(weight)


class _Sampler:
    """The engine's workspace for a plan, and the sizes that fit the memory."""

    def __init__(self, plan: MatchPlan, graph: GraphArrays, resources: Resources, memory: int):
        engine, option = resources.engine, resources.work.option
        self._plan, self._graph, self._xp = plan, graph, engine.xp
        half = memory // 2
        # Rows that are extended and a copy, rows that are kept and a copy; counts, sums, positions, parents.
        row_bytes = 20 * plan.program.depth + 64
        least = 4 * (graph.max_degree + 1) + _ROWS[0] * (row_bytes + _ARC_BYTES)
        require("predicting rows", least, half, option)
        self._arcs_at_once = _clip((half - least) / 4 / _ARC_BYTES, (_ROWS[0], _ARCS_AT_ONCE))
        self._capacity = graph.max_degree + 1 + _clip((half - least) / 4 / 4, (0, _CHUNK_ROWS))
        self._most = _ROWS[0] + int((half - least) / 2 / row_bytes)
        try:
            self._searcher = engine.kernels.searcher(engine.device, graph, plan.program, half)
        except WorkspaceTooLarge as failure:
            raise RunError(
                f"predicting rows needs {round_size(failure.needed)} of workspace, {option} leaves "
                f"{round_size(half)}: raise {option}"
            ) from None

    def enumerate(self, effort: float) -> _Descent | None:
        """Run the whole search; None where that takes too many steps or rows."""
        limit = min(_WHOLE_ROWS, self._most)
        return self._descend(limit, 0, 0, effort) if self._graph.num_arcs <= limit else None

    def descend(self, rows: int, arcs: int, key: int) -> _Descent:
        """Go down within a limit of rows per level, from a sample within a limit of arcs (one more of each)."""
        shift = (-(-self._graph.num_arcs // arcs) - 1).bit_length()
        descent = self._descend(min(rows, self._most), shift, key, math.inf)
        assert descent is not None
        return descent

    def _descend(self, limit: int, shift: int, key: int, effort: float) -> _Descent | None:
        program, xp, whole = self._plan.program, self._xp, effort < math.inf
        found = _Descent()
        kept = StratifiedSample(limit, splitmix64(key, 1), 2, xp)
        self._start(kept, shift, splitmix64(key, 0), found)
        weight = kept.weight << shift
        for level in range(2, program.depth):
            rows = kept.rows()
            found.steps += self._reading(rows)
            kept = StratifiedSample(limit, splitmix64(key, level), level + 1, xp)
            for piece, extension in self._extensions(rows):
                found.steps += extension.values.size
                if whole and (found.steps > effort or kept.weight > 1):
                    return None
                at = kept.offer(extension.values.size)
                parents = xp.searchsorted(xp.cumsum(xp.maximum(extension.counts, 0)), at, side="right")
                kept.keep(xp.concatenate([xp.take(piece, parents, axis=1), extension.values[at][None]]))
            found.add(kept.seen * weight, kept.seen, rows.shape[1], weight)
            weight *= kept.weight
        if self._plan.suffix:
            rows = kept.rows()
            found.steps += self._reading(rows)
            counted = self._count(rows)
            found.add(counted * weight / self._plan.redundancy, counted // self._plan.redundancy, rows.shape[1], weight)
        return None if whole and (found.steps > effort or weight > 1) else found

    def _start(self, kept: StratifiedSample, shift: int, key: int, found: _Descent) -> None:
        """Read one arc per block of 2**shift, and keep the ordered edges that the source stage would keep."""
        graph, xp, levels = self._graph, self._xp, self._plan.program.levels
        blocks, roots = -(-graph.num_arcs >> shift), 0.0
        for block in range(0, blocks, self._arcs_at_once):
            arcs = positions(key, shift, block, min(block + self._arcs_at_once, blocks), xp)
            arcs = arcs[arcs < graph.num_arcs]
            low = xp.searchsorted(graph.indptr, arcs, side="right") - 1
            high = graph.indices[arcs]
            fitting = admissible(graph, levels[0], low)
            # A vertex is met at each of its arcs.
            roots += _total(fitting / (graph.indptr[low + 1] - graph.indptr[low]), xp)
            fitting &= admissible(graph, levels[1], high)
            if levels[1].below:
                fitting &= high < low
            if levels[1].above:
                fitting &= high > low
            places = xp.flatnonzero(fitting)
            at = places[kept.offer(int(places.size))]
            kept.keep(xp.stack([low[at].astype(xp.uint32), high[at]]))
        # Exact where every arc was looked at, but for rounding.
        found.add(round(roots) if shift == 0 else roots * (1 << shift), 0, blocks, 1 << shift)
        found.add(kept.seen << shift, kept.seen, blocks, 1 << shift)

    def _reading(self, rows: Array) -> float:
        """Steps that the set operations of rows take, about: each reads an adjacency, once per prefix."""
        graph, xp = self._graph, self._xp
        number = int(rows.shape[1])
        steps: float = ROW_STEPS * number
        if not number:
            return steps
        fresh = xp.zeros(number, bool)  # where a row's prefix is not that of the row before
        fresh[0] = True
        for depth, column in enumerate(rows):
            fresh[1:] |= column[1:] != column[:-1]
            for op in self._plan.program.sets:
                if op.depth == depth and op.kind != SetKind.ADJACENCY:
                    vertices = rows[op.adjacent].astype(xp.int64)[fresh]
                    steps += _total(graph.indptr[vertices + 1] - graph.indptr[vertices], xp)
        return steps

    def _extensions(self, rows: Array) -> Iterator[tuple[Array, Extension]]:
        """Extend rows piece by piece; yield each piece and its extension."""
        xp = self._xp
        while rows.shape[1]:
            extension = self._searcher.extend_rows(xp.ascontiguousarray(rows), self._capacity)
            waiting = xp.flatnonzero(extension.counts < 0)
            if waiting.size == rows.shape[1] or extension.begun:
                raise RunError("the prediction was interrupted, or has too little memory")
            yield rows, extension
            rows = rows[:, waiting]

    def _count(self, rows: Array) -> int:
        try:
            return self._searcher.count_rows(rows) if rows.shape[1] else 0
        except OverflowError as failure:
            raise RunError(str(failure)) from None


def _total(values: Array, xp: Any) -> float:
    """Sum of an array; a prefix sum needs no compilation on a device."""
    return float(xp.cumsum(values)[-1]) if values.size else 0.0


def _clip(value: float, bounds: tuple[int, int]) -> int:
    return int(min(max(value, bounds[0]), bounds[1]))


def _summarize(plan: MatchPlan, graph: GraphArrays, descents: Sequence[_Descent]) -> tuple[LevelEstimate, ...]:
    """Means over the descents, and intervals from their spread."""
    estimates: list[LevelEstimate] = []
    before = float(graph.num_arcs)
    for level in range(len(descents[0].rows)):
        sample = [one.rows[level] for one in descents]
        rows = sum(sample) / len(sample)
        low = high = rows
        if any(one.weights[level] > 1 for one in descents):
            parents = sum(one.parents[level] for one in descents)
            unseen = _RULE_OF_THREE / max(parents, 1)
            low, high = _interval(rows, sample, unseen) if rows else (0.0, before * unseen)
            low = min(max(low, *(one.seen[level] for one in descents)), rows)
        written = level < plan.program.depth and (not plan.suffix or level < 2)
        last = level == plan.program.depth - 1
        size = VALUE_BYTES + (0 if last else OFFSET_BYTES) if written else 0
        number = level if level < plan.program.depth else plan.pattern.num_vertices - 1
        estimates.append(LevelEstimate(number, rows, low, high, round(rows * size)))
        before = rows or high
    return tuple(estimates)


def _interval(rows: float, sample: Sequence[float], unseen: float) -> tuple[float, float]:
    """A 95 % interval around the mean of independent estimates.

    Estimates of tree sizes are skewed to the right, so the interval is symmetric in the logarithm.
    """
    variance = sum((one - rows) ** 2 for one in sample) / (len(sample) - 1)
    factor = math.exp(max(_STUDENT * math.sqrt(variance / len(sample)) / rows, unseen))
    return rows / factor, rows * factor
