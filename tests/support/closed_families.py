"""Families of graphs of few classes, by their size, and the sizes at which a number passes a power of two."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations, pairwise

from closed_forms import Blocks, BlowUp, Class, Rim

Family = Callable[[int], BlowUp]


def _joined(*pairs: tuple[int, int]) -> frozenset[frozenset[int]]:
    return frozenset(map(frozenset, pairs))


def _graph(name: str, classes: Iterable[Class], *pairs: tuple[int, int]) -> BlowUp:
    return BlowUp(name, tuple(classes), _joined(*pairs))


def star(leaves: int) -> BlowUp:
    return _graph(f"star of {leaves} leaves", (Blocks(1), Blocks(leaves)), (0, 1))


def double_star(one: int, other: int) -> BlowUp:
    return _graph(
        f"double star of {one} and {other} leaves",
        (Blocks(1), Blocks(1, label=1), Blocks(one, label=1), Blocks(other)),
        (0, 1),
        (0, 2),
        (1, 3),
    )


def bipartite(one: int, other: int) -> BlowUp:
    return _graph(f"K({one}, {other})", (Blocks(one), Blocks(other, label=1)), (0, 1))


def wheel(rim: int) -> BlowUp:
    return _graph(f"wheel of {rim}", (Blocks(1), Rim(rim, closed=True, label=1)), (0, 1))


def fan(rim: int) -> BlowUp:
    return _graph(f"fan of {rim}", (Blocks(1), Rim(rim, closed=False, label=1)), (0, 1))


def book(pages: int) -> BlowUp:
    return _graph(f"book of {pages} pages", (Blocks(1, 2, inside=True), Blocks(pages, label=1)), (0, 1))


def split(clique: int, leaves: int) -> BlowUp:
    """A clique, and vertices that are adjacent to all of it."""
    return _graph(
        f"clique of {clique} joined to {leaves}", (Blocks(1, clique, inside=True), Blocks(leaves, label=1)), (0, 1)
    )


def windmill(blades: int, size: int = 3) -> BlowUp:
    """Cliques that share a vertex; of three vertices, a friendship graph."""
    return _graph(
        f"{blades} cliques of {size} at a vertex", (Blocks(1), Blocks(blades, size - 1, inside=True, label=1)), (0, 1)
    )


def multipartite(parts: int, size: int) -> BlowUp:
    """A complete multipartite graph; of parts of two, a cocktail party."""
    return _graph(f"{parts} parts of {size}", (Blocks(parts, size, between=True),))


def uneven(*sizes: int) -> BlowUp:
    """A complete multipartite graph of parts of these sizes, with alternating labels."""
    parts = [Blocks(size, label=i % 2) for i, size in enumerate(sizes)]
    return _graph(f"parts of {sizes}", parts, *combinations(range(len(sizes)), 2))


def clique(size: int) -> BlowUp:
    return _graph(f"clique of {size}", (Blocks(1, size, inside=True, between=True),))


def tailed_clique(size: int, leaves: int) -> BlowUp:
    """A clique, one vertex of which has pendant neighbours, too."""
    return _graph(
        f"clique of {size} with {leaves} leaves at a vertex",
        (Blocks(1, size - 1, inside=True, between=True, label=1), Blocks(1), Blocks(leaves, label=1)),
        (0, 1),
        (1, 2),
    )


def threshold(*steps: int) -> BlowUp:
    """Groups that are added one after another: isolated, dominating all before, isolated, ..., dominating."""
    classes = [Blocks(1, n, inside=i % 2 == 1, label=i % 3) for i, n in enumerate(steps)]
    return _graph(
        f"threshold graph of {steps}", classes, *((i, j) for i, j in combinations(range(len(steps)), 2) if j % 2)
    )


def layers(*sizes: int) -> BlowUp:
    """Layers with labels of their own, each joined to the next one."""
    classes = [Blocks(size, label=i) for i, size in enumerate(sizes)]
    return _graph(f"layers of {sizes}", classes, *pairwise(range(len(sizes))))


def two_hubs(common: int, one: int, other: int) -> BlowUp:
    """Two vertices that are not adjacent, with common neighbours and neighbours of their own."""
    return _graph(
        f"two hubs with {common} neighbours in common, {one} and {other} of their own",
        (Blocks(1), Blocks(1), Blocks(common, label=1), Blocks(one, label=1), Blocks(other)),
        (0, 2),
        (1, 2),
        (0, 3),
        (1, 4),
    )


BITS = (31, 32, 53, 62, 63, 64, 128)
"""Powers of two that types of numbers end at: signed and unsigned words, exact floats, capped sums, two words."""


def least_size(number: Callable[[int], int], bound: int, most: int) -> int | None:
    """Return the least size from 4 on whose number is at least a bound; None where no size up to `most` has it."""
    if number(most) < bound:
        return None
    low, high = 3, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if number(middle) >= bound else (middle, high)
    return high
