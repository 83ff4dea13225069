"""Where the labels of a pattern can lie on one subgraph, by all permutations of its vertices."""

from __future__ import annotations

import random
from itertools import combinations, permutations

from cases import each_case

from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.patterns.placements import labels_overlap, subgraph_terms


def placements(pattern: Pattern) -> set[tuple[int | str | None, ...]]:
    """All placements that agree with the pattern's own labels."""
    n, edges = pattern.num_vertices, pattern.edges
    kinds = pattern.edge_labels or (None,) * len(edges)
    own = tuple(None if pattern.label(v) < 0 else pattern.label(v) for v in range(n)) + kinds
    found = set()
    for image in permutations(range(n)):
        moved = {tuple(sorted((image[u], image[v]))): kind for (u, v), kind in zip(edges, kinds, strict=True)}
        if set(moved) == set(edges):
            back = {to: v for v, to in enumerate(image)}
            placed = tuple(own[back[v]] for v in range(n)) + tuple(moved[edge] for edge in edges)
            if all(None in (a, b) or a == b for a, b in zip(placed, own, strict=True)):
                found.add(placed)
    return found


def draw_pattern(seed: int) -> Pattern:
    draw = random.Random(seed)
    size = draw.randint(2, 6)
    edges = {(draw.randrange(v), v) for v in range(1, size)}
    edges |= {pair for pair in combinations(range(size), 2) if draw.random() < draw.choice((0, 0.3, 1))}
    labels = tuple(draw.choice((-1, -1, 0, 1, 2)) for _ in range(size))
    kinds = tuple(draw.choice((None, None, 0, 1)) for _ in edges) if seed % 3 == 0 else None
    return Pattern(size, tuple(sorted(edges)), labels, edge_labels=kinds)


@each_case("seed", range(60))
def test_placements_by_all_permutations(seed: int) -> None:
    pattern = draw_pattern(seed)
    want = placements(pattern)
    assert labels_overlap(pattern) == (len(want) > 1), pattern
    if len(want) < 10:
        assert subgraph_terms(pattern)[0] == len(want), pattern


@each_case(
    ("text", "differ"),
    [
        ("(a:0)-(b)", True),
        ("(a:0)-(b:1)", False),
        ("(a)-(b)", False),
        ("(a:0)-(b)-(c:1)", False),  # the other way round, both ends disagree
        ("(a:0)-(b)-(c:0)", False),
        ("(a:0)-(b)-(c)", True),
        ("(a)-(b:0)-(c)", False),
        ("(a)-[:1]-(b)-(c)", True),
        ("(a)-[:1]-(b)-[:2]-(c)", False),
        ("(a:0)-[:1]-(b:0)-(c:0)", True),
        ("(a:0)-[:1]-(b:0)-[:2]-(c)", False),
        ("(a:0)-(b)-(c)-(d:0)-(a)", True),
    ],
)
def test_embeddings_can_be_more_than_subgraphs(text: str, differ: bool) -> None:
    assert labels_overlap(parse_pattern(text)) == differ


def test_large_patterns() -> None:
    path = tuple((v, v + 1) for v in range(63))
    assert not labels_overlap(Pattern(64, path, (0, *[-1] * 62, 1)))
    most, terms = subgraph_terms(Pattern(64, path, (0, *[-1] * 63)))
    assert (most, [coefficient for coefficient, _ in terms]) == (2, [1, -1])
    clique = Pattern(64, tuple(combinations(range(64), 2)), (0, *[-1] * 63))
    assert labels_overlap(clique)
