"""Graphs of few edges with large counts of labelled queries, and naive counts of such queries in whole numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise, product

import naive

AROUND = [2**bits + near for bits in (31, 32, 53, 61, 62, 63, 64, 128) for near in (-1, 0, 1)]
"""Numbers around which other representations of numbers end."""


def layered(sizes: Sequence[int]) -> tuple[list[tuple[int, int]], dict[int, int]]:
    """Layers of vertices, each joined to the next one: edges, and the layer of each vertex as its label."""
    layers = [range(end - size, end) for size, end in zip(sizes, accumulate(sizes), strict=True)]
    edges = [pair for first, second in pairwise(layers) for pair in product(first, second)]
    return edges, {vertex: label for label, layer in enumerate(layers) for vertex in layer}


def paths_of_number(number: int, digits: int, base: int) -> tuple[list[tuple[int, int]], dict[int, int]]:
    """Layers 0 to `digits` through which a number of paths lead: its digits, the first layer's being the highest.

    The first layer is vertex 0. Each layer has a vertex that begins a path for what is left of the number, and (after
    the first) as many as the base that each begin a path for every number below a power of the base.
    """
    assert 1 <= number <= base**digits
    left, edges, labels = number - 1, [], {0: 0}
    width = base + 1
    for layer in range(1, digits + 1):
        whole, rest = [width * layer + one for one in range(base)], width * layer + base
        labels |= dict.fromkeys([*whole, rest], layer)
        power = base ** (digits - layer)
        before = [width * (layer - 1) + one for one in range(base)] if layer > 1 else []
        edges += list(product(before, whole))
        last = 0 if layer == 1 else width * (layer - 1) + base
        edges += [(last, one) for one in [*whole[: left // power], rest]]
        left %= power
    return edges, labels


def count_by_frontier(edges: naive.Edges, query: naive.Query, labels: Mapping[int, int]) -> int:
    """Count the mappings of a query, no two vertices of which have the same label, by the images that still matter."""
    assert query.labels is not None
    assert len(set(query.labels)) == query.size
    assert not query.induced
    near, wanted = naive.adjacency(edges), naive.adjacency(query.edges)
    states = Counter({(): 1})
    kept: list[int] = []
    for v in range(query.size):
        grown: Counter[tuple[int, ...]] = Counter()
        after = [u for u in [*kept, v] if max(wanted[u]) > v]
        for images, number in states.items():
            image_of = dict(zip(kept, images, strict=True))
            for x in near:
                if labels[x] == query.labels[v] and all(image_of[u] in near[x] for u in wanted[v] if u < v):
                    grown[tuple((image_of | {v: x})[u] for u in after)] += number
        states, kept = grown, after
    return sum(states.values())


def written(query: Iterable[tuple[int, int]], labels: Sequence[int]) -> str:
    """A pattern as text: edges between vertices with labels; -1 stands for any."""
    names = [f"(v{at})" if label < 0 else f"(v{at}:{label})" for at, label in enumerate(labels)]
    return ",".join(f"{names[u]}-{names[v]}" for u, v in query)


def path(length: int) -> str:
    """A path of vertices with the labels 0, 1, ..."""
    return written(pairwise(range(length)), range(length))
