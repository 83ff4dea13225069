"""Patterns and figures of the papers that `benchmarks.suites.seeds` measures. Standard library only."""

from itertools import combinations

TDFS = {
    "P1": "0-1,0-2,0-3,1-2,1-3",
    "P2": "0-1,0-2,0-3,1-2,1-3,2-3",
    "P3": "0-1,0-2,0-3,0-4,1-2,1-3,1-4,2-3",
    "P4": "0-1,0-2,0-3,1-2,1-3,2-4,3-4",
    "P5": "0-1,0-2,0-3,1-2,1-4,2-3,2-4,3-4",
    "P6": "0-1,0-2,0-3,0-4,1-2,1-3,1-4,2-3,3-4",
    "P7": "0-1,0-2,0-3,0-4,1-2,1-3,1-4,2-3,2-4,3-4",
    "S8": "0-1,0-2,0-3,0-4,0-5,1-2,1-3,1-4,1-5,2-3,2-4,2-5,3-4,3-5,4-5",
    "S9": "0-1,0-2,0-3,0-4,0-5,1-2,1-3,1-4,1-5,2-3,2-4,2-5,3-4,3-5",
    "S10": "0-1,0-2,0-3,0-4,1-2,1-3,1-5,2-4,2-5,3-4,3-5,4-5",
    "S11": "0-1,0-2,1-2,3-4,3-5,4-5,0-3,1-4,2-5",
}
"""T-DFS's patterns; P8 to P11 have six vertices and are only drawn, so four of six vertices stand for them: a
6-clique, the same less an edge, an octahedron, and a prism."""

LABELS = 4
"""Labels of the data graph; vertex i of P12 to P22, which are P1 to P11 otherwise, has the label i mod 4."""

TDFS_LABELLED = {f"P{number + 7}": f"P{number}" for number in range(1, 8)}
"""The labelled patterns that come with T-DFS, P8 to P14, and which of `TDFS` each is without labels; the labels are
those of `mod_labels` here."""

TDFS_MILLISECONDS = {
    ("ca-AstroPh", "P9"): 7.4,
    ("ca-AstroPh", "P11"): 17,
    ("ca-AstroPh", "P12"): 18,
    ("ca-AstroPh", "P13"): 12,
    ("ca-AstroPh", "P14"): 15,
    ("rmat-16", "P9"): 33,
    ("rmat-16", "P11"): 813,
    ("rmat-16", "P12"): 759,
    ("rmat-16", "P13"): 418,
    ("rmat-16", "P14"): 374,
}
"""T-DFS's kernels on an H200, 4 random labels on the graph; its own R-MAT graph of that size has another seed."""

DUMATO_MOTIFS = {
    ("citeseer", 5): 0.24,
    ("citeseer", 6): 0.67,
    ("citeseer", 7): 5.06,
    ("citeseer", 8): 96.95,
    ("ca-AstroPh", 4): 1.47,
    ("ca-AstroPh", 5): 126.78,
    ("ca-AstroPh", 6): 23620.0,
}
DUMATO_QUASI_CLIQUES = {4: 0.15, 5: 0.46, 6: 1.59, 7: 6.48, 8: 34.04, 9: 181.45, 10: 924.89}
"""DuMato's seconds on a TITAN V: motifs by graph and size, quasi-cliques of ca-AstroPh by size."""


def mod_labels(pattern: str) -> list[int]:
    """Return the labels of P12 to P22 for one of P1 to P11."""
    return [vertex % LABELS for vertex in range(vertices(pattern))]


def vertices(pattern: str) -> int:
    """Return the number of vertices of a pattern."""
    return 1 + max(max(edge) for edge in edges(pattern))


def edges(pattern: str) -> list[tuple[int, int]]:
    """Return the edges of a pattern."""
    return [(int(u), int(v)) for u, v in (edge.split("-") for edge in pattern.split(","))]


def less_an_edge(k: int) -> str:
    """Return DuMato's quasi-clique of `k` vertices, a clique less an edge."""
    pairs = list(combinations(range(k), 2))[:-1]
    return ",".join(f"{u}-{v}" for u, v in pairs)
