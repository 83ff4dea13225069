"""Attributes of nodes that look like the names of vertices, and the note that says that they are not read."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

from longwall.storage.ingest.data_notes import DataNotes

SAMPLE = 1000
"""How many nodes are looked at."""
_KNOWN = ("name", "label")
_DIGITS = "0123456789"


def may_name(attribute: str) -> bool:
    """Say whether an attribute is called as names of vertices are."""
    return attribute.lower() in _KNOWN


def look_like_names(ids: Sequence[Any], values: Sequence[Any]) -> bool:
    """Say whether values of an attribute of nodes are their names, and the ids mere numbers, such as n0 and n1.

    Parameters
    ----------
    ids, values
        The ids of some nodes, and the value of each; "" or None where a node has none.
    """
    if not ids or not all(isinstance(value, str) and value for value in values):
        return False
    plain = [str(one).removeprefix("-") for one in ids]
    numbered = all(one[-1:] in _DIGITS and len(one.rstrip(_DIGITS)) <= len("vertex_") for one in plain)
    others = not all(value.isdigit() for value in values) and list(map(str, ids)) != list(values)
    return numbered and others and len(set(values)) == len(values)


def note_of_nodes(notes: DataNotes, nodes: Any, count: int, unread: str | None = None) -> None:
    """Say of nodes with attributes that one of these looks like their names, which are not read.

    Parameters
    ----------
    notes
        Takes the note.
    nodes : iterable of (id, dict)
        The nodes.
    count
        How many there are.
    unread
        An attribute that is read for something else.
    """
    sample = list(islice(nodes, SAMPLE))
    known = dict.fromkeys(name for _, data in sample for name in data if may_name(str(name)) and name != unread)
    for name in sorted(known, key=lambda name: _KNOWN.index(str(name).lower())):
        if look_like_names([node for node, _ in sample], [data.get(name) for _, data in sample]):
            note_names(notes, str(name), count)
            return


def note_names(notes: DataNotes, attribute: str, count: int) -> None:
    """Say that an attribute looks like the names of so many vertices, and which key reads it."""
    notes.add(
        "names",
        count,
        f'to read the attribute, set graph.vertex_name = "{attribute}", or vertex_name="{attribute}" in Python',
    )
