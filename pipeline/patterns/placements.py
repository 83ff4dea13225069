"""Placements of the labels of a pattern on one subgraph.

If some vertices or edges have no label, an automorphism of the unlabelled pattern can move the labels: `(a:0)-(b)` lies
on an edge in two ways. A subgraph has several embeddings if several placements fit it, so only if their labels agree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product

from longwall.pipeline.patterns.pattern import ANY_LABEL, Pattern
from longwall.pipeline.patterns.symmetry import are_twins, colours_of, extended_automorphism, isomorphic, orbit
from longwall.storage.errors import InputError
from longwall.storage.system.arguments import brief

Labels = tuple[int | str | None, ...]
"""The label of each vertex, then of each edge; None for any."""

_MOST_IMAGES = 1 << 20  # that are tried, each times the vertices and edges that are looked at: about a second
_MOST_UNIONS = 1 << 16  # of placements that are looked at, with repetition: about a second
_MOST_TERMS = 256  # patterns that are counted, one after another


class TooManyPlacements(Exception):
    """The labels of a pattern lie on a subgraph in more ways than are tried."""


def labels_overlap(pattern: Pattern) -> bool:
    """Whether a subgraph can have several embeddings; also True if finding out would take long."""
    labels, n = _labels(pattern), pattern.num_vertices
    try:
        placing = _Placing(pattern)
        for vertex, label in enumerate(labels[:n]):
            for other in sorted(orbit(placing.bare, vertex)) if label is not None else ():
                if labels[other] is None and any(placing.placed({vertex: other})):
                    return True
        free = [edge for edge, label in zip(pattern.edges, labels[n:], strict=True) if label is None]
        for (first, second), (u, v) in product(placing.on_edges, free):
            if any(placing.placed({first: u, second: v})) or any(placing.placed({first: v, second: u})):
                return True
    except TooManyPlacements:
        return True
    return False


@lru_cache(maxsize=1 << 10)
def subgraph_terms(pattern: Pattern) -> tuple[int, tuple[tuple[int, Pattern], ...]]:
    """Write the number of distinct subgraphs as a sum of numbers of embeddings.

    A subgraph counts once if at least one placement fits it: by inclusion-exclusion over sets of placements, a signed
    sum over their unions, the patterns with all labels of a set. Unions that are the same up to the numbering of the
    vertices have the same coefficient, and the embeddings of one of them are all of theirs.

    Returns
    -------
    most : int
        Embeddings that a subgraph can have.
    terms : tuple of (int, Pattern)
        Coefficients, and the patterns whose embeddings they multiply; `pattern` comes first, with 1.

    Raises
    ------
    InputError
        If the placements or the terms are too many.
    """
    if not labels_overlap(pattern):
        return 1, ((1, pattern),)
    own = _labels(pattern)
    try:
        ways = list(dict.fromkeys([own, *_Placing(pattern).placed({})]))
        coefficients = _union_coefficients(ways)
    except TooManyPlacements:
        raise _refused(pattern) from None
    terms, alike, classes = [(1, pattern)], dict[Labels, list[Pattern]](), _twin_classes(pattern)
    unions = (union for union in coefficients if union != own and _joined(union, own) == union)
    for union in {_twins_sorted(one, classes): one for one in unions}.values():
        merged, known = _with_labels(pattern, union), alike.setdefault(_sorted(pattern, union), [])
        if not any(isomorphic(merged, one) for one in known):
            known.append(merged)
            terms.append((coefficients[union], merged))
            if len(terms) > _MOST_TERMS:
                raise _refused(pattern)
    return len(ways), tuple(terms)


def _twin_classes(pattern: Pattern) -> list[list[int]]:
    """Return the vertices that can be exchanged with each other; none if an exchange could move labels of edges."""
    classes: list[list[int]] = []
    for v in range(pattern.num_vertices) if pattern.edge_labels is None else ():
        bare = Pattern(pattern.num_vertices, pattern.edges)
        twins = next((one for one in classes if are_twins(bare, one[0], v)), None)
        if twins is None:
            classes.append([v])
        else:
            twins.append(v)
    return classes


def _twins_sorted(labels: Labels, classes: list[list[int]]) -> Labels:
    """Return labels, exchanged between twins so that those of each class are sorted."""
    placed = list(labels)
    for twins in classes:
        for v, label in zip(twins, sorted((labels[v] for v in twins), key=repr), strict=True):
            placed[v] = label
    return tuple(placed)


def _refused(pattern: Pattern) -> InputError:
    shown = brief(pattern.name or pattern.edge_text)
    return InputError(
        f"workload.pattern: the labels of {shown} fit one subgraph in too many ways to count distinct subgraphs: "
        "label all its vertices and edges, or list its embeddings and drop those with the same vertices and edges"
    )


class _Placing:
    """Looks for the placements that agree with a pattern's own labels.

    Only images of vertices that have a label, or an edge with a label, are tried: no label depends on the others.

    Parameters
    ----------
    pattern
        The pattern.

    Attributes
    ----------
    bare
        The pattern without labels.
    on_edges
        The edges that have a label.
    """

    def __init__(self, pattern: Pattern):
        n = pattern.num_vertices
        self.bare = Pattern(n, pattern.edges)
        self._labels = _labels(pattern)
        self._at = {edge: n + number for number, edge in enumerate(pattern.edges)}
        self.on_edges = [edge for edge in pattern.edges if self._labels[self._at[edge]] is not None]
        self._ends = {v for edge in self.on_edges for v in edge}
        self._left = _MOST_IMAGES

    def placed(self, image: dict[int, int]) -> Iterator[Labels]:
        """Yield the placements of automorphisms that extend `image`, a partial map.

        Raises
        ------
        TooManyPlacements
            If the calls have tried too many images.
        """
        order = [v for v in range(self.bare.num_vertices) if v not in image]
        order = [v for v in order if self._labels[v] is not None or v in self._ends]
        # Twins with one label can be exchanged: their images ascend.
        before = {v: [u for u in order[:i] if self._alike(u, v)] for i, v in enumerate(order)}
        yield from self._grown(image, order, before)

    def _grown(self, image: dict[int, int], order: Sequence[int], before: dict[int, list[int]]) -> Iterator[Labels]:
        self._left -= self.bare.num_vertices * len(self.bare.edges)
        if self._left < 0:
            raise TooManyPlacements
        whole = extended_automorphism(self.bare, image) if self._agree(image) else None
        if whole is None:
            return
        if not order or self._is_only_one(image):
            if self._agree(whole):
                yield self._moved(whole)
            return
        vertex, *others = order
        least = max((image[u] for u in before[vertex]), default=-1)
        for to in sorted(orbit(self.bare, vertex) - set(image.values())):
            if to > least:
                yield from self._grown(image | {vertex: to}, others, before)

    def _alike(self, first: int, second: int) -> bool:
        """Whether an exchange of two vertices leaves all labels where they are."""
        on_vertices = self._labels[first] == self._labels[second] and not {first, second} & self._ends
        return on_vertices and are_twins(self.bare, first, second)

    def _is_only_one(self, image: dict[int, int]) -> bool:
        """Whether no two automorphisms send these vertices to the same ones."""
        return len(set(colours_of(self.bare, frozenset(image)))) == self.bare.num_vertices

    def _agree(self, image: Mapping[int, int]) -> bool:
        """Whether each label that a map moves agrees with the label of its image, if the image has one."""
        moves = [(v, to) for v, to in image.items()]
        moves += [(self._at[u, v], self._image(image, u, v)) for u, v in self.on_edges if u in image and v in image]
        return all(
            to >= 0 and (self._labels[one] is None or self._labels[to] in (None, self._labels[one]))
            for one, to in moves
        )

    def _image(self, image: Mapping[int, int], u: int, v: int) -> int:
        """Return the place of the label of an edge's image, -1 if that is no edge."""
        return self._at.get((min(image[u], image[v]), max(image[u], image[v])), -1)

    def _moved(self, whole: Mapping[int, int]) -> Labels:
        placed: list[int | str | None] = [None] * len(self._labels)
        for v, to in whole.items():
            placed[to] = self._labels[v]
        for u, v in self.on_edges:
            placed[self._image(whole, u, v)] = self._labels[self._at[u, v]]
        return tuple(placed)


def _union_coefficients(ways: list[Labels]) -> dict[Labels, int]:
    """Return the sum of the signs of the sets of placements that have each union; sets that disagree have none."""
    found: Counter[Labels] = Counter()
    steps = 0
    for way in ways:
        steps += len(found)
        if steps > _MOST_UNIONS:
            raise TooManyPlacements
        more: Counter[Labels] = Counter({way: 1})
        for union, coefficient in found.items():
            both = _joined(union, way)
            if both is not None:
                more[both] -= coefficient
        for union, coefficient in more.items():
            found[union] += coefficient
            if not found[union]:
                del found[union]
    return found


def _joined(first: Labels, second: Labels) -> Labels | None:
    """Return the labels of both; None if they disagree."""
    pairs = list(zip(first, second, strict=True))
    if any(a != b and a is not None and b is not None for a, b in pairs):
        return None
    return tuple(b if a is None else a for a, b in pairs)


def _labels(pattern: Pattern) -> Labels:
    vertices = (pattern.label(v) for v in range(pattern.num_vertices))
    edges = pattern.edge_labels or (None,) * len(pattern.edges)
    return (*(None if label == ANY_LABEL else label for label in vertices), *edges)


def _with_labels(pattern: Pattern, labels: Labels) -> Pattern:
    """Return a pattern with these labels of vertices and of edges, if any."""
    n = pattern.num_vertices
    vertices = tuple(ANY_LABEL if label is None else int(label) for label in labels[:n])
    return replace(
        pattern,
        labels=None if pattern.labels is None else vertices,
        edge_labels=None if pattern.edge_labels is None else labels[n:],
        name="",
        names=(),
        words=(),
    )


def _sorted(pattern: Pattern, labels: Labels) -> Labels:
    """Return the labels of vertices and those of edges in an order that does not depend on their places."""
    n = pattern.num_vertices
    return tuple(sorted(labels[:n], key=repr)) + tuple(sorted(labels[n:], key=repr))
