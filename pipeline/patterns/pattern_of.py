"""Patterns of what is in memory: texts, lists of pairs, and graphs of networkx and igraph."""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from longwall.pipeline.label_names import placeholders
from longwall.pipeline.patterns.parse import is_pattern_file, parse_pattern
from longwall.pipeline.patterns.pattern import ANY_LABEL, MAX_VERTICES, Pattern
from longwall.pipeline.patterns.pattern_files import dropped_edges, dropped_of
from longwall.pipeline.patterns.pattern_text import label_text, pattern_text
from longwall.storage.errors import InputError
from longwall.storage.ingest.data_notes import warn_of
from longwall.storage.system.arguments import brief, type_name, wrong_type
from longwall.storage.system.paths import user_path

_EXPECTED = (
    'a name such as "diamond", an edge list such as "0-1,1-2", a text such as "(a:1)-(b:2)", a list of pairs, a graph '
    "of networkx or igraph, or the path of a .graph or .graphml file"
)


def pattern(source: Any, labels: Sequence[int | str] | None = None) -> Pattern:
    """Make a pattern; in a notebook it is drawn.

    Parameters
    ----------
    source
        A name (``"diamond"``, ``"clique-5"``), an edge list (``"0-1,1-2"``, or a list of pairs), a text with names and
        labels (``"(a:1)-(b:2)-(c), (a)-(c)"``), a graph of networkx or igraph, whose nodes and edges may have an
        attribute ``label``, or the path of a file.
    labels
        One label for each vertex, an integer or a text, where `source` has none.

    Returns
    -------
    Pattern
        What all functions take in place of `source`, too.

    Raises
    ------
    InputError
        If it is none of these, or cannot be searched for.

    Examples
    --------
    >>> import longwall
    >>> house = longwall.pattern("house")
    >>> house.num_vertices, house.edge_text
    (5, '0-1,0-3,0-4,1-2,1-4,2-3')
    >>> longwall.pattern("(a:1)-(b:2)-(c), (a)-(c)").columns
    ('a', 'b', 'c')
    """
    if labels is None:
        return parse_pattern(source_text(source))
    values = _values(labels)
    made = parse_pattern(source_text(source), placeholders(values))
    if all(isinstance(label, int) for label in values):
        return made
    numbers = tuple(label if isinstance(label, int) else ANY_LABEL for label in values)
    return replace(made, labels=numbers, words=tuple(label if isinstance(label, str) else None for label in values))


def source_text(source: Any) -> str:
    """Return what stands for a pattern in a config; parameters and errors as of `pattern`."""
    if isinstance(source, str | Path):
        return _text_of_file(str(source)) if is_pattern_file(str(source)) else str(source)
    if isinstance(source, Pattern):
        return source.name if _says_all(source) else pattern_text(source)
    packages = {kind.__module__.partition(".")[0] for kind in type(source).__mro__}
    if "networkx" in packages:
        nodes = {node: data.get("label") for node, data in source.nodes(data=True)}
        return _graph_text(nodes, list(source.edges(data="label")), directed=source.is_directed())
    if "igraph" in packages:
        names = source.vs["name"] if "name" in source.vs.attributes() else range(source.vcount())
        labels = source.vs["label"] if "label" in source.vs.attributes() else [None] * source.vcount()
        of_edges = source.es["label"] if "label" in source.es.attributes() else [None] * source.ecount()
        names = list(names)
        pairs = [(names[u], names[v]) for u, v in source.get_edgelist()]
        edges = [(u, v, label) for (u, v), label in zip(pairs, of_edges, strict=True)]
        if len(set(names)) < len(names):
            raise InputError("pattern: two vertices have the same name; give each a name of its own")
        return _graph_text(dict(zip(names, labels, strict=True)), edges, directed=source.is_directed())
    if isinstance(source, list | tuple):
        texts = [_pair_text(at, pair) for at, pair in enumerate(source)]
        _warn([tuple(pair) for pair in source])
        return ",".join(texts)
    raise wrong_type("pattern", source, _EXPECTED)


def _says_all(source: Pattern) -> bool:
    """Whether the name of a pattern is a text that it can be made of again, without labels that came besides."""
    try:
        return bool(source.name) and parse_pattern(source.name) == source
    except InputError:
        return False


def _values(labels: Sequence[int | str]) -> list[int | str]:
    values = list(getattr(labels, "tolist", lambda: labels)())
    for label in values:
        if type(label) not in (int, str) or label == "":
            raise InputError(
                f"labels: expected whole numbers or texts, one for each vertex of the pattern, not {brief(label)}"
            )
    return values


def _pair_text(at: int, pair: Any) -> str:
    try:
        u, v = (int(end) for end in pair if int(end) == end and end >= 0 and not isinstance(end, bool))
    except (TypeError, ValueError):
        raise InputError(
            f"pattern: expected pairs of numbers from 0 up such as (0, 1), and there is {brief(pair)} at {at}"
        ) from None
    return f"{u}-{v}"


def _graph_text(labels: dict[Any, Any], edges: list[tuple[Any, Any, Any]], *, directed: bool) -> str:
    """Return the text of a graph, from its nodes and edges with their labels; warn of data that is dropped."""
    if len(labels) > MAX_VERTICES:
        raise InputError(f"the pattern has {len(labels):,} vertices: at most {MAX_VERTICES} are supported")
    if not labels:
        raise InputError("the pattern has no edge: give a graph with at least one")
    names = _names(list(labels))
    parts = [f"({names[node]}{_label(label)})" for node, label in labels.items()]
    for u, v, label in edges:
        dash = "-" if label is None else f"-[{_label(label)}]-"
        parts.append(f"({names[u]}){dash}({names[v]})")
    _warn([(u, v) for u, v, _ in edges], directed=directed)
    return ", ".join(parts)


def _warn(pairs: list[tuple[Any, ...]], *, directed: bool = False) -> None:
    """Warn of directions and of repeated edges, which are dropped."""
    warn_of("the pattern", dropped_edges(pairs, directed=directed))


def _text_of_file(path: str) -> str:
    """Return the path of a file; warn of directions and repeated edges that are dropped from its pattern."""
    with suppress(InputError):  # it is said when the pattern is read
        warn_of(path, dropped_of(user_path(path.strip())))
    return path


def _names(nodes: list[Any]) -> dict[Any, str]:
    """Return names that a text can have: the nodes' where they are words, v0, v1, ... where they are numbers."""
    named = {node: f"v{node}" if isinstance(node, int) else str(node) for node in nodes}
    fit = len(set(named.values())) == len(nodes) and all(re.fullmatch(r"\w+", name) for name in named.values())
    return named if fit else {node: f"v{number}" for number, node in enumerate(nodes)}


def _label(label: Any) -> str:
    plain = label.item() if hasattr(label, "item") else label
    if plain is not None and (isinstance(plain, bool) or not isinstance(plain, int | str)):
        raise InputError(f"pattern: a label is a whole number or a text, not {type_name(plain)}")
    if isinstance(plain, int) and plain < 0:
        raise InputError(f"pattern: there is the label {brief(plain)}; labels are numbers from 0 up, or texts")
    if plain == "":
        raise InputError("pattern: a label is an empty text; choose another")
    return label_text(plain)
