"""Stores in short chunks and segments, so that small graphs have many of them, and graphs that stay there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from unittest.mock import patch

from longwall.storage.arrays import array_hash, layout
from longwall.storage.graph.graph import Graph
from longwall.storage.graph.store_writer import write_graph
from longwall.storage.memory.reservations import MemoryBudget
from longwall.storage.memory.resources import Resources
from longwall.storage.observer import NullObserver
from longwall.storage.streaming.list_file import ListFile
from longwall.storage.streaming.orient_store import orient_store
from longwall.storage.streaming.stored_graph import StoredGraph, open_stored

PLENTY = 1 << 26
WHY = "the graph is too large: raise memory.host"


@contextmanager
def short_chunks(size: int = 64) -> Iterator[None]:
    """Cut arrays into chunks, and their hashes into segments, of so many bytes, in this process."""
    with patch.object(layout, "CHUNK_BYTES", size), patch.object(array_hash, "SEGMENT_BYTES", size):
        yield


def store_of(graph: Graph, path: Path) -> StoredGraph:
    """Write a store, and open it as a graph that stays there."""
    write_graph(graph, path)
    return open_stored(path, MemoryBudget("memory.host", PLENTY), WHY)


def lists_of(graph: StoredGraph, resources: Resources) -> ListFile:
    """Return the lists of smaller neighbours of a graph."""
    return orient_store(graph, resources, NullObserver(), Event())
