"""The patterns of six vertices that are counted by pairs of vertices, and what is beside these."""

from functools import lru_cache

from longwall.kernels.host.patterns.pattern_codes import canonical_pattern
from longwall.kernels.interface.homomorphism_program import Beside

Edges = tuple[tuple[int, int], ...]

_SIZE = 6
_INNER = {
    Beside.CHERRY: "23 24",
    Beside.TRIANGLE: "23 24 34",
    Beside.PATH: "23 34 45",
    Beside.PAW: "23 24 34 25",
    Beside.CYCLE: "23 34 45 25",
    Beside.ENDS: "23 34 45",
    Beside.FORK: "23 34",
    Beside.ZIGZAG: "23 34 45",
    Beside.TAIL: "23 24 34 25",
    Beside.STAR: "25 35 45",
    Beside.CROSS: "25 35",
    Beside.SPLIT: "25 34 35",
}
"""The edges between the four, 2 to 5, and others that are not of the two kinds below."""
_COMMON = {
    Beside.ENDS: "25",
    Beside.FORK: "245",
    Beside.ZIGZAG: "245",
    Beside.TAIL: "345",
    Beside.STAR: "234",
    Beside.CROSS: "234",
    Beside.SPLIT: "24",
}
_ALONE = {Beside.ENDS: "34", Beside.FORK: "3", Beside.ZIGZAG: "3", Beside.TAIL: "2", Beside.SPLIT: "3"}
"""Which of the four are adjacent to a alone."""
_MERGED = {Beside.CROSS: (4, 5), Beside.SPLIT: (1, 5)}
"""Vertices that the count lets be one."""


def beside_edges(beside: Beside) -> Edges:
    """Return the edges of the pattern that consists of two vertices, 0 and 1, and what is beside them, 2 to 5."""
    common = _COMMON.get(beside, "2345")
    pairs = [*("0" + v for v in common + _ALONE.get(beside, "")), *("1" + v for v in common), *_INNER[beside].split()]
    return tuple(sorted((int(pair[0]), int(pair[1])) for pair in pairs))


def merged_edges(beside: Beside) -> Edges:
    """Return the edges of the pattern of five vertices whose maps are counted along; none if there is none."""
    if beside not in _MERGED:
        return ()
    kept, gone = _MERGED[beside]
    edges = {tuple(sorted(kept if v == gone else v for v in edge)) for edge in beside_edges(beside)}
    return canonical_pattern(tuple(sorted((u, v) for u, v in edges)), None, _SIZE - 1)[0]


@lru_cache(maxsize=1)
def beside_pairs() -> dict[Edges, Beside]:
    """Return the canonical edges of the patterns, and what is beside the two vertices of each."""
    return {canonical_pattern(beside_edges(beside), None, _SIZE)[0]: beside for beside in Beside}
