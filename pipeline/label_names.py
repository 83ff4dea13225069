"""Labels that are texts: from the config to the numbers that a graph has for them, and back in results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from longwall.storage.arguments import brief
from longwall.storage.errors import InputError

if TYPE_CHECKING:
    from longwall.pipeline.execution.environment import PatternCount
    from longwall.storage.graph.graph import Graph

Label = int | str
_LISTED = 5  # labels that a message lists


def label_numbers(labels: Sequence[Label] | None, graph: Graph) -> tuple[int, ...] | None:
    """Return the numbers of the labels of a pattern's vertices.

    Raises
    ------
    InputError
        If the graph has no labels, or has labels of the other type, or none of this name.
    """
    if labels is None:
        return None
    if not graph.has_labels:
        raise InputError(
            "workload.pattern_labels is given, but the graph has no labels: add graph.labels or graph.vertices"
        )
    return tuple(_number(label, graph.label_names) for label in labels)


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


def label_texts(labels: Sequence[Label] | None, names: Sequence[str] | None) -> tuple[Label, ...] | None:
    """Return labels as the input has them; they stay as they are where they are integers there."""
    if labels is None or names is None:
        return None if labels is None else tuple(labels)
    return tuple(names[label] if isinstance(label, int) else label for label in labels)


def _number(label: Label, names: tuple[str, ...] | None) -> int:
    if names is None:
        if isinstance(label, str):
            raise InputError(f'workload.pattern_labels: the labels of this graph are integers, "{label:.40}" is none')
        return label
    if isinstance(label, int):
        label = str(label)  # a column of texts may hold digits
    if label in names:
        return names.index(label)
    close = get_close_matches(label, names, _LISTED) or list(names[:_LISTED])
    there = ", ".join(map(brief, close))
    raise InputError(
        f"workload.pattern_labels: no vertex of the graph has the label {brief(label)}; there are {there}, ..."
    )
