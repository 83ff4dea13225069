"""Patterns from files: ``.graph`` of the subgraph-matching field, and GraphML."""

import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from longwall.pipeline.patterns.pattern import Pattern, make_pattern
from longwall.storage.errors import InputError
from longwall.storage.ingest.data_notes import DataNotes, Noted
from longwall.storage.ingest.text.input_file import input_errors, open_input
from longwall.storage.memory.sizes import round_size
from longwall.storage.system.arguments import brief

_LARGEST_FILE = 2**20  # bytes; patterns have a few vertices


def read_pattern(path: Path, labels: Sequence[int] | None = None) -> Pattern:
    """Read a pattern; its vertices are renumbered 0, 1, ... in the order of their ids.

    Parameters
    ----------
    path
        A ``.graph`` file (``t n m``, ``v id label degree``, ``e u v``) or a ``.graphml`` file, whose nodes may
        have an integer attribute ``label``.
    labels
        One label per vertex; overrides those of the file.

    Raises
    ------
    InputError
        Naming the file and what is wrong with it.
    """
    with _opened(path) as file:
        ids, edges, own = _read_graphml(path, file) if path.suffix == ".graphml" else _read_graph(path)
    number = {v: i for i, v in enumerate(ids)}
    given = labels if labels is not None else own
    return make_pattern([(number[u], number[v]) for u, v in edges], given, name=str(path))


def dropped_of(path: Path) -> tuple[Noted, ...]:
    """Count the directions and repeated edges that `read_pattern` drops from a GraphML file; errors as of it."""
    if path.suffix != ".graphml":
        return ()
    with _opened(path) as file:
        graph = _network(path, file)
    return dropped_edges(list(graph.edges()), directed=graph.is_directed())


def dropped_edges(pairs: Sequence[tuple[Any, ...]], *, directed: bool) -> tuple[Noted, ...]:
    """Count the directions and repeated edges that are dropped."""
    notes = DataNotes()
    notes.add("directions", len(pairs) if directed else 0)
    notes.add("repeated", len(pairs) - len(set(map(frozenset, pairs))))
    return notes.all()


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    with input_errors(path), open_input(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > _LARGEST_FILE:
            raise InputError(
                f"{path}: {round_size(size)} are no pattern; give a file of at most {round_size(_LARGEST_FILE)}"
            )
        yield file


def _read_graph(path: Path) -> tuple[list[int], list[tuple[int, int]], list[int] | None]:
    from longwall.storage.ingest.readers.vertex_edge_lines import read_graph

    raw = read_graph(path)
    assert raw.vertex_labels is not None, "the format has a label for every vertex"
    label = dict(zip(raw.vertex_labels.ids.tolist(), raw.vertex_labels.values.tolist(), strict=True))
    ids = sorted(label)
    return ids, list(zip(raw.src.tolist(), raw.dst.tolist(), strict=True)), [label[v] for v in ids]


def _read_graphml(path: Path, file: BinaryIO) -> tuple[list[Any], list[tuple[Any, Any]], list[int] | None]:
    import networkx

    graph = _network(path, file)
    ids = list(graph)
    labels = networkx.get_node_attributes(graph, "label")
    if not labels:
        return ids, list(graph.edges()), None
    for v in ids:
        if type(labels.get(v)) is not int:
            raise InputError(
                f'{path}: node {brief(v)} has the label {brief(labels.get(v))}; give every node an int "label" or none'
            )
    return ids, list(graph.edges()), [labels[v] for v in ids]


def _network(path: Path, file: BinaryIO) -> Any:
    import networkx

    content = io.BytesIO(file.read(_LARGEST_FILE))
    try:
        return networkx.read_graphml(content)
    except Exception as reason:  # networkx passes on errors of the XML parser and of its own checks
        raise InputError(f"{path} is not a GraphML file: {reason!s:.200}") from None
