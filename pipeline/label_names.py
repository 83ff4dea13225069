"""Labels that are texts: from the config to the numbers that a graph has for them, and back in results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from longwall.pipeline.patterns.pattern import ANY_LABEL
from longwall.storage.errors import InputError
from longwall.storage.system.arguments import brief

if TYPE_CHECKING:
    from longwall.pipeline.execution.environment import PatternCount
    from longwall.pipeline.patterns.pattern import Pattern
    from longwall.storage.graph.graph import Graph

Label = int | str
_LISTED = 5  # labels that a message lists


def with_label_numbers(pattern: Pattern, labels: Sequence[Label] | None, graph: Graph) -> Pattern:
    """Return a pattern whose labels are the numbers that a graph has for them.

    Parameters
    ----------
    pattern
        The pattern, with labels of its own or without.
    labels
        Those that the config has besides.
    graph
        The graph.

    Raises
    ------
    InputError
        If the graph has no labels of vertices, or of edges, where the pattern has some; or has labels of the other
        type, or none of this name.
    """
    pattern = _with_edge_label_numbers(pattern, graph)
    words = pattern.words or (None,) * pattern.num_vertices
    own = None if pattern.labels is None else [word or label for word, label in zip(words, pattern.labels, strict=True)]
    wanted = own if labels is None else labels
    if wanted is None:
        return pattern
    key = "workload.pattern" if labels is None else "workload.pattern_labels"
    if not graph.has_labels:
        given = "has labels" if labels is None else "is given"
        raise InputError(f"{key} {given}, but the graph has no labels: add graph.labels or graph.vertices")
    return replace(pattern, labels=tuple(_number(label, graph.label_names, key) for label in wanted), words=())


def _with_edge_label_numbers(pattern: Pattern, graph: Graph) -> Pattern:
    if pattern.edge_labels is None:
        return pattern
    key = "workload.pattern"
    if graph.edge_labels is None:
        raise InputError(f"{key} has a label of an edge, but the edges of the graph have none: add graph.edge_label")
    names = graph.edge_label_names
    labels = (None if one is None else _number(one, names, key, "edge") for one in pattern.edge_labels)
    return replace(pattern, edge_labels=tuple(labels))


def placeholders(labels: Sequence[Label] | None) -> tuple[int, ...] | None:
    """Return numbers in the place of labels, equal where these are: what is there before the graph is read."""
    if labels is None:
        return None
    texts = list(dict.fromkeys(label for label in labels if isinstance(label, str)))
    return tuple(label if isinstance(label, int) else texts.index(label) for label in labels)


def with_label_names(counts: Iterable[PatternCount], graph: Graph) -> list[PatternCount]:
    """Return counts with the texts that the input has for labels."""
    if graph.label_names is None and graph.edge_label_names is None:
        return list(counts)
    return [
        replace(
            one,
            labels=label_texts(one.labels, graph.label_names),
            edge_labels=label_texts(one.edge_labels, graph.edge_label_names),
        )
        for one in counts
    ]


def label_texts(labels: Sequence[Label | None] | None, names: Sequence[str] | None) -> tuple[Label | None, ...] | None:
    """Return labels as the input has them, integers or texts; None where any will do."""
    if labels is None:
        return None
    known = [None if label == ANY_LABEL else label for label in labels]
    return tuple([names[label] if names is not None and isinstance(label, int) else label for label in known])


def _number(label: Label, names: tuple[str, ...] | None, key: str, what: str = "vertex") -> int:
    if label == ANY_LABEL:
        return ANY_LABEL
    if names is None:
        if isinstance(label, str):
            whose = "this graph" if what == "vertex" else "its edges"
            raise InputError(f"{key} has the label {brief(label)}, but labels of {whose} are integers")
        return label
    if isinstance(label, int):
        label = str(label)  # a column of texts may hold digits
    if label in names:
        return names.index(label)
    near = get_close_matches(label, names, 1)
    hint = f"did you mean {brief(near[0])}? There are " if near else "there are "
    more = f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else ""
    there = ", ".join(map(brief, names[:_LISTED]))
    raise InputError(f"{key}: no {what} of the graph has the label {brief(label)}; {hint}{there}{more}")
