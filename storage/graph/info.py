"""What `longwall info` says about a graph."""

from collections.abc import Iterable
from typing import Any

from longwall.storage.graph.graph import Graph
from longwall.storage.ingest.data_notes import Noted


def info(graph: Graph) -> dict[str, Any]:
    """Describe a graph as a dict that JSON can hold: sizes, bytes, labels, hash and `GraphStats`' fields."""
    ids = graph.original_ids
    ends = (int(ids.min()), int(ids.max())) if len(ids) else (0, -1)
    return {
        **named_labels(graph.stats.to_dict(), graph.label_names),
        **id_facts(graph.has_names, *ends),
        "vertex_labels": graph.has_labels,
        "edge_labels": graph.edge_labels is not None,
        "transactions": graph.num_transactions,
        "bytes": graph.nbytes,
        "content_hash": graph.content_hash,
        **note_facts(graph.notes),
    }


def named_labels(stats: dict[str, Any], names: tuple[str, ...] | None) -> dict[str, Any]:
    """Return statistics whose label counts have the texts of the labels, where these are texts."""
    if names is None:
        return stats
    return stats | {"label_counts": {names[int(label)]: count for label, count in stats["label_counts"].items()}}


def note_facts(notes: Iterable[Noted]) -> dict[str, Any]:
    """Describe the data that was dropped, merged or guessed, if any."""
    texts = [note.text for note in notes]
    return {"notes": texts} if texts else {}


def id_facts(named: bool, smallest: int, largest: int) -> dict[str, Any]:
    """Describe the ids of the input, with their range if they are integers and the graph has a vertex."""
    ends = {} if named or smallest > largest else {"smallest_id": smallest, "largest_id": largest}
    return {"ids": "names" if named else "integers"} | ends
