"""Rows that are read while they are searched for: which ones, and that the search ends with its reader."""

from __future__ import annotations

import gc
import itertools
import os
import signal
import threading
import traceback
import warnings
import weakref
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import naive
import naive_cliques
import networkx as nx
import pyarrow as pa
import pytest

import longwall
from longwall.storage.memory.spill_folder import SpillFolder

_ENDS_SECONDS = 10  # of threads that have said that they end


@pytest.fixture(scope="module")
def big() -> longwall.Graph:
    """A graph with more paths than anyone can list."""
    return longwall.generate_graph("rmat", scale=12, edge_factor=16, seed=1)


@pytest.fixture(scope="module")
def bipartite() -> longwall.Graph:
    """A graph without odd cycles, where a search for them goes on and on."""
    return longwall.graph(nx.complete_bipartite_graph(60, 60))


@pytest.fixture(autouse=True)
def threads_end() -> Iterator[None]:
    """No thread of a search is left."""
    before = set(threading.enumerate())
    yield
    assert not threads_since(before)


def threads_since(before: set[threading.Thread]) -> list[threading.Thread]:
    """Threads that do not end."""
    started = [thread for thread in threading.enumerate() if thread not in before]
    for thread in started:
        thread.join(_ENDS_SECONDS)
    return [thread for thread in started if thread.is_alive() and not thread.name.startswith("read-ahead")]


class Watching:
    """An observer that calls a function when the search begins."""

    def __init__(self, begun: Any):
        self.begun = begun

    def phase(self, name: str, total: int | None, unit: str) -> None:
        if name == "listing":
            self.begun()

    def advance(self, n: int) -> None: ...
    def near_limit(self, share: float) -> None: ...
    def note(self, text: str) -> None: ...
    def close(self) -> None: ...


def listed(rows: Any) -> list[tuple[int, ...]]:
    return [tuple(row.values()) for batch in rows for row in batch.to_pylist()]


QUERIES = [
    naive.Query(3, ((0, 1), (1, 2), (0, 2))),
    naive.Query(4, ((0, 1), (1, 2), (2, 3)), induced=True),
    naive.Query(3, ((0, 1), (1, 2)), labels=(0, 1, 1)),
]


@pytest.mark.filterwarnings("ignore:threads = ")
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("query", QUERIES, ids=repr)
def test_rows_are_those_of_an_oracle_and_of_files(
    engine_kind: str, query: naive.Query, threads: int, tmp_path: Path
) -> None:
    drawn = nx.gnp_random_graph(30, 0.25, seed=7)
    labels = {vertex: vertex % 2 for vertex in drawn}
    graph = longwall.graph(drawn, labels=labels)
    options: dict[str, Any] = {"engine": engine_kind, "threads": threads}
    rows = listed(longwall.match(graph, query.text, labels=query.labels, induced=query.induced, **options))
    workload = {"kind": "match", "pattern": query.text, "induced": query.induced, "output": "embeddings"}
    if query.labels is not None:
        workload["pattern_labels"] = list(query.labels)
    engine = {"kind": engine_kind, "threads": threads}
    run = {"directory": str(tmp_path.parent / f"{tmp_path.name} runs"), "report": False}
    files = longwall.run({"graph": graph, "workload": workload, "engine": engine, "run": run})
    assert Counter(rows) == Counter(listed(files.batches()))
    assert len(rows) == naive.count_embeddings(drawn.edges, query, labels)
    assert set(rows) <= set(naive.mappings(drawn.edges, query, labels))


def test_cliques_are_those_of_an_oracle(engine_kind: str) -> None:
    drawn = nx.gnp_random_graph(40, 0.4, seed=3)
    rows = listed(longwall.maximal_cliques(longwall.graph(drawn), engine=engine_kind))
    wanted = Counter(naive_cliques.maximal_cliques(drawn.edges))
    assert Counter(frozenset(clique) for clique, _ in rows) == wanted
    assert all(len(clique) == size for clique, size in rows)


def test_no_file_is_written(graph: longwall.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    def make(spill: SpillFolder) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(SpillFolder, "_make", make)
    assert longwall.match(graph, "diamond").to_arrow().num_rows == 151
    assert longwall.maximal_cliques(graph).to_arrow().num_rows == 36
    assert longwall.match(graph, "clique-6").to_arrow().num_rows == 0


def test_a_reader_that_stops_ends_the_search(big: longwall.Graph) -> None:
    before = set(threading.enumerate())
    for batch in longwall.match(big, "path-6", memory="64MiB"):
        assert batch.num_rows
        assert len(threading.enumerate()) > len(before)  # it still goes on
        break
    assert not threads_since(before)


@pytest.mark.parametrize("end", ["iterator", "matches", "with"])
def test_close_ends_the_search(big: longwall.Graph, end: str) -> None:
    before = set(threading.enumerate())
    found = longwall.match(big, "path-6", memory="64MiB")
    batches = iter(found)
    next(batches)
    if end == "iterator":
        batches.close()  # type: ignore[attr-defined]
        batches.close()  # type: ignore[attr-defined]
    elif end == "matches":
        found.close()
    else:
        with found:
            pass
    assert not threads_since(before)
    assert list(batches) == []
    assert "not searched for yet" in repr(found)


def test_a_search_without_rows_ends_at_once(bipartite: longwall.Graph) -> None:
    before, begun = set(threading.enumerate()), threading.Event()
    batches = iter(longwall.match(bipartite, "cycle-9", progress=Watching(begun.set)))
    assert begun.wait(100)
    batches.close()  # type: ignore[attr-defined]
    assert not threads_since(before)


def test_a_search_that_is_closed_before_it_begins_does_not_begin(big: longwall.Graph) -> None:
    phases: list[str] = []
    reached, go_on = threading.Event(), threading.Event()

    class Waiting(Watching):
        def note(self, text: str) -> None: ...
        def phase(self, name: str, total: int | None, unit: str) -> None:
            phases.append(name)

        def watch_budgets(self, look: object) -> None:
            reached.set()
            assert go_on.wait(100)

    batches = iter(longwall.match(big, "path-6", progress=Waiting(None)))
    assert reached.wait(100)
    closing = threading.Thread(target=batches.close)  # type: ignore[attr-defined]
    closing.start()
    while not batches._search.stream.closed:  # type: ignore[attr-defined]
        closing.join(0.01)
    go_on.set()
    closing.join(100)
    assert not closing.is_alive()
    assert phases == []


def test_a_search_goes_with_its_reader_and_frees_the_graph() -> None:
    before = set(threading.enumerate())
    graph = longwall.generate_graph("rmat", scale=10, edge_factor=16, seed=1)
    gone = weakref.ref(graph)
    found = longwall.match(graph, "path-6", memory="64MiB")
    batches = iter(found)
    next(batches)
    del batches
    assert not threads_since(before)
    del found, graph
    gc.collect()
    assert gone() is None


def test_a_reader_in_a_cycle_is_collected(big: longwall.Graph) -> None:
    before = set(threading.enumerate())

    class Holder:
        pass

    holder = Holder()
    holder.itself = holder  # type: ignore[attr-defined]
    holder.batches = iter(longwall.match(big, "path-6", memory="64MiB"))  # type: ignore[attr-defined]
    next(holder.batches)  # type: ignore[attr-defined]
    del holder
    gc.collect()
    assert not threads_since(before)


def test_an_exception_of_the_reader_ends_the_search(big: longwall.Graph) -> None:
    before = set(threading.enumerate())

    def read() -> None:
        for _ in longwall.match(big, "path-6", memory="64MiB"):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        read()
    assert not threads_since(before)


def test_an_interrupt_ends_the_search(bipartite: longwall.Graph) -> None:
    before = set(threading.enumerate())
    interrupt = Watching(lambda: os.kill(os.getpid(), signal.SIGINT))
    batches = iter(longwall.match(bipartite, "cycle-9", progress=interrupt))
    with pytest.raises(KeyboardInterrupt) as error:
        next(batches)
    assert not error.value.args
    assert not threads_since(before)
    assert list(batches) == []


def test_errors_of_the_search_come_from_one_frame(graph: longwall.Graph) -> None:
    with pytest.raises(longwall.InputError, match="memory") as error:
        next(iter(longwall.match(graph, "diamond", memory=100)))
    assert len(traceback.extract_tb(error.value.__traceback__)) == 2
    batches = iter(longwall.match("no such file", "diamond"))
    with pytest.raises(longwall.InputError, match="no such file"):
        next(batches)
    assert list(batches) == []


def test_an_error_in_the_middle_comes_in_place_of_rows(big: longwall.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    from longwall.stages.export import EmbeddingWriter

    make, calls = EmbeddingWriter._batch, itertools.count()

    def failing(writer: EmbeddingWriter, table: Any) -> pa.RecordBatch:
        if next(calls) > 3:
            raise longwall.RunError("the cat has eaten it")
        return make(writer, table)

    monkeypatch.setattr(EmbeddingWriter, "_batch", failing)
    found = longwall.match(big, "path-6", memory="64MiB")
    with pytest.raises(longwall.RunError, match=r"^the cat has eaten it$"):
        found.to_arrow()
    assert "not searched for yet" in repr(found)


@pytest.mark.filterwarnings("ignore:threads = ")
@pytest.mark.parametrize("threads", [1, 4])
def test_a_limit_is_exact(engine_kind: str, threads: int) -> None:
    drawn = nx.gnp_random_graph(60, 0.3, seed=2)
    graph, options = longwall.graph(drawn), {"engine": engine_kind, "threads": threads}
    wanted = set(naive.mappings(drawn.edges, QUERIES[0]))
    for limit in (1, 7, 100):
        rows = listed(longwall.match(graph, "triangle", limit=limit, **options))
        assert len(rows) == len({frozenset(row) for row in rows}) == limit
        assert set(rows) <= wanted
        assert len(listed(longwall.maximal_cliques(graph, limit=limit, **options))) == limit


@pytest.mark.gpu
def test_one_of_both_engines_finds_each_row_once() -> None:
    drawn = nx.gnp_random_graph(40, 0.3, seed=5)
    found = longwall.match(longwall.graph(drawn), "triangle", engine="both")
    rows = [frozenset(row) for row in listed(found)]
    assert len(rows) == len(set(rows)) == sum(nx.triangles(drawn).values()) // 3
    assert found.head(3).num_rows == 3


def test_two_readers_at_once_have_all_rows_each(graph: longwall.Graph) -> None:
    found = longwall.match(graph, "wedge", memory="1MiB")
    one, other = iter(found), iter(found)
    rows: tuple[list[Any], list[Any]] = ([], [])
    for batches in itertools.zip_longest(one, other):
        for mine, batch in zip(rows, batches, strict=True):
            mine.extend(listed([] if batch is None else [batch]))
    assert sorted(rows[0]) == sorted(rows[1])
    assert len(rows[0]) == longwall.count(graph, "wedge")


@pytest.mark.parametrize("in_file", [False, True])
def test_no_rows_have_their_columns(in_file: bool, tmp_path: Path) -> None:
    edges = tmp_path.parent / f"{tmp_path.name}.csv"
    edges.write_text("1,2\n2,3\n")
    graph = str(edges) if in_file else longwall.graph([(1, 2), (2, 3)])
    found = longwall.match(graph, "(a)-(b)-(c)-(a)")
    wanted = pa.schema([(name, pa.int64()) for name in "abc"])
    assert found.schema == found.to_arrow().schema == found.head().schema == pa.table(found).schema == wanted
    assert list(found) == []
    cliques = longwall.maximal_cliques(graph, min_size=3)
    assert cliques.schema == cliques.to_arrow().schema
    assert cliques.schema.names == ["clique", "size"]


@pytest.mark.filterwarnings("ignore:threads = ")
@pytest.mark.parametrize("threads", [1, 3])
def test_a_small_budget_gives_all_rows_to_a_slow_reader(threads: int) -> None:
    drawn = nx.gnp_random_graph(300, 0.1, seed=4)
    graph = longwall.graph(drawn)
    found = longwall.match(graph, "wedge", threads=threads, engine="cpu", memory="3MiB")
    used, rows = [], 0
    batches = iter(found)
    for batch in batches:
        rows += batch.num_rows
        stream = batches._search.stream  # type: ignore[attr-defined]
        used.append(sum(waiting.nbytes for waiting, _ in list(stream._waiting)))
    assert rows == sum(degree * (degree - 1) // 2 for _, degree in drawn.degree)
    assert max(used) < 3 << 20
    assert len(used) > 10


@pytest.mark.parametrize("stop", [False, True])
def test_notes_of_a_graph_in_a_file_warn_the_reader_once(stop: bool, tmp_path: Path) -> None:
    edges = tmp_path.parent / f"{tmp_path.name}.csv"
    edges.write_text("1,2\n2,3\n3,3\n1,3\n")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in longwall.match(str(edges), "edge"):
            if stop:
                break
    (warning,) = [one for one in caught if issubclass(one.category, longwall.DataNote)]
    assert warning.filename == __file__
    assert "1 loop is dropped" in str(warning.message)
