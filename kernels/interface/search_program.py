"""The search program: what both engines execute to extend embeddings or to count them.

A program is the compiled form of a matching order. It holds, for every depth of the search, the set
operations that become possible once the vertex at that depth is known. Every set is computed as early as
possible and once (code motion; the reuse of intersections of T-DFS section III-D is the special case of equal
sets), and trimmed by the symmetry-breaking bounds that all of its readers share.

This module only holds data; :mod:`longwall.pipeline.planning.search.search_planner` builds it, the engines run it.
"""

from dataclasses import astuple, dataclass, replace
from enum import IntEnum
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.graph_arrays import GraphArrays


class SetKind(IntEnum):
    """How a set comes about."""

    ADJACENCY = 0  # the neighbours of one matched vertex, read in place
    LABELLED = 1  # the neighbours of one matched vertex that carry a label, copied
    INTERSECT = 2  # an earlier set and the neighbours of one matched vertex
    SUBTRACT = 3  # an earlier set without the neighbours of one matched vertex


@dataclass(frozen=True)
class SetOp:
    """One set operation; the position in `SearchProgram.sets` is the number of the set.

    Attributes
    ----------
    depth
        The depth after whose vertex the operation runs.
    kind
        See :class:`SetKind`.
    source
        Number of the set that is read, -1 for ADJACENCY and LABELLED.
    adjacent
        Depth of the matched vertex whose adjacency is read.
    below, above
        Bit masks over depths: elements must be smaller (larger) than these matched vertices.
    label
        Label that the elements must carry, -1 for any; see `in_slices` for graphs that are laid out by label.
    required
        An empty set ends the search below this point.
    size_only
        Only the size is wanted; the elements are never written.
    marked
        Later intersections probe this set: engines may keep its members marked.
    """

    depth: int
    kind: SetKind
    source: int
    adjacent: int
    below: int = 0
    above: int = 0
    label: int = -1
    required: bool = True
    size_only: bool = False
    marked: bool = False


@dataclass(frozen=True)
class Level:
    """How the vertex at one depth is chosen.

    Attributes
    ----------
    candidates
        Number of the set of candidates; -1 at depths 0 and 1, which the source stage fills with edges.
    below, above
        Bit masks over earlier depths: symmetry-breaking bounds.
    distinct
        Bit mask over earlier depths whose vertex could otherwise be chosen again.
    label
        Label that the vertex must carry, -1 for any.
    degree
        Smallest degree that the vertex may have.
    """

    candidates: int
    below: int = 0
    above: int = 0
    distinct: int = 0
    label: int = -1
    degree: int = 1


@dataclass(frozen=True)
class Block:
    """The candidates that a block of suffix vertices shares, as a size.

    Attributes
    ----------
    candidates
        Number of the set.
    below, above
        Bit masks of bounds (only where the suffix is a single vertex).
    members
        Pairs (depth, mask): the matched vertex at `depth` lies in the set, and must be left out, exactly if it
        is adjacent to the matched vertices of `mask`.
    """

    candidates: int
    below: int = 0
    above: int = 0
    members: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class SearchProgram:
    """A compiled matching order.

    Attributes
    ----------
    sets
        Set operations, sorted by depth.
    levels
        One entry per depth that is enumerated; the vertices of the suffix are only counted.
    blocks, terms
        The number of ways to place the suffix is the sum over `terms` of coefficient times the product of the
        sizes of its blocks (inclusion-exclusion over set partitions of the suffix; GraphPi, SC 2020).
    """

    sets: tuple[SetOp, ...]
    levels: tuple[Level, ...]
    blocks: tuple[Block, ...] = ()
    terms: tuple[tuple[int, tuple[int, ...]], ...] = ((1, ()),)

    def __hash__(self) -> int:
        # To hash all sets and levels would take 5 us.
        return hash((len(self.sets), self.sets[-1:], self.levels[-1:], self.blocks, self.terms))

    @property
    def depth(self) -> int:
        """Number of depths that are enumerated."""
        return len(self.levels)


@lru_cache(maxsize=1024)  # it is needed at every extension
def to_extend(program: SearchProgram, columns: int) -> SearchProgram:
    """The part of a program that extends rows of `columns` vertices by one.

    It has the sets that the new vertex is chosen from, and those that were not there when the rows were made and must
    not be empty.
    """
    unseen = 0 if columns == 2 else columns - 1
    wanted = {s for s, op in enumerate(program.sets) if op.required and unseen <= op.depth < columns}
    levels = program.levels[: columns + 1]
    return _with_sets(replace(program, levels=levels, blocks=(), terms=((1, ()),)), {levels[-1].candidates} | wanted)


@lru_cache(maxsize=1024)
def to_count(program: SearchProgram, columns: int) -> SearchProgram:
    """The part of a program that counts below rows of `columns` vertices."""
    read = {level.candidates for level in program.levels[columns:]} | {block.candidates for block in program.blocks}
    return _with_sets(program, read | {s for s, op in enumerate(program.sets) if op.depth >= columns})


@lru_cache(maxsize=1024)
def in_slices(program: SearchProgram, labels: tuple[int, ...]) -> SearchProgram:
    """A program for a graph whose rows are laid out by label; see `GraphArrays.slice_labels`. The program without any.

    Sets of one label read slices: the neighbours with a label are read in place, and `SetOp.label` is the number of the
    slice that a set operation reads, -1 where it reads the whole row.
    """
    if not labels:
        return program
    sets: list[SetOp] = []
    for op in program.sets:
        if op.kind == SetKind.LABELLED:
            sets.append(replace(op, kind=SetKind.ADJACENCY, label=labels.index(op.label)))
        else:
            sets.append(replace(op, label=sets[op.source].label if op.source >= 0 else -1))
    return replace(program, sets=tuple(sets))


def emitted_set(program: SearchProgram, columns: int) -> int:
    """The set that only the last level reads, made for each row anew: it need not be kept; -1 if there is none."""
    s = program.levels[-1].candidates
    kept = program.sets[s].kind == SetKind.ADJACENCY or program.sets[s].depth < columns - 1
    return -1 if kept or any(op.source == s for op in program.sets) else s


def _with_sets(program: SearchProgram, wanted: set[int]) -> SearchProgram:
    """The program with the wanted sets, and those that they are made of, alone."""
    for s in range(len(program.sets) - 1, -1, -1):
        if s in wanted and program.sets[s].source >= 0:
            wanted.add(program.sets[s].source)
    number = {s: i for i, s in enumerate(sorted(wanted - {-1}))}
    probed = {program.sets[s].source for s in number if program.sets[s].kind == SetKind.INTERSECT}
    return replace(
        program,
        sets=tuple(
            replace(op, source=number.get(op.source, -1), marked=op.marked and s in probed)
            for s, op in enumerate(program.sets)
            if s in number
        ),
        levels=tuple(replace(level, candidates=number.get(level.candidates, -1)) for level in program.levels),
        blocks=tuple(replace(block, candidates=number[block.candidates]) for block in program.blocks),
    )


@dataclass(frozen=True)
class ProgramArrays:
    """A program as integer arrays, the form that compiled kernels read.

    Attributes
    ----------
    sets : int64[num_sets, 10]
        depth, kind, source, adjacent, below, above, label, required, size_only, number of its marks (-1: not marked).
    first_set : int64[depth + 1]
        `sets[first_set[d]:first_set[d + 1]]` run at depth d.
    levels : int64[depth, 6]
        candidates, below, above, distinct, label, degree.
    blocks : int64[num_blocks, 3]
        candidates, below, above.
    members : int64[num_members, 3]
        block, depth, adjacency mask.
    terms : int64[num_terms, width]
        coefficient, then block numbers, padded with -1.
    num_marks : int
        Number of sets that are marked.
    """

    sets: NDArray[np.int64]
    first_set: NDArray[np.int64]
    levels: NDArray[np.int64]
    blocks: NDArray[np.int64]
    members: NDArray[np.int64]
    terms: NDArray[np.int64]
    num_marks: int


def pack(program: SearchProgram) -> ProgramArrays:
    """Turn a program into integer arrays (never empty, so that kernels see one type and shape)."""
    marks: dict[int, int] = {}
    for number, op in enumerate(program.sets):
        if op.marked:
            marks[number] = len(marks)
    # All fields in their order; the last one, whether a set is marked, becomes the number of its marks.
    rows = [[*astuple(op)[:-1], marks.get(number, -1)] for number, op in enumerate(program.sets)]
    depths = [op.depth for op in program.sets]
    first = np.searchsorted(np.array(depths, dtype=np.int64), np.arange(program.depth + 1), side="left")
    width = max(len(blocks) for _, blocks in program.terms)
    return ProgramArrays(
        sets=np.array(rows, dtype=np.int64).reshape(-1, 10),
        first_set=first.astype(np.int64),
        levels=np.array([astuple(level) for level in program.levels], dtype=np.int64),
        blocks=np.array([[b.candidates, b.below, b.above] for b in program.blocks], dtype=np.int64).reshape(-1, 3),
        members=np.array(
            [[i, depth, mask] for i, b in enumerate(program.blocks) for depth, mask in b.members],
            dtype=np.int64,
        ).reshape(-1, 3),
        terms=np.array([[c, *blocks, *[-1] * (width - len(blocks))] for c, blocks in program.terms], dtype=np.int64),
        num_marks=len(marks),
    )


def admissible(graph: GraphArrays, level: Level, vertices: Any) -> Any:
    """Whether vertices have the degree and the label that a level asks for: bool[len(vertices)]."""
    if graph.pages is None and graph.num_vertices <= vertices.size:  # looked up: fewer and shorter operations
        fits = graph.indptr[1:] - graph.indptr[:-1] >= level.degree
        if level.label >= 0:
            fits &= graph.labels == level.label
        return fits[vertices]
    mask = graph.indptr[vertices.astype("int64") + 1] - graph.indptr[vertices] >= level.degree
    if level.label >= 0:
        mask &= graph.labels[vertices] == level.label
    return mask
