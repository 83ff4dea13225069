"""Ranges of vertices are as long as their tables have room, and what is read for them is predicted."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from threading import Event

import numpy as np
from budgets import make_budgets
from hypothesis import given, settings
from hypothesis import strategies as st
from stored import lists_of, short_chunks, store_of

from longwall.kernels.cpu.engine import CpuEngine
from longwall.kernels.interface.kcliques import table_words
from longwall.storage.generators.kinds import generate
from longwall.storage.memory.spill_folder import SpillFolder
from longwall.storage.streaming import table_ranges
from longwall.storage.streaming.graph_parts import GraphParts
from longwall.storage.streaming.list_capacity import ListRoom, capacity_bytes
from longwall.storage.streaming.table_ranges import estimate_tabled_reads, range_end

SIZE, LEAST = 12_000, 3  # of a part


@settings(deadline=None)
@given(st.lists(st.integers(0, 90), min_size=1, max_size=40), st.integers(1, 6), st.data())
def test_a_range_ends_where_there_is_no_room(lengths: list[int], at_once: int, data: st.DataObject) -> None:
    starts = np.cumsum([0, *lengths])
    first = data.draw(st.integers(0, len(lengths) - 1))
    last = data.draw(st.integers(first + 1, len(lengths)))
    words, arcs = data.draw(st.integers(0, 3000)), data.draw(st.none() | st.integers(0, 500))

    def fits(end: int) -> bool:
        some = np.array(lengths[first:end])
        return bool(table_words(some, LEAST).sum() <= words and (arcs is None or some.sum() <= arcs))

    most = max((end for end in range(first + 1, last + 1) if fits(end)), default=first + 1)
    before, table_ranges._VERTICES_AT_ONCE = table_ranges._VERTICES_AT_ONCE, at_once
    try:
        assert range_end(starts, first, last, LEAST, words, arcs) == most
    finally:
        table_ranges._VERTICES_AT_ONCE = before


def test_what_is_read_is_predicted(tmp_path: Path) -> None:
    """Ranges are read as they are counted, and all their arcs are where the first block put those of the roots."""
    graph = generate("rmat", scale=10, edge_factor=16, seed=1)
    with short_chunks(512), SpillFolder(tmp_path / "spill") as spill:
        stored = store_of(graph, tmp_path / "graph")
        engine = CpuEngine(1)
        capacity = ListRoom(engine, stored.num_vertices, SIZE, stored.stats.max_out_degree)
        assert capacity.nbytes == capacity_bytes(stored.num_vertices, SIZE)
        for words in (2_000, 5_000, 1 << 30):
            first, ranges, blocks = 0, 0, 0
            with (
                closing(lists_of(stored, make_budgets().at(spill))) as lists,
                closing(GraphParts(stored, lists, SIZE, 2, Event())) as parts,
            ):
                while first < stored.num_vertices:
                    end = range_end(stored.starts, first, stored.num_vertices, LEAST, words)
                    arcs = int(stored.starts[first]), int(stored.starts[end])
                    window = parts.window(first, arcs, LEAST, split=True)
                    roots = None
                    for part in parts.parts(window, split=True):
                        shift = capacity.bring(part, 0 if roots is None else part.roots)
                        there, vertices = capacity.graph, part.graph.num_vertices
                        assert there.num_arcs - shift == part.graph.num_arcs
                        assert (there.indptr[: vertices + 1] == part.graph.indptr + shift).all()
                        assert (there.indptr[vertices:] == there.num_arcs).all()
                        assert there.indices[shift:].tolist() == part.graph.indices.tolist()
                        mine = (part.first + shift, part.last + shift, part.roots)
                        assert roots in (None, mine)
                        roots, blocks = mine, blocks + 1
                    first, ranges = window.last, ranges + 1
                read = parts.bytes_read
            predicted = estimate_tabled_reads(stored, SIZE, 1, LEAST, words)
            assert blocks > ranges
            assert read / 2 < predicted.size < 2 * read
            assert ranges / 3 < predicted.windows < 3 * ranges
