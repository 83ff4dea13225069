"""What is left of a pattern when some of its vertices are sent to hubs: connected parts, and products of their counts.

Vertices are of a kind: which hubs they are adjacent to. A part needs vertices of some kinds.
Maps of a pattern that is not connected are products, less what is counted there by mistake: maps of two parts that
have vertices in common or, induced, edges between them. Either joins the parts, so in the end all parts are connected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, permutations, product
from typing import NamedTuple

from longwall.kernels.host.patterns.pattern_codes import canonical_pattern

Edges = tuple[tuple[int, int], ...]
Need = int
"""The kinds of vertices that a vertex's image may be of, as bits; of all that there are in the graph."""
_MOST_JOINS = 2000  # ways to join parts that are looked at, which takes about 50 us each


class TooManyParts(Exception):
    """The ways to join parts are too many: another way to count is quicker."""


class Part(NamedTuple):
    """A connected pattern in its canonical form, with what each of its vertices needs."""

    edges: Edges
    needs: tuple[Need, ...]

    @property
    def size(self) -> int:
        """Number of vertices."""
        return len(self.needs)


Parts = tuple[Part, ...]
"""The connected parts of a pattern, sorted."""


def parts_of(edges: Sequence[tuple[int, int]], needs: Sequence[Need]) -> Parts:
    """Return the connected parts of a pattern."""
    near: list[set[int]] = [set() for _ in needs]
    for u, v in edges:
        near[u].add(v)
        near[v].add(u)
    left, found = set(range(len(needs))), []
    while left:
        part, frontier = set(), [min(left)]
        while frontier:
            v = frontier.pop()
            if v not in part:
                part.add(v)
                frontier.extend(near[v])
        left -= part
        number = {v: at for at, v in enumerate(sorted(part))}
        own = {(number[u], number[v]) for u, v in edges if u in part}
        found.append(_canonical(own, [needs[v] for v in number]))
    return tuple(sorted(found))


def _canonical(edges: set[tuple[int, int]], needs: Sequence[Need]) -> Part:
    if not edges:
        return Part((), tuple(needs))
    kinds = sorted(set(needs))
    pairs = tuple(sorted((min(u, v), max(u, v)) for u, v in edges))
    found, labels = canonical_pattern(pairs, tuple(map(kinds.index, needs)), len(needs))
    assert labels is not None
    return Part(found, tuple(kinds[label] for label in labels))


class Products:
    """Writes the maps of patterns as sums of products of the maps of connected patterns.

    Parameters
    ----------
    induced
        Whether there must be no edges between the images of different parts.
    """

    def __init__(self, *, induced: bool):
        self._induced, self._looked = induced, 0
        self._known: dict[Parts, Counter[Parts]] = {}

    def of(self, parts: Parts) -> Counter[Parts]:
        """Return the products for the connected parts of a pattern, with their coefficients.

        Raises
        ------
        TooManyParts
            If that takes long to find.
        """
        if len(parts) < 2:
            return Counter({parts: 1})
        if parts not in self._known:
            first, rest = min(parts, key=lambda one: one.size), list(parts)
            rest.remove(first)
            found: Counter[Parts] = Counter()
            for others, coefficient in self.of(tuple(rest)).items():
                found[tuple(sorted((first, *others)))] += coefficient
            for joined, ways in self._joined(first, tuple(rest)).items():
                for others, coefficient in self.of(joined).items():
                    found[others] -= ways * coefficient
            self._known[parts] = found
        return self._known[parts]

    def _joined(self, first: Part, rest: Parts) -> Counter[Parts]:
        """Return the patterns that arise when a part and others have vertices in common, or edges between them."""
        edges, needs = set[tuple[int, int]](), list[Need]()
        for part in rest:
            edges |= {(u + len(needs), v + len(needs)) for u, v in part.edges}
            needs += part.needs
        found: Counter[Parts] = Counter()
        for place in _overlaps(first, len(needs)):
            merged = _merged(first, place, needs)
            own = {(min(place[u], place[v]), max(place[u], place[v])) for u, v in first.edges}
            if merged is None or (self._induced and not _agree(place, own, edges, len(needs))):
                continue
            shared = set(place) & set(range(len(needs)))
            both = edges | own
            between = [(v, u) for u in place if u >= len(needs) for v in range(len(needs)) if v not in shared]
            for more in _subsets(between) if self._induced else ((),):
                if shared or more:
                    self._look()
                    found[parts_of(sorted(both.union(more)), merged)] += 1
        return found

    def _look(self) -> None:
        self._looked += 1
        if self._looked > _MOST_JOINS:
            raise TooManyParts


def _overlaps(first: Part, others: int) -> Iterator[tuple[int, ...]]:
    """Yield where the vertices of a part may lie: at one of the others, or at a place of their own behind these."""
    for shared in range(min(first.size, others) + 1):
        for vertices in combinations(range(first.size), shared):
            for at in permutations(range(others), shared):
                own = iter(range(others, others + first.size))
                where = dict(zip(vertices, at, strict=True))
                yield tuple(where[v] if v in where else next(own) for v in range(first.size))


def _merged(first: Part, place: tuple[int, ...], needs: Sequence[Need]) -> list[Need] | None:
    """Return what all vertices need where a part lies so; None where no vertex is what one of them needs."""
    found = list(needs) + [-1] * (1 + max(place) - len(needs))
    for at, need in zip(place, first.needs, strict=True):
        found[at] &= need
    return found if all(found) else None


def _agree(place: tuple[int, ...], own: set[tuple[int, int]], edges: set[tuple[int, int]], others: int) -> bool:
    """Return whether what two patterns have in common has the same edges in both."""
    shared = sorted(v for v in place if v < others)
    return all((pair in own) == (pair in edges) for pair in combinations(shared, 2))


def _subsets(pairs: Sequence[tuple[int, int]]) -> Iterator[tuple[tuple[int, int], ...]]:
    for chosen in product((False, True), repeat=len(pairs)):
        yield tuple(pair for pair, some in zip(pairs, chosen, strict=True) if some)
