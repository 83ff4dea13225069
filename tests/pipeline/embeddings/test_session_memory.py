"""The budgets of a session: the rows are the same under each of them, and a call without room says so."""

from __future__ import annotations

import numpy as np
import pytest
from call_tables import everything, rows
from conftest import set_page_size
from hypothesis import given, settings
from hypothesis import strategies as st

import longwall
from longwall.kernels import select_engine
from longwall.kernels.interface.engine import EngineLost, ShortOfMemory
from longwall.pipeline.embeddings import session
from longwall.storage.ingest.build import build_graph
from longwall.storage.tables import chunk_pool


@pytest.mark.slow
@settings(deadline=None, max_examples=10)
@given(
    memory=st.integers(8_000, 400_000),
    work_share=st.sampled_from([4, 6]),
    chunk_share=st.sampled_from([16, 64, 100_000]),
)
def test_every_budget_gives_the_same_rows(lab, small, expected, tmp_path_factory, memory, work_share, chunk_share):
    """Down to chunks of a single row."""
    folder = tmp_path_factory.mktemp("any") / "spill"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "_WORK_SHARE", work_share)
        patch.setattr(session, "_CHUNK_SHARE", chunk_share)
        patch.setattr(chunk_pool, "CHUNK_BYTES", 0)  # chunks of a row take more themselves than their rows
        try:
            found = everything(small, memory=memory, spill=folder)
        except longwall.RunError as error:
            assert "raise memory" in str(error)  # noqa: PT017 - either is right, a wrong result is not
            assert memory < 30_000
        else:
            assert all(a == b for a, b in zip(found, expected(), strict=True))
    lab.settle()
    assert not folder.exists() or not list(folder.iterdir())


def test_a_session_stays_inside_its_budget_and_spills(graph, network, tmp_path):
    table = longwall.edges(graph, memory="60KiB", spill=tmp_path / "spill")
    for _ in range(2):
        table = longwall.extend_edges(table)
    assert table.table.nbytes > 1.5 * 60 * 2**10
    assert table.table.stored > 0
    assert table.session.host.peak <= 60 * 2**10
    whole = longwall.extend_edges(longwall.extend_edges(longwall.edges(graph)))
    assert table.to_arrow().equals(whole.to_arrow())
    assert sum(batch.num_rows for batch in table.batches()) == len(whole)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"memory": "1KiB"}, "no room for the graph .*raise memory"),
        ({"memory": "100KiB", "disk": "3KiB"}, "no room for a spilled chunk .*raise disk"),
        ({"memory": "4KiB"}, "raise memory"),
    ],
)
def test_a_budget_that_is_too_small_is_named(lab, graph, tmp_path, options, message):
    with pytest.raises(longwall.RunError, match=message):
        longwall.extend_edges(longwall.extend_edges(longwall.edges(graph, spill=tmp_path / "spill", **options)))
    lab.settle()
    assert not (tmp_path / "spill").exists()


def test_patterns_are_reserved(graph, monkeypatch):
    monkeypatch.setattr(longwall.stages.aggregation.by_pattern, "PATTERN_BYTES", 2**20)
    with pytest.raises(longwall.RunError, match=r"no room for the table of patterns .* raise memory"):
        longwall.aggregate(longwall.extend_vertices(longwall.vertices(graph, memory="2MiB")))


def test_a_failing_call_leaves_nothing_pinned(graph, tmp_path):
    table = longwall.extend_edges(longwall.edges(graph, memory="100KiB", spill=tmp_path / "spill", disk="20KiB"))
    with pytest.raises(longwall.RunError, match="raise disk") as refusal:
        longwall.extend_edges(table)
    assert not any(chunk._pins for chunk in table.table._chunks)
    assert not any(chunk.wanted for chunk in table.table._chunks)
    assert refusal  # its traceback keeps what it passed through


def test_a_part_that_is_too_large_for_memory_is_cut(graph):
    wedges = longwall.extend_vertices(longwall.vertices(graph))
    sizes = []

    def narrow(columns, graph, xp):
        sizes.append(len(columns[0]))
        if sizes[-1] > 20:
            raise MemoryError
        return columns[0] % 2 == 0

    kept = longwall.filter(wedges, narrow)
    assert max(sizes) > 20
    assert rows(kept) == rows(longwall.filter(wedges, lambda columns, graph, xp: columns[0] % 2 == 0))
    found = longwall.aggregate(wedges, lambda *given: narrow(*given).astype(int)).to_pylist()
    assert {row["key"]: row["count"] for row in found} == {0: len(wedges) - len(kept), 1: len(kept)}


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (ShortOfMemory("host"), "out of memory: lower memory"),
        (ShortOfMemory("device", 2**20), r"device is out of memory \(1 MiB more were wanted\): free what"),
        (ShortOfMemory("limit"), "device is too small: raise it"),
        (EngineLost("fell off"), r"the device was lost \(fell off\)"),
    ],
)
def test_what_an_engine_raises_becomes_an_error_message(lab, graph, fault, message):
    def broken(columns, graph, xp):
        raise fault

    wedges = longwall.extend_vertices(longwall.vertices(graph))
    used = wedges.session.host.used
    for call in (longwall.filter, longwall.aggregate):
        with pytest.raises(longwall.RunError, match=message):
            call(wedges, broken)
    lab.settle()
    assert wedges.session.host.used == used


@pytest.fixture(scope="module")
def star():
    """A hub with more neighbours than fit the usual work space (of the tests)."""
    return build_graph(np.zeros(5000, np.int64), np.arange(1, 5001))


def test_a_hub_gets_the_work_space_that_it_needs(star, monkeypatch):
    monkeypatch.setattr(session, "_LARGEST_WORK", 2**12)
    assert len(longwall.extend_vertices(longwall.vertices(star, memory="64MiB"))) == 2 * 5000
    first = longwall.filter(longwall.edges(star, memory="64MiB"), lambda c, graph, xp: c[0] == 1 << 32)
    assert len(longwall.extend_edges(first)) == 4999


def test_the_memory_that_is_said_to_be_enough_for_a_hub_is_enough(star):
    with pytest.raises(longwall.RunError, match="by 5,000 candidates needs") as refusal:
        longwall.extend_vertices(longwall.vertices(star, memory="800KiB"))
    enough = str(refusal.value).split('raise memory to "')[1].rstrip('"')
    assert len(longwall.extend_vertices(longwall.vertices(star, memory=enough))) == 2 * 5000


def test_the_device_is_named_where_it_is_too_small_for_a_hub(star, monkeypatch):
    engine = select_engine("cpu")
    monkeypatch.setattr(type(engine.memory), "free", lambda self: 2**18)
    with pytest.raises(longwall.RunError, match=r'a device budget of 2MiB would do .*230 KiB for it.*or engine="cpu"'):
        longwall.extend_vertices(longwall.vertices(star, memory="64MiB"))
    monkeypatch.setattr(type(engine.memory), "free", lambda self: 2**24)
    with pytest.raises(longwall.RunError, match="a device budget of"):
        longwall.extend_vertices(longwall.vertices(star, memory="64MiB", device="256KiB"))
    for access in ("auto", "resident", "adaptive", "managed", "zero-copy"):
        table = longwall.vertices(star, memory="64MiB", device="2MiB", access=access)
        assert len(longwall.extend_vertices(table)) == 2 * 5000


@pytest.mark.gpu
@pytest.mark.parametrize("access", ["auto", "resident", "adaptive", "managed", "zero-copy"])
def test_rows_do_not_depend_on_where_the_graph_is(small, expected, tmp_path, monkeypatch, access):
    set_page_size(monkeypatch, 32)
    found = everything(small, engine="cuda", memory="4MiB", device="2MiB", access=access, spill=tmp_path / "spill")
    assert all(a == b for a, b in zip(found, expected(), strict=True))


@pytest.fixture(scope="module")
def larger():
    """More than half of the device budget of the tests that take it."""
    return longwall.generate_graph("erdos-renyi", seed=3, vertices=2000, edges=60_000)


def few_wedges(larger, **options):
    some = longwall.filter(longwall.edges(larger, **options), lambda columns, graph, xp: columns[0] % 400 == 0)
    return longwall.extend_edges(some)


@pytest.mark.gpu
@pytest.mark.parametrize("access", ["auto", "managed", "zero-copy"])
def test_a_session_stays_inside_the_budget_of_the_device(larger, monkeypatch, access):
    set_page_size(monkeypatch, 4096)
    found = few_wedges(larger, engine="cuda", device="600KiB", access=access)
    assert found.arrays.pages is not None
    assert sorted(rows(found)) == sorted(rows(few_wedges(larger)))
    assert found.session.engine.memory.peak().allocator <= 600 * 2**10


@pytest.mark.gpu
def test_a_device_that_runs_short_gets_smaller_parts(larger):
    first = longwall.filter(
        longwall.edges(larger, engine="cuda", device="64MiB"), lambda columns, graph, xp: columns[0] % 400 == 0
    )
    engine, graph_bytes = first.session.engine, sum(a.nbytes for a in (first.arrays.indptr, first.arrays.indices))
    engine.memory.release()
    engine.memory.limit(graph_bytes + 400_000)
    assert sorted(rows(longwall.extend_edges(first))) == sorted(rows(few_wedges(larger)))
    engine.memory.release()  # what is cached could be had under any limit
    engine.memory.limit(1)
    with pytest.raises(longwall.RunError, match="device is too small"):
        longwall.extend_edges(first)
