"""Compile a matching order into a search program: set operations, levels, and the counted suffix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import factorial

from longwall.kernels.interface.search_program import Block, Level, SearchProgram, SetKind, SetOp
from longwall.pipeline.patterns.pattern import ANY_LABEL, Pattern
from longwall.pipeline.planning.homomorphisms.set_partitions import set_partitions

_MOST_KEPT = 8
"""Vertices of the largest patterns whose programs are kept."""


@dataclass(frozen=True)
class _Reader:
    """Who reads a set in the end: a level or a block of suffix vertices, in positions of the order."""

    neighbours: frozenset[int]
    strangers: frozenset[int]  # induced matching: positions whose adjacency is subtracted
    label: int
    below: int
    above: int
    required: bool
    is_block: bool


@dataclass(frozen=True)
class _Key:
    """Identity of a set: equal keys are computed once."""

    neighbours: frozenset[int]
    strangers: frozenset[int]
    label: int


def _mask(depths: Sequence[int] | frozenset[int]) -> int:
    return sum(1 << d for d in depths)


def compile_program(
    pattern: Pattern,
    order: Sequence[int],
    restrictions: Sequence[tuple[int, int]],
    *,
    induced: bool,
    suffix: int,
    descending: bool,
) -> SearchProgram:
    """Compile a matching order.

    Parameters
    ----------
    pattern
        The pattern.
    order
        Its vertices in the order in which they are matched; each but the first has an earlier neighbour.
    restrictions
        Pairs (first, second) of pattern vertices, see :func:`longwall.pipeline.patterns.symmetry.restrictions`.
    induced
        Whether non-edges of the pattern must be non-edges of the graph.
    suffix
        Number of last vertices that are counted instead of enumerated: 0 to list embeddings; 2 or more only
        for non-induced matching and pairwise non-adjacent vertices; where only some vertices have labels, those of the
        suffix have none.
    descending
        Whether `first` must have the larger internal id (candidates shrink towards vertices of high degree)
        or the smaller one.

    Returns
    -------
    SearchProgram
    """
    prefix = pattern.num_vertices - suffix
    work = _Order.of(pattern, order, restrictions, induced=induced, prefix=prefix, descending=descending)
    # No budget counts programs that are kept, so those of large patterns, which may have 2,000 sets, are not.
    return _kept(work) if pattern.num_vertices <= _MOST_KEPT else _compile(work)


@lru_cache(maxsize=2048)
def _kept(work: _Order) -> SearchProgram:
    """Compile an order once: planners try all orders, and those of symmetries and of the next graph are the same."""
    return _compile(work)


def _compile(work: _Order) -> SearchProgram:
    prefix = work.prefix
    level_readers = [work.reader([i], is_block=False) for i in range(2, prefix)]
    block_readers, terms = _suffix_terms(work)
    sets, final_set = _compile_sets([*level_readers, *block_readers], prefix)
    levels = [work.level(i, final_set[i - 2] if i >= 2 else -1, sets) for i in range(prefix)]
    numbers = final_set[len(level_readers) :]
    blocks = [
        Block(number, found.below, found.above, work.members(found))
        for number, found in zip(numbers, block_readers, strict=True)
    ]
    return SearchProgram(tuple(sets), tuple(levels), tuple(blocks), terms)


@dataclass(frozen=True)
class _Order:
    """A pattern in positions of its matching order.

    Attributes
    ----------
    adjacent
        The neighbours of each position.
    labels
        The label of each position, -1 for any.
    below, above
        Bit sets: the positions whose internal id the one here must be below, or above.
    prefix
        Positions that are enumerated.
    induced
        Whether non-edges of the pattern must be non-edges of the graph.
    """

    adjacent: tuple[frozenset[int], ...]
    labels: tuple[int, ...]
    below: tuple[int, ...]
    above: tuple[int, ...]
    prefix: int
    induced: bool

    @classmethod
    def of(
        cls,
        pattern: Pattern,
        order: Sequence[int],
        restrictions: Sequence[tuple[int, int]],
        *,
        induced: bool,
        prefix: int,
        descending: bool,
    ) -> _Order:
        """Put a pattern in order; parameters as of `compile_program`."""
        position = {v: i for i, v in enumerate(order)}
        below, above = [0] * len(order), [0] * len(order)
        for first, second in restrictions:
            early, late = position[first], position[second]
            if early < late:
                (below if descending else above)[late] |= 1 << early
            else:
                (above if descending else below)[early] |= 1 << late
        return cls(
            adjacent=tuple(frozenset(position[w] for w in pattern.neighbours[v]) for v in order),
            labels=tuple(pattern.label(v) for v in order),
            below=tuple(below),
            above=tuple(above),
            prefix=prefix,
            induced=induced,
        )

    def reader(self, positions: Sequence[int], *, is_block: bool) -> _Reader:
        """Return what reads the candidates of some positions that are matched to one vertex, mostly of one position."""
        first = positions[0]
        known = frozenset(range(min(first, self.prefix)))
        neighbours = frozenset(e for i in positions for e in self.adjacent[i] if e in known)
        return _Reader(
            neighbours,
            known - neighbours if self.induced else frozenset(),
            self.labels[first],
            self.below[first],
            self.above[first],
            len(positions) == 1,
            is_block,
        )

    def level(self, i: int, number: int, sets: Sequence[SetOp]) -> Level:
        """Return the level of a position, whose candidates are a set, or -1: what the set has not checked is left."""
        done_below, done_above = (sets[number].below, sets[number].above) if number >= 0 else (0, 0)
        bounded = self.below[i] | self.above[i]
        distinct = [
            e
            for e in range(i)
            if e not in self.adjacent[i] and _may_coincide(self.labels[e], self.labels[i]) and not bounded >> e & 1
        ]
        return Level(
            candidates=number,
            below=self.below[i] & ~done_below,
            above=self.above[i] & ~done_above,
            distinct=_mask(distinct),
            label=self.labels[i] if i < 2 else -1,
            degree=len(self.adjacent[i]),
        )

    def members(self, found: _Reader) -> tuple[tuple[int, int], ...]:
        """Return the enumerated positions that may be in a block's set, each with the adjacency that is unknown."""
        members = []
        for depth in range(self.prefix):
            bounded = (found.below | found.above) >> depth & 1
            if depth in found.neighbours or bounded or not _may_coincide(self.labels[depth], found.label):
                continue
            unknown = found.neighbours - self.adjacent[depth]
            if self.induced and (unknown or (found.strangers - {depth}) & self.adjacent[depth]):
                continue
            members.append((depth, _mask(unknown)))
        return tuple(members)


def _may_coincide(first: int, second: int) -> bool:
    """Whether vertices of two positions may be the same one, as far as their labels say."""
    return first == second or ANY_LABEL in (first, second)


def _suffix_terms(order: _Order) -> tuple[list[_Reader], tuple[tuple[int, tuple[int, ...]], ...]]:
    """Count the suffix by inclusion and exclusion: distinct vertices are all choices less those that coincide.

    Returns
    -------
    list of _Reader
        The blocks: what suffix positions read that are matched to one vertex.
    tuple of (coefficient, blocks)
        The products of the blocks' sizes, and how they are added up.
    """
    block_of: dict[_Key, int] = {}
    readers: list[_Reader] = []
    terms: dict[tuple[int, ...], int] = {}
    for partition in set_partitions(range(order.prefix, len(order.labels))):
        if any(len({order.labels[i] for i in part}) > 1 for part in partition):
            continue
        coefficient, numbers = 1, []
        for part in partition:
            coefficient *= (-1) ** (len(part) - 1) * factorial(len(part) - 1)
            found = order.reader(part, is_block=True)
            key = _Key(found.neighbours, found.strangers, found.label)
            if key not in block_of:
                block_of[key] = len(readers)
                readers.append(found)
            numbers.append(block_of[key])
        monomial = tuple(sorted(numbers))
        terms[monomial] = terms.get(monomial, 0) + coefficient
    return readers, tuple((c, numbers) for numbers, c in sorted(terms.items()) if c)


def _compile_sets(readers: Sequence[_Reader], prefix: int) -> tuple[list[SetOp], list[int]]:
    """Chain the set operations of all readers, sharing equal sets; return the sets and each reader's last set."""
    ops: list[SetOp] = []
    number_of: dict[_Key, int] = {}
    read_by: list[list[int]] = []
    current: list[int] = [-1] * len(readers)

    def add(op: SetOp, key: _Key, who: int) -> int:
        if key not in number_of:
            number_of[key] = len(ops)
            ops.append(op)
            read_by.append([])
        read_by[number_of[key]].append(who)
        return number_of[key]

    for depth in range(prefix):
        for who, found in enumerate(readers):
            neighbours = frozenset(e for e in found.neighbours if e <= depth)
            earlier_strangers = sorted(e for e in found.strangers if e < depth)
            if depth in found.neighbours:
                if current[who] < 0:
                    kind = SetKind.ADJACENCY if found.label < 0 else SetKind.LABELLED
                    op = SetOp(depth, kind, -1, depth, label=found.label)
                    current[who] = add(op, _Key(neighbours, frozenset(), found.label), who)
                    for i, stranger in enumerate(earlier_strangers):
                        op = SetOp(depth, SetKind.SUBTRACT, current[who], stranger)
                        key = _Key(neighbours, frozenset(earlier_strangers[: i + 1]), found.label)
                        current[who] = add(op, key, who)
                else:
                    op = SetOp(depth, SetKind.INTERSECT, current[who], depth)
                    key = _Key(neighbours, frozenset(earlier_strangers), found.label)
                    current[who] = add(op, key, who)
            elif depth in found.strangers and current[who] >= 0:
                op = SetOp(depth, SetKind.SUBTRACT, current[who], depth)
                key = _Key(neighbours, frozenset([*earlier_strangers, depth]), found.label)
                current[who] = add(op, key, who)

    sources = {op.source for op in ops}
    intersected_later = {op.source for op in ops if op.kind == SetKind.INTERSECT and op.depth > ops[op.source].depth}
    finished: list[SetOp] = []
    for number, op in enumerate(ops):
        users = [readers[who] for who in read_by[number]]
        known = (1 << (op.depth + 1)) - 1
        below, above = known, known
        for user in users:
            below &= user.below
            above &= user.above
        last_for = [readers[who] for who in set(read_by[number]) if current[who] == number]
        size_only = number not in sources and all(
            user.is_block and (user.below, user.above) == (below, above) for user in last_for
        )
        finished.append(
            replace(
                op,
                below=below,
                above=above,
                required=any(user.required for user in users),
                size_only=size_only,
                marked=number in intersected_later,
            )
        )
    return finished, current
