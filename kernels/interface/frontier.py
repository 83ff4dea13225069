"""The frontier: the vertices whose adjacency the next extension reads, known before it runs (GAMMA section IV)."""

from collections import Counter
from typing import Any

from longwall.kernels.interface.pages import NeighbourRange, RowReads
from longwall.kernels.interface.search_program import SearchProgram, SetOp

Array = Any  # a NumPy or a CuPy array


def row_lists(program: SearchProgram, columns: int) -> tuple[list[tuple[int, NeighbourRange]], tuple[int, ...]]:
    """Name the parts of adjacencies that a row's set operations read.

    Returns
    -------
    lists : list of (column, part)
        Each once.
    numbers : tuple of int
        For every set of the program, which list it reads; -1 for the sets of greater depths.
    """
    named = [(op.adjacent, _part(op)) if op.depth < columns else None for op in program.sets]
    lists = sorted({one for one in named if one is not None})
    return lists, tuple(-1 if one is None else lists.index(one) for one in named)


def reads_smaller_only(program: SearchProgram) -> bool:
    """Return whether a program reads no more of any row than its neighbours with a smaller id."""
    return all(_part(op) == NeighbourRange.SMALLER for op in program.sets)


def frontier(program: SearchProgram, rows: Array, *, grouped: bool = True) -> list[RowReads]:
    """Find what the set operations read when rows are extended by one level.

    A set operation of depth d is run once for every prefix of d + 1 columns. Only the bound by the row's owner
    counts: where the others lie in a row is not known without searching it. That a set may come out empty, and end
    the search before the sets after it are read, is not known either.

    Parameters
    ----------
    program
        What is run; only the sets of the rows' depths are read.
    rows : uint32[columns, n]
        Distinct rows; those that share a prefix stand together.
    grouped
        Rows share the sets of their common prefix; if not, every row runs every set operation.

    Returns
    -------
    list of Reads
        Vertices and prefixes are views of `rows`: nothing is computed here, and no memory taken.
    """
    columns = rows.shape[0]
    deepest = columns - 1
    operations = Counter(
        (op.depth if grouped else deepest, op.adjacent, _part(op)) for op in program.sets if op.depth < columns
    )
    return [
        # Rows are distinct, so the longest prefixes are too.
        RowReads(rows[column], part, times, None if depth == deepest else rows[: depth + 1])
        for (depth, column, part), times in sorted(operations.items())
    ]


def _part(op: SetOp) -> NeighbourRange:
    """The part of the row that is left by the bound that its owner sets."""
    if op.below >> op.adjacent & 1:
        return NeighbourRange.SMALLER
    return NeighbourRange.LARGER if op.above >> op.adjacent & 1 else NeighbourRange.ALL
