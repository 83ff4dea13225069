"""The patterns of six vertices that are counted by pairs of vertices, and what is beside these."""

from functools import lru_cache

from longwall.kernels.host.patterns.pattern_codes import canonical_pattern
from longwall.kernels.interface.homomorphism_program import CodegreePattern

Edges = tuple[tuple[int, int], ...]

_SIZE = 6
_INNER = {
    CodegreePattern.CHERRY: "23 24",
    CodegreePattern.TRIANGLE: "23 24 34",
    CodegreePattern.PATH: "23 34 45",
    CodegreePattern.PAW: "23 24 34 25",
    CodegreePattern.CYCLE: "23 34 45 25",
    CodegreePattern.ENDS: "23 34 45",
    CodegreePattern.FORK: "23 34",
    CodegreePattern.ZIGZAG: "23 34 45",
    CodegreePattern.TAIL: "23 24 34 25",
    CodegreePattern.STAR: "25 35 45",
    CodegreePattern.CROSS: "25 35",
    CodegreePattern.SPLIT: "25 34 35",
}
"""The edges between the four, 2 to 5, and others that are not of the two kinds below."""
_COMMON = {
    CodegreePattern.ENDS: "25",
    CodegreePattern.FORK: "245",
    CodegreePattern.ZIGZAG: "245",
    CodegreePattern.TAIL: "345",
    CodegreePattern.STAR: "234",
    CodegreePattern.CROSS: "234",
    CodegreePattern.SPLIT: "24",
}
_ALONE = {
    CodegreePattern.ENDS: "34",
    CodegreePattern.FORK: "3",
    CodegreePattern.ZIGZAG: "3",
    CodegreePattern.TAIL: "2",
    CodegreePattern.SPLIT: "3",
}
"""Which of the four are adjacent to a alone."""
_MERGED = {CodegreePattern.CROSS: (4, 5), CodegreePattern.SPLIT: (1, 5)}
"""Vertices that the count lets be one."""


def codegree_edges(codegree: CodegreePattern) -> Edges:
    """Return the edges of the pattern that consists of two vertices, 0 and 1, and what is beside them, 2 to 5."""
    common = _COMMON.get(codegree, "2345")
    pairs = [
        *("0" + v for v in common + _ALONE.get(codegree, "")),
        *("1" + v for v in common),
        *_INNER[codegree].split(),
    ]
    return tuple(sorted((int(pair[0]), int(pair[1])) for pair in pairs))


def merged_edges(codegree: CodegreePattern) -> Edges:
    """Return the edges of the pattern of five vertices whose maps are counted along; none if there is none."""
    if codegree not in _MERGED:
        return ()
    kept, gone = _MERGED[codegree]
    edges = {tuple(sorted(kept if v == gone else v for v in edge)) for edge in codegree_edges(codegree)}
    return canonical_pattern(tuple(sorted((u, v) for u, v in edges)), None, _SIZE - 1)[0]


@lru_cache(maxsize=1)
def codegree_patterns() -> dict[Edges, CodegreePattern]:
    """Return the canonical edges of the patterns, and what is beside the two vertices of each."""
    return {canonical_pattern(codegree_edges(codegree), None, _SIZE)[0]: codegree for codegree in CodegreePattern}
