"""Parse patterns: names such as ``clique-5``, edge lists, and paths of pattern files."""

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import combinations

from longwall.pipeline.patterns.pattern import MAX_FAMILY, Pattern, make_pattern
from longwall.pipeline.patterns.pattern_text import is_pattern_text, parse_pattern_text
from longwall.storage.errors import InputError
from longwall.storage.system.arguments import brief
from longwall.storage.system.paths import require_path, user_path


def _cycle(k: int) -> list[tuple[int, int]]:
    return [(i, (i + 1) % k) for i in range(k)]


def _clique(k: int) -> list[tuple[int, int]]:
    return list(combinations(range(k), 2))


_FIXED: dict[str, list[tuple[int, int]]] = {
    "edge": [(0, 1)],
    "wedge": [(0, 1), (0, 2)],
    "triangle": _clique(3),
    "diamond": [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3)],
    "tailed-triangle": [(0, 1), (0, 2), (1, 2), (0, 3)],
    "fork": [(0, 1), (0, 2), (0, 3), (3, 4)],
    "bull": [(0, 1), (0, 2), (1, 2), (0, 3), (1, 4)],
    "cricket": [(0, 1), (0, 2), (1, 2), (0, 3), (0, 4)],
    "longtailed-triangle": [(0, 1), (0, 2), (1, 2), (0, 3), (3, 4)],
    "banner": [(0, 1), (1, 2), (2, 3), (0, 3), (0, 4)],
    "3-wedge-collision": [(0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4)],
    "house": [(0, 1), (1, 2), (2, 3), (0, 3), (0, 4), (1, 4)],
    "bowtie": [(0, 1), (0, 2), (1, 2), (0, 3), (0, 4), (3, 4)],
    "dart": [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (0, 4)],
    "kite": [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 4)],
    "gem": [(0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (2, 3), (3, 4)],
    "3-triangle-collision": [(0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4)],
    "diamond-wedge-collision": [(0, 1), (1, 2), (2, 3), (0, 3), (0, 4), (1, 4), (2, 4)],
    "tailed-4-clique": [*_clique(4), (0, 4)],
    "house-x": [*_clique(4), (0, 4), (1, 4)],
}
"""Five vertices: names of ISGCI (graphclasses.org) and networkx, else those of Pinar et al., ESCAPE (WWW 2017)."""
_FAMILIES: dict[str, tuple[int, int, Callable[[int], list[tuple[int, int]]], str]] = {
    "clique": (2, MAX_FAMILY, _clique, "k vertices, every pair joined"),
    "cycle": (3, MAX_FAMILY, _cycle, "a cycle of k vertices"),
    "path": (
        2,
        MAX_FAMILY,
        lambda k: [(i, i + 1) for i in range(k - 1)],
        "a path of k vertices",
    ),
    "star": (
        2,
        MAX_FAMILY - 1,
        lambda k: [(0, i + 1) for i in range(k)],
        "a centre (vertex 0) with k leaves",
    ),
    "wheel": (
        4,
        MAX_FAMILY,
        lambda k: [(0, i) for i in range(1, k)] + [(i, i + 1) for i in range(1, k - 1)] + [(1, k - 1)],
        "k vertices: a centre (vertex 0) joined to a cycle",
    ),
    "quasi-clique": (4, MAX_FAMILY, lambda k: _clique(k)[:-1], "k vertices, one edge short of a clique"),
}


def named_patterns() -> list[tuple[str, str, str]]:
    """List the named patterns.

    Returns
    -------
    list of (name, edge list or "", description)
        Families are listed as ``clique-k`` with their range of k.
    """
    rows = [(name, make_pattern(edges).edge_text, "") for name, edges in _FIXED.items()]
    rows += [(f"{name}-k", "", f"{text}; k = {low} to {high}") for name, (low, high, _, text) in _FAMILIES.items()]
    return rows


def family_names() -> list[str]:
    """Return the names of all patterns that come in sizes, such as ``clique-5``."""
    return [f"{name}-{k}" for name, (low, high, _, _) in _FAMILIES.items() for k in range(low, high + 1)]


def named_patterns_of(vertices: int) -> list[Pattern]:
    """Return the patterns of a size that have a name; one may be there by several names."""
    found = [make_pattern(edges, name=name) for name, edges in _FIXED.items()]
    for name, (low, high, build, _) in _FAMILIES.items():
        sizes = (k for k in (vertices - 1, vertices) if low <= k <= high)
        found += [make_pattern(build(k), name=f"{name}-{k}") for k in sizes]
    return [pattern for pattern in found if pattern.num_vertices == vertices]


def is_pattern_file(text: str) -> bool:
    """Say whether a pattern is given by the path of a file."""
    return text.strip().endswith((".graph", ".graphml"))


_OTHER_NAMES = {
    "square": "cycle-4",
    "rectangle": "cycle-4",
    "claw": "star-3",
    "paw": "tailed-triangle",
    "chair": "fork",
    "prong": "fork",
    "hourglass": "bowtie",
    "butterfly": "bowtie",
    "k2,3": "3-wedge-collision",
    "k1,1,3": "3-triangle-collision",
    "book": "3-triangle-collision",
    "triangle-strip": "gem",
    "hatted-4-cycle": "house",
    "hatted-4-clique": "house-x",
    "tailed-4-cycle": "banner",
    "doubletailed-triangle": "bull",
    "forktailed-triangle": "cricket",
    "almost-5-clique": "quasi-clique-5",
}
_OTHER_FAMILY = re.compile(r"(\d{1,2})-?([a-z]+?)s?|([kcps])_?(\d{1,2})", re.IGNORECASE)
_LETTERS = {"k": "clique", "c": "cycle", "p": "path", "s": "star"}


def _other_name(text: str) -> list[str]:
    """Return what a pattern is called here that others call 5-clique, K5 or square."""
    if (name := _OTHER_NAMES.get(text.lower())) is not None:
        return [name]
    if (other := _OTHER_FAMILY.fullmatch(text)) is None:
        return []
    family = other[2].lower() if other[2] else _LETTERS[other[3].lower()]
    return [f"{family}-{int(other[1] or other[4])}"] if family in _FAMILIES else []


_FAMILY = re.compile(r"([a-z-]+?)-(\d{1,999})")
_EDGE_LIST = re.compile(r"\s*\d{1,999}\s*-\s*\d{1,999}\s*(,\s*\d{1,999}\s*-\s*\d{1,999}\s*)*")


@lru_cache(maxsize=256)
def is_pattern_name(text: str) -> bool:
    """Say whether a pattern is given by its name, its edge list, or its vertices in parentheses."""
    text = text.strip()
    family = _FAMILY.fullmatch(text)
    known = text in _FIXED or (family is not None and family[1] in _FAMILIES)
    return known or is_pattern_text(text) or _EDGE_LIST.fullmatch(text) is not None


def parse_pattern(text: str, labels: Sequence[int] | None = None) -> Pattern:
    """Read a pattern from its name, its edge list, or the path of a file.

    Parameters
    ----------
    text
        A name (``diamond``, ``clique-5``), an edge list (``0-1,1-2,2-0``), edges with names and labels
        (``(a:1)-(b:2)-(c), (a)-(c)``), or a path that ends in ``.graph`` or ``.graphml``.
    labels
        One label per vertex; overrides the labels of a file.

    Raises
    ------
    InputError
        When the text is none of these or the pattern cannot be searched for.
    """
    text = text.strip()
    if is_pattern_file(text):
        from longwall.pipeline.patterns.pattern_files import read_pattern

        require_path("pattern", text, "a .graph or .graphml file")
        return read_pattern(user_path(text), labels)
    return _parse_unlabelled(text) if labels is None else _parse(text, labels)


@lru_cache(maxsize=256)  # a call parses the text of its pattern several times, and parsing takes 0.1 ms
def _parse_unlabelled(text: str) -> Pattern:
    return _parse(text, None)


def _parse(text: str, labels: Sequence[int] | None) -> Pattern:
    if text in _FIXED:
        return make_pattern(_FIXED[text], labels, name=text)
    family = _FAMILY.fullmatch(text)
    if family and family[1] in _FAMILIES:
        low, high, build, _ = _FAMILIES[family[1]]
        k = int(family[2])
        if not low <= k <= high:
            raise InputError(
                f"pattern {brief(text)}: k must lie between {low} and {high}; a larger pattern is given by its edges"
            )
        return make_pattern(build(k), labels, name=text)
    if _EDGE_LIST.fullmatch(text):
        pairs = [part.split("-") for part in text.split(",")]
        return make_pattern([(int(u), int(v)) for u, v in pairs], labels, name=text)
    if is_pattern_text(text):
        return _labelled(parse_pattern_text(text), labels)
    if re.search(r"->|<-|[→←]", text):
        raise InputError(f"pattern {brief(text)}: patterns have no directions: write - for each edge")
    if not text:
        raise InputError("the pattern is empty: give a name, an edge list such as '0-1,1-2,2-0', or a file")
    known = [*_FIXED, *(f"{name}-{max(low, 4)}" for name, (low, _, _, _) in _FAMILIES.items())]
    near = _other_name(text) or difflib.get_close_matches(text, known, 1)
    hint = f"did you mean {near[0]!r}? Give" if near else "give"
    raise InputError(
        f"unknown pattern {brief(text)}: {hint} a name (see `longwall patterns`), an edge list such as "
        "'0-1,1-2,2-0', vertices with names in parentheses such as '(a)-(b), (b)-(c)', or a .graph or .graphml file"
    )


def _labelled(pattern: Pattern, labels: Sequence[int] | None) -> Pattern:
    """Return a pattern that was written as text, with labels that are given besides."""
    if labels is None:
        return pattern
    if pattern.labels is not None:
        raise InputError(f"pattern {brief(pattern.name)} has labels of its own: leave the others out")
    plain = make_pattern(pattern.edges, labels, name=pattern.name)
    return replace(plain, names=pattern.names, edge_labels=pattern.edge_labels)
