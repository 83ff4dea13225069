"""The filtering stage: keep some rows, and compact back to the root."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.pages import NeighbourRange, RowReads
from longwall.stages.base import Stage, WorkerContext
from longwall.stages.extension.adjacency_lists import find_arcs, is_edge
from longwall.stages.stage_timer import StageTimer
from longwall.storage.errors import InputError
from longwall.storage.tables.embedding_table import Columns, EmbeddingTable

Predicate = Callable[[Any, Any, Any], Any]
Kept = tuple[EmbeddingTable, int]
"""Rows that are kept, and how many were looked at."""


def filter_rows(table: EmbeddingTable, keep: Predicate, graph: Any) -> EmbeddingTable:
    """Keep the rows for which a function holds.

    Parameters
    ----------
    table
        A v-ET or an e-ET.
    keep
        Called as ``keep(columns, graph, xp)``: `columns[l]` is the array of level l, int64 and read-only, flattened
        when it is used; `xp` is numpy or cupy. Returns a bool array with one entry per row.
    graph
        Handed to `keep`.

    Raises
    ------
    InputError
        If `keep` returns anything else than one bool per row.
    """
    xp = table.xp
    mask = xp.asarray(keep(Columns(table), graph, xp))
    if mask.shape != (len(table),) or mask.dtype != bool:
        raise InputError(
            f"a filter must return a bool array of shape ({len(table)},), one entry per row; "
            f"it returned {mask.dtype} of shape {mask.shape}"
        )
    return table.filtered(mask)


class VerifyContext(WorkerContext, Protocol):
    """What `Verify` works with."""

    graph: GraphArrays
    xp: Any
    timer: StageTimer
    most_verified: int
    """Rows that are verified at once."""
    edge_labels: Any
    """int32[2m]: the labels of the arcs, on the host where the device has no room for them; None: they are not read."""

    def fit(self, stage: Stage, most: int, work: Callable[[int], Kept]) -> Kept:
        """Do a piece of work that is as large as memory allows, `most` at most."""
        ...

    def waiting(self) -> int:
        """Return how many tables wait."""
        ...

    def wait(self, rows: EmbeddingTable) -> None:
        """Keep rows until `resume`, on disk where memory is short."""
        ...

    def resume(self) -> EmbeddingTable:
        """Return the rows that were last kept."""
        ...


class Verification(Stage):
    """Keep the rows whose last vertex fits earlier ones."""

    level: int
    """Number of the last level."""

    verb = "filter"

    @property
    @abstractmethod
    def lists(self) -> int:
        """How often the adjacency of the last vertex is looked at."""

    @abstractmethod
    def fits(self, rows: EmbeddingTable, context: VerifyContext) -> Any:
        """Return bool[rows]: which rows are kept."""

    def run(self, chunk: EmbeddingTable, context: VerifyContext) -> Iterator[EmbeddingTable]:
        """Yield the rows that are kept."""
        waiting, below = [chunk], context.waiting()
        del chunk
        while waiting and not context.done:
            rows = waiting.pop()
            with context.timer.time(self.level):
                kept, size = context.fit(
                    self, min(context.most_verified, len(rows)), partial(self._kept, rows, context)
                )
            if size < len(rows):
                context.wait(rows.sliced(size, len(rows)))
            made = [kept]
            del rows, kept
            if len(made[0]):
                yield made.pop()
            if context.waiting() > below:
                waiting.append(context.resume())

    def _kept(self, chunk: EmbeddingTable, context: VerifyContext, size: int) -> Kept:
        rows = chunk.sliced(0, size).to(context.xp)
        if context.graph.pages is not None:
            reads = RowReads(rows.column(self.level), NeighbourRange.ALL, self.lists)
            context.graph.pages.touch(self.level, [reads])
        return rows.filtered(self.fits(rows, context)), size


@dataclass(frozen=True)
class Verify(Verification):
    """Keep the rows whose last vertex is, or is not, adjacent to some earlier ones: binary joins with the edges.

    The worst-case optimal join intersects the lists of all matched neighbours; binary joins extend by one edge of the
    pattern, and verify the others afterwards (GAMMA, section III-A).

    Attributes
    ----------
    level
        Number of the last level.
    present, absent
        Earlier levels whose vertex must, and must not, be adjacent to it.
    """

    level: int
    present: tuple[int, ...]
    absent: tuple[int, ...]

    def describe(self) -> str:
        """See `Stage`."""
        parts = [f"{verb} {', '.join(map(str, levels))}" for verb, levels in self._conditions()]
        return f"filter       rows whose vertex of level {self.level} {' and '.join(parts)}"

    def _conditions(self) -> list[tuple[str, tuple[int, ...]]]:
        both = (("is adjacent to those of levels", self.present), ("is not adjacent to those of levels", self.absent))
        return [condition for condition in both if condition[1]]

    @property
    def lists(self) -> int:
        """See `Verification`."""
        return len(self.present) + len(self.absent)

    def fits(self, rows: EmbeddingTable, context: VerifyContext) -> Any:
        """See `Verification`."""
        last, mask = rows.column(self.level), context.xp.ones(len(rows), bool)
        for levels, adjacent in ((self.present, True), (self.absent, False)):
            for level in levels:
                mask &= is_edge(context.graph, last, rows.column(level), context.xp) == adjacent
        return mask


@dataclass(frozen=True)
class VerifyLabels(Verification):
    """Keep the rows whose last vertex is joined to some earlier ones by edges with certain labels.

    Attributes
    ----------
    level
        Number of the last level.
    labels
        Earlier levels, and the label of the edge to each.
    """

    level: int
    labels: tuple[tuple[int, int], ...]

    def describe(self) -> str:
        """See `Stage`."""
        parts = (f"label {label} to level {level}" for level, label in self.labels)
        return f"filter       rows whose vertex of level {self.level} has edges with {' and '.join(parts)}"

    @property
    def lists(self) -> int:
        """See `Verification`."""
        return len(self.labels)

    def fits(self, rows: EmbeddingTable, context: VerifyContext) -> Any:
        """See `Verification`."""
        last, mask, xp = rows.column(self.level), context.xp.ones(len(rows), bool), context.xp
        on_host = isinstance(context.edge_labels, np.ndarray)
        for level, label in self.labels:
            arcs = find_arcs(context.graph, last, rows.column(level), xp)
            mask &= arcs >= 0
            places = arcs.get() if on_host and xp is not np else arcs
            mask &= xp.asarray(context.edge_labels[places]) == label
        return mask
