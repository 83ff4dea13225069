"""Compile a matching order into a search program: set operations, levels, and the counted suffix."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import factorial

from longwall.kernels.interface.search_program import Block, Level, SearchProgram, SetKind, SetOp
from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.planning.set_partitions import set_partitions


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
        for non-induced matching and pairwise non-adjacent vertices.
    descending
        Whether `first` must have the larger internal id (candidates shrink towards vertices of high degree)
        or the smaller one.

    Returns
    -------
    SearchProgram
    """
    k = pattern.num_vertices
    prefix = k - suffix
    position = {v: i for i, v in enumerate(order)}
    adjacent = [frozenset(position[w] for w in pattern.neighbours[v]) for v in order]
    labels = [pattern.label(v) for v in order]
    below, above = [0] * k, [0] * k
    for first, second in restrictions:
        early, late = position[first], position[second]
        if early < late:
            (below if descending else above)[late] |= 1 << early
        else:
            (above if descending else below)[early] |= 1 << late

    def reader(positions: Sequence[int], *, is_block: bool) -> _Reader:
        first = positions[0]
        neighbours = frozenset(e for i in positions for e in adjacent[i] if e < min(first, prefix))
        known = frozenset(range(min(first, prefix)))
        return _Reader(
            neighbours,
            known - neighbours if induced else frozenset(),
            labels[first],
            below[first],
            above[first],
            len(positions) == 1,
            is_block,
        )

    level_readers = [reader([i], is_block=False) for i in range(2, prefix)]
    block_of: dict[_Key, int] = {}
    block_readers: list[_Reader] = []
    terms: dict[tuple[int, ...], int] = {}
    for partition in set_partitions(range(prefix, k)):
        if any(len({labels[i] for i in part}) > 1 for part in partition):
            continue
        coefficient, numbers = 1, []
        for part in partition:
            coefficient *= (-1) ** (len(part) - 1) * factorial(len(part) - 1)
            found = reader(part, is_block=True)
            key = _Key(found.neighbours, found.strangers, found.label)
            if key not in block_of:
                block_of[key] = len(block_readers)
                block_readers.append(found)
            numbers.append(block_of[key])
        monomial = tuple(sorted(numbers))
        terms[monomial] = terms.get(monomial, 0) + coefficient

    sets, final_set = _compile_sets([*level_readers, *block_readers], prefix)
    levels = []
    for i in range(prefix):
        number = final_set[i - 2] if i >= 2 else -1
        done_below, done_above = (sets[number].below, sets[number].above) if i >= 2 else (0, 0)
        distinct = [
            e
            for e in range(i)
            if e not in adjacent[i] and labels[e] == labels[i] and not (below[i] | above[i]) >> e & 1
        ]
        levels.append(
            Level(
                candidates=number,
                below=below[i] & ~done_below,
                above=above[i] & ~done_above,
                distinct=_mask(distinct),
                label=labels[i] if i < 2 else -1,
                degree=len(adjacent[i]),
            )
        )
    blocks = []
    for offset, found in enumerate(block_readers):
        members = []
        for depth in range(prefix):
            bounded = (found.below | found.above) >> depth & 1
            if depth in found.neighbours or bounded or labels[depth] != found.label:
                continue
            unknown = found.neighbours - adjacent[depth]
            if induced and (unknown or (found.strangers - {depth}) & adjacent[depth]):
                continue
            members.append((depth, _mask(unknown)))
        number = final_set[len(level_readers) + offset]
        blocks.append(Block(number, found.below, found.above, tuple(members)))
    ordered_terms = tuple((c, numbers) for numbers, c in sorted(terms.items()) if c)
    return SearchProgram(tuple(sets), tuple(levels), tuple(blocks), ordered_terms)


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
