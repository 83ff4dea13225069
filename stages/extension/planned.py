"""The extension stage: a table in, the same table with one more level out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from longwall.kernels.interface.pages import Pages
from longwall.kernels.interface.search import Searcher
from longwall.stages.base import Stage, WorkerContext
from longwall.storage.tables.embedding_table import EmbeddingTable

Array = Any  # a NumPy or a CuPy array


class Extended(NamedTuple):
    """The result of an extension.

    Attributes
    ----------
    rows
        The extended rows (rows without extension are compacted away).
    rest
        The rows that were not extended for want of room, None where there are none.
    begun
        If not 0, `rows` are of the first row alone, by vertices below this one; it is the first of the rest too.
    """

    rows: EmbeddingTable
    rest: EmbeddingTable | None
    begun: int = 0


class PendingRows(NamedTuple):
    """Rows that are to be extended, on the host or in the engine's memory; the first by vertices from `first` on."""

    rows: EmbeddingTable
    first: int = 0


class ExtensionStep(NamedTuple):
    """The result of an extension inside the budgets.

    Attributes
    ----------
    rows
        The extended rows.
    remainder
        Rows that were not extended; what is in the engine's memory comes last.
    resume
        A row that is not extended by all of its vertices.
    """

    rows: EmbeddingTable
    remainder: list[EmbeddingTable]
    resume: PendingRows | None = None


class ExtendContext(WorkerContext, Protocol):
    """What `Extend` works with."""

    def extend(self, pending: PendingRows) -> ExtensionStep:
        """Extend rows by one level as far as there is room."""
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


@dataclass(frozen=True)
class Extend(Stage):
    """Add one level of a search to the rows of a chunk, as many rows at a time as there is room for.

    The BFS-DFS hybrid of G-thinkerCG, section III: what there is no room for waits, and is extended when the extended
    rows have gone to the end.

    Attributes
    ----------
    level
        Number of the level that is added.
    vertex
        The pattern vertex that it is for, as text.
    candidates
        Number of the set that the new vertices are of.
    sets
        How the sets of this level are computed, as text.
    """

    level: int
    vertex: str
    candidates: int
    sets: tuple[str, ...]

    verb = "extend"

    def describe(self) -> str:
        """See `Stage`."""
        text = f"level {self.level:<6} extend to pattern vertex {self.vertex}: candidates are set {self.candidates}"
        return "\n".join([text, *(f"             {text}" for text in self.sets)])

    def run(self, chunk: EmbeddingTable, context: ExtendContext) -> Iterator[EmbeddingTable]:
        """Yield the extended rows."""
        pending: PendingRows | None = PendingRows(chunk)
        del chunk
        below = context.waiting()
        while pending is not None and len(pending.rows):
            step = context.extend(pending)
            for rest in step.remainder:
                context.wait(rest)
            made, pending = [step.rows], step.resume
            del step
            yield made.pop()
            if pending is None and context.waiting() > below:
                pending = PendingRows(context.resume())


def extend_planned(
    table: EmbeddingTable,
    searcher: Searcher,
    capacity: int,
    pages: Pages | None = None,
    first: int = 0,
    most: int | None = None,
) -> Extended:
    """Extend by the next level of the searcher's program, as far as there is room.

    Parameters
    ----------
    table
        Rows to extend.
    searcher
        The engine's workspace for the program.
    capacity
        Largest number of new rows.
    pages
        The pages of the graph that the engine reads; made ready for what the extension reads.
    first
        The first row is extended by vertices from this one on.
    most
        Largest number of rows that are looked at; None: all. What others read is not counted beforehand.
    """
    head = table if most is None else table.sliced(0, min(most, len(table)))
    rows = head.columns()
    if pages is not None:
        pages.prepare(table.num_levels, searcher.reads(rows, counting=False))
    result = searcher.extend_rows(rows, capacity, first)
    counts = result.counts
    if result.begun:
        return Extended(table.sliced(0, 1).extended(counts[:1], result.values), table, result.begun)
    if not result.waiting and head is table:
        return Extended(table.extended(counts, result.values), None)
    if result.leading or not result.waiting:
        done = len(head) - result.waiting
        extended = table.sliced(0, done).extended(counts[:done], result.values)
        return Extended(extended, table.sliced(done, len(table)))
    # `extended` drops rows without children, and those that wait alike.
    extended = head.extended(counts, result.values)
    if head is not table:
        counts = _padded(counts, len(table), table.xp)
    return Extended(extended, table.filtered(counts < 0))


def _padded(counts: Array, size: int, xp: Any) -> Array:
    """The counts with those of rows that were not looked at: negative ones."""
    padded = xp.full(size, -1, dtype=counts.dtype)
    padded[: counts.size] = counts
    return padded
