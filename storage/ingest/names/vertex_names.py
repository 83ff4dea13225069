"""Find attributes of nodes that look like names of vertices, and note that they are not read."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

from longwall.storage.ingest.data_notes import DataNotes

SAMPLE = 1000
"""The number of nodes whose attributes are examined."""
_KNOWN = ("name", "label")
_DIGITS = "0123456789"


def may_name(attribute: str) -> bool:
    """Whether an attribute has a usual name for names of vertices."""
    return attribute.lower() in _KNOWN


def look_like_names(ids: Sequence[Any], values: Sequence[Any]) -> bool:
    """Whether the values of an attribute look like names of the nodes, while the ids are numbers such as n0 and n1.

    Parameters
    ----------
    ids, values
        The ids of some nodes, and the value of each; "" or None if a node has none.
    """
    if not ids or not all(isinstance(value, str) and value for value in values):
        return False
    plain = [str(one).removeprefix("-") for one in ids]
    numbered = all(one[-1:] in _DIGITS and len(one.rstrip(_DIGITS)) <= len("vertex_") for one in plain)
    others = not all(value.isdigit() for value in values) and list(map(str, ids)) != list(values)
    return numbered and others and len(set(values)) == len(values)


def note_of_nodes(notes: DataNotes, nodes: Any, count: int, unread: str | None = None) -> None:
    """Note an attribute of nodes that looks like their names and is not read.

    Parameters
    ----------
    notes
        Takes the note.
    nodes : iterable of (id, dict)
        The nodes.
    count
        The number of nodes.
    unread
        An attribute that is read for another purpose.
    """
    sample = list(islice(nodes, SAMPLE))
    known = dict.fromkeys(name for _, data in sample for name in data if may_name(str(name)) and name != unread)
    for name in sorted(known, key=lambda name: _KNOWN.index(str(name).lower())):
        if look_like_names([node for node, _ in sample], [data.get(name) for _, data in sample]):
            note_names(notes, str(name), count)
            return


def note_names(notes: DataNotes, attribute: str, count: int) -> None:
    """Note that an attribute looks like the names of `count` vertices, and the key that reads it."""
    notes.add(
        "names",
        count,
        f'to read the attribute, set graph.vertex_name = "{attribute}", or vertex_name="{attribute}" in Python',
    )
