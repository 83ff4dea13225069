"""Arguments of the calls that are refused, with what would do instead."""

from __future__ import annotations

import numpy as np
import pytest

import longwall
from longwall.stages.aggregation.pattern_keys import PatternKeys
from longwall.storage.ingest.build import build_graph


def test_filter_refuses_what_is_no_mask(graph):
    with pytest.raises(longwall.InputError, match="bool array of shape"):
        longwall.filter(longwall.vertices(graph), lambda columns, graph, xp: columns[0])


def test_kinds_do_not_mix(graph):
    with pytest.raises(longwall.InputError, match=r"longwall.vertices"):
        longwall.extend_vertices(longwall.edges(graph))
    with pytest.raises(longwall.InputError, match=r"longwall.edges"):
        longwall.extend_edges(longwall.vertices(graph))
    with pytest.raises(longwall.InputError, match="there is no column 1, only columns 0 to 0"):
        longwall.extend_vertices(longwall.vertices(graph), [1])
    with pytest.raises(longwall.InputError, match="the list is empty"):
        longwall.extend_vertices(longwall.vertices(graph), [])


def test_a_closed_table_is_not_an_empty_one(graph):
    wedges = longwall.extend_vertices(longwall.vertices(graph))
    wedges.close()
    uses = [
        lambda: len(wedges),
        wedges.to_arrow,
        lambda: longwall.aggregate(wedges),
        lambda: longwall.aggregate(wedges, lambda columns, graph, xp: columns[0]),
        lambda: longwall.extend_vertices(wedges),
        lambda: longwall.filter(wedges, lambda columns, graph, xp: columns[0] > 0),
    ]
    for use in uses:
        with pytest.raises(longwall.InputError, match="the table was closed"):
            use()


@pytest.mark.parametrize("columns", [0, 1.5, "0", [0.0], [None]])
def test_columns_that_are_no_list_of_numbers_are_refused(graph, columns):
    with pytest.raises(longwall.InputError, match=r"^adjacent_to: expected a list of the numbers of columns"):
        longwall.extend_vertices(longwall.vertices(graph), columns)


def test_a_key_of_another_shape_is_refused(graph):
    with pytest.raises(longwall.InputError, match="shape"):
        longwall.aggregate(longwall.vertices(graph), lambda columns, graph, xp: columns[0][:1])


def test_too_many_vertices_are_refused_before_tables_are_read(monkeypatch):
    ends = np.arange(9)
    path = build_graph(ends[:-1], ends[1:])
    of_vertices, of_edges = longwall.vertices(path), longwall.edges(path)
    for _ in range(7):
        of_vertices, of_edges = longwall.extend_vertices(of_vertices), longwall.extend_edges(of_edges)
    with pytest.raises(longwall.InputError, match="at most 7 vertices"):
        PatternKeys.of_table("edge", 8, None).of_rows(next(of_edges.table.stream()), of_edges.arrays)
    with pytest.raises(longwall.InputError, match="at most 7 vertices"):
        longwall.aggregate(of_edges)
    monkeypatch.delattr(type(of_vertices.table), "stream")
    with pytest.raises(longwall.InputError, match="at most 7 vertices"):
        longwall.aggregate(of_vertices)


@pytest.mark.parametrize("size", [4e9, True, b"4GiB", [1]])
def test_a_size_of_another_type_is_refused(graph, size):
    for option in ("memory", "disk"):
        with pytest.raises(longwall.InputError, match=rf"^{option}: expected a size: whole bytes, or .*, not \w+$"):
            longwall.vertices(graph, **{option: size})


def test_a_size_that_is_none_is_refused(graph):
    with pytest.raises(longwall.InputError, match=r"memory: .*not a size"):
        longwall.vertices(graph, memory="much")


def test_auto_is_the_default_size(graph):
    assert len(longwall.vertices(graph, memory="auto", disk="auto")) == graph.num_vertices


def test_where_the_graph_is_to_be_is_checked(graph):
    with pytest.raises(longwall.InputError, match="access: 'unified' is not one of auto, resident, adaptive"):
        longwall.vertices(graph, access="unified")
    with pytest.raises(longwall.InputError, match=r"device: .*not a size"):
        longwall.edges(graph, device="much")


@pytest.mark.parametrize("start", [longwall.vertices, longwall.edges])
def test_an_engine_that_there_is_not_is_refused(graph, start):
    for engine in ("gpu", "CPU", ""):
        with pytest.raises(longwall.InputError) as refusal:
            start(graph, engine=engine)
        assert str(refusal.value) == f'engine = "{engine}": there is no such engine; choose one of auto, cpu, cuda'


def test_an_unwritable_spill_folder_is_named(graph, tmp_path):
    (tmp_path / "spill").write_text("a file")
    for spill in (tmp_path / "spill", "/proc/spill"):
        with pytest.raises(longwall.InputError, match=r"spill: nothing can be spilled there .*choose another spill"):
            longwall.edges(graph, spill=spill)
