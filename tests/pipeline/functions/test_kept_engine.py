"""Functions that ask of one graph share an engine, which is released; answers are those of a fresh process."""

from __future__ import annotations

import gc
import json
import os
import random
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import naive
import networkx as nx
import pytest

import longwall
from longwall.pipeline.functions import kept_engine
from longwall.pipeline.functions.kept_engine import release_engine

PATTERNS = {
    "triangle": [(0, 1), (0, 2), (1, 2)],
    "cycle-4": [(0, 1), (1, 2), (2, 3), (0, 3)],
    "diamond": [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3)],
    "path-4": [(0, 1), (1, 2), (2, 3)],
    "star-3": [(0, 1), (0, 2), (0, 3)],
    "house": [(0, 1), (1, 2), (2, 3), (0, 3), (0, 4), (1, 4)],
}


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    """No test finds the engine of another one, or leaves one behind."""
    release_engine()
    yield
    release_engine()


def edges_of(seed: int, n: int = 9, m: int = 18) -> list[tuple[int, int]]:
    return sorted(nx.gnm_random_graph(n, m, seed=seed).edges)


def kept() -> kept_engine.KeptEngine | None:
    return kept_engine._kept


def wanted(edges: list[tuple[int, int]], pattern: str, *, induced: bool = False) -> int:
    shape = PATTERNS[pattern]
    query = naive.Query(1 + max(max(edge) for edge in shape), shape, induced=induced)
    return naive.count_embeddings(edges, query)


@pytest.mark.parametrize("seed", range(3))
def test_questions_in_turn_have_the_answers_of_an_oracle(engine_kind: str, seed: int) -> None:
    """Graphs, patterns, options and budgets alternate; some budgets are too small."""
    draw = random.Random(seed)
    edges = [edges_of(seed), edges_of(seed + 100, 12, 20)]
    graphs = [longwall.graph(one) for one in edges]
    for _ in range(25):
        at, pattern, induced = draw.randrange(2), draw.choice(sorted(PATTERNS)), draw.random() < 0.3
        options: dict[str, Any] = {"engine": engine_kind, "threads": draw.choice([0, 1, 2])}
        options["memory"] = draw.choice([None, "64MiB", "64MiB", 100])
        if options["memory"] == 100:
            with pytest.raises(longwall.InputError, match="memory"):
                longwall.count(graphs[at], pattern, induced=induced, **options)
            assert kept() is None
        else:
            found = longwall.count(graphs[at], pattern, induced=induced, **options)
            assert found == wanted(edges[at], pattern, induced=induced)
            assert kept() is not None


def test_the_same_engine_answers_until_options_or_the_graph_change(engine_kind: str) -> None:
    graph, other = longwall.graph(edges_of(1)), longwall.graph(edges_of(1))
    engines = []
    for asked, options in ((graph, {}), (graph, {}), (graph, {"threads": 1}), (other, {"threads": 1}), (other, {})):
        longwall.count(asked, "triangle", engine=engine_kind, **options)
        found = kept()
        assert found is not None
        engines.append(found.resources.engine)
    assert engines[0] is engines[1]
    assert len({id(one) for one in engines}) == 4


def test_labels_and_tables_between_counts_do_not_mix(engine_kind: str) -> None:
    labels = {v: v % 2 for v in range(9)}
    edges = edges_of(5)
    labelled = nx.Graph(edges)
    nx.set_node_attributes(labelled, labels, "kind")
    graph = longwall.graph(labelled, "kind")
    query = naive.Query(3, [(0, 1), (1, 2)], labels=[0, 1, 0])
    by_label = naive.count_embeddings(edges, query, labels)
    for _ in range(2):
        assert longwall.count(graph, "triangle", engine=engine_kind) == wanted(edges, "triangle")
        assert longwall.count(graph, "(a:0)-(b:1)-(c:0)", engine=engine_kind) == by_label
        assert longwall.match(graph, "triangle", engine=engine_kind).to_arrow().num_rows == wanted(edges, "triangle")
        table = longwall.triangles(graph, per="vertex", engine=engine_kind).to_pydict()
        assert dict(zip(table["vertex"], table["triangles"], strict=True)) == nx.triangles(nx.Graph(edges))


def test_the_engine_stays_after_a_count_in_a_graph_by_label(engine_kind: str) -> None:
    labels = {v: v % 3 for v in range(9)}
    edges = edges_of(6)
    labelled = nx.Graph(edges)
    nx.set_node_attributes(labelled, labels, "kind")
    graph = longwall.graph(labelled, "kind")
    pattern = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3)]
    engines = []
    for asked in ([0, 1, 2, 0], [1, 0, 2, 2], [0, 1, 2, 0]):
        count = longwall.count(graph, pattern, labels=asked, engine=engine_kind)
        assert count == naive.count_embeddings(edges, naive.Query(4, pattern, labels=asked), labels)
        assert longwall.count(graph, "triangle", engine=engine_kind) == wanted(edges, "triangle")
        found = kept()
        assert found is not None
        engines.append(found.resources.engine)
    assert engines[0] is engines[1] is engines[2]


def test_it_goes_with_its_graph(engine_kind: str) -> None:
    graph = longwall.graph(edges_of(2))
    longwall.count(graph, "house", engine=engine_kind)
    found, gone = kept(), weakref.ref(graph)
    assert found is not None
    engine = weakref.ref(found.resources.engine)
    gc.collect()
    gc.disable()
    try:
        del graph, found
        assert gone() is None
        assert kept() is None
        assert engine() is None
    finally:
        gc.enable()


def test_what_runs_reserve_is_released(engine_kind: str) -> None:
    graph = longwall.graph(edges_of(3))
    used = []
    for pattern in ("house", "triangle", "cycle-4", "house"):
        longwall.count(graph, pattern, engine=engine_kind)
        found = kept()
        assert found is not None
        used.append({name: now for name, (now, _) in found.resources.usage().items()})
    assert len({json.dumps(one) for one in used}) == 1
    assert used[0]["host"] == used[0]["disk"] == 0


@pytest.mark.gpu
def test_a_graph_comes_to_the_device_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from longwall.kernels.cuda.engine import CudaEngine

    loaded = []
    load = CudaEngine.load
    monkeypatch.setattr(CudaEngine, "load", lambda *given, **options: loaded.append(1) or load(*given, **options))
    edges = edges_of(4)
    graph = longwall.graph(edges)
    for pattern in ("triangle", "diamond", "triangle"):
        assert longwall.count(graph, pattern, engine="cuda") == wanted(edges, pattern)
    assert len(loaded) == 1


@pytest.mark.gpu
def test_a_small_graph_stays_on_the_device_beside_its_layouts(monkeypatch: pytest.MonkeyPatch) -> None:
    from longwall.kernels.cuda.engine import CudaEngine

    loaded = []
    load = CudaEngine.load
    monkeypatch.setattr(CudaEngine, "load", lambda *given, **options: loaded.append(1) or load(*given, **options))
    labels = {v: v % 3 for v in range(9)}
    edges = edges_of(6)
    labelled = nx.Graph(edges)
    nx.set_node_attributes(labelled, labels, "kind")
    graph, pattern = longwall.graph(labelled, "kind"), [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3)]
    for asked in ([0, 1, 2, 0], [1, 0, 2, 2], [0, 1, 2, 0]):
        count = longwall.count(graph, pattern, labels=asked, engine="cuda")
        assert count == naive.count_embeddings(edges, naive.Query(4, pattern, labels=asked), labels)
        found = kept()
        assert found is not None
        assert found.device_graph is not None
        assert found.resources.work.used == found.device_graph.charged[1]
    assert len(loaded) == 1


@pytest.mark.gpu
@pytest.mark.parametrize("pattern", ["clique-4", "clique-6"])
def test_an_exception_of_a_signal_handler_ends_the_kernel(monkeypatch: pytest.MonkeyPatch, pattern: str) -> None:
    import cupy

    from longwall.kernels.cuda.engine import CudaEngine

    interrupted = []
    interrupt = CudaEngine.interrupt
    graph = longwall.graph(nx.complete_graph(9))
    count = longwall.count(graph, pattern, engine="cuda")
    with monkeypatch.context() as patch:

        def raise_it(stream: int) -> int:
            raise LookupError("of a handler")

        patch.setattr(CudaEngine, "interrupt", lambda engine: interrupted.append(1) or interrupt(engine))
        patch.setattr(cupy.cuda.runtime, "streamQuery", raise_it)
        with pytest.raises(LookupError, match="of a handler"):
            longwall.count(graph, pattern, engine="cuda")
    assert interrupted == [1]
    assert longwall.count(graph, pattern, engine="cuda") == count


@pytest.mark.gpu
@pytest.mark.whole_device
def test_the_graph_on_the_device_is_not_missed_there() -> None:
    """A budget of nearly all that is free holds for the second call, too: the graph is part of it."""
    from longwall.storage.memory.resources import EngineChoice, open_resources

    ring = [(v, (v + 1) % 30_000) for v in range(30_000)]
    graph = longwall.graph(ring)
    resources = open_resources(engine=EngineChoice("cuda"))
    free = resources.free_device_bytes()
    assert free is not None
    del resources
    notes: list[str] = []

    class Noting:
        def phase(self, name: str, total: int | None, unit: str) -> None: ...
        def advance(self, n: int) -> None: ...
        def note(self, text: str) -> None:
            notes.append(text)

        def close(self) -> None: ...

    engines = []
    for _ in range(3):
        options: dict[str, Any] = {"device_memory": free - (1 << 17), "progress": Noting()}
        assert longwall.count(graph, "triangle", engine="cuda", **options) == 0
        found = kept()
        assert found is not None
        engines.append(found.resources.engine)
    assert engines[0] is engines[1] is engines[2]
    assert not [note for note in notes if "free for arrays" in note]


def test_two_threads_at_once(engine_kind: str) -> None:
    edges = [edges_of(6), edges_of(7)]
    graphs = [longwall.graph(one) for one in edges]
    wrong: list[object] = []

    def ask(number: int) -> None:
        draw = random.Random(number)
        try:
            for _ in range(12):
                at, pattern = draw.randrange(2), draw.choice(sorted(PATTERNS))
                found = longwall.count(graphs[at], pattern, engine=engine_kind, threads=draw.choice([1, 2]))
                if found != wanted(edges[at], pattern):
                    wrong.append((at, pattern, found))
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_an_interrupted_call_leaves_no_engine_behind(engine_kind: str) -> None:
    edges = edges_of(8)
    graph = longwall.graph(edges)
    longwall.count(graph, "triangle", engine=engine_kind)

    class Interrupting:
        def phase(self, name: str, total: int | None, unit: str) -> None:
            if total:
                raise KeyboardInterrupt

        def advance(self, n: int) -> None: ...
        def note(self, text: str) -> None: ...
        def close(self) -> None: ...

    with pytest.raises(KeyboardInterrupt):
        longwall.count(graph, "triangle", engine=engine_kind, progress=Interrupting())
    assert kept() is None
    assert longwall.count(graph, "triangle", engine=engine_kind) == wanted(edges, "triangle")


def test_whatever_else_opens_an_engine_releases_it(folder: Any) -> None:
    graph = longwall.graph(edges_of(9))
    openers = [
        lambda: longwall.vertices(graph).close(),
        lambda: longwall.explain(graph, "triangle", engine="cpu"),
        lambda: longwall.count(edges_of(9), "triangle", engine="cpu"),
    ]
    for opens in openers:
        longwall.count(graph, "triangle", engine="cpu")
        before = kept()
        assert before is not None
        opens()
        assert kept() is not before


def test_another_working_folder_has_another_spill_folder(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a relative path by default: files went to the folder where the first call was, which may be gone."""
    graph = longwall.graph(edges_of(13))
    for name in ("first", "second"):
        folder = tmp_path_factory.mktemp(name)
        monkeypatch.chdir(folder)
        longwall.count(graph, "triangle", engine="cpu")
        found = kept()
        assert found is not None
        assert found.resources.spill.parent == folder / "spill"


def test_a_forked_child_has_an_engine_of_its_own() -> None:
    edges = edges_of(10)
    graph = longwall.graph(edges)
    longwall.count(graph, "triangle", engine="cpu")
    if not (child := os.fork()):
        code = 1
        try:
            right = longwall.count(graph, "diamond", engine="cpu", threads=1) == wanted(edges, "diamond")
            code = 0 if right else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert kept() is not None
    assert longwall.count(graph, "triangle", engine="cpu") == wanted(edges, "triangle")


FRESH = """
import json, sys, longwall
edges, pattern, options = json.loads(sys.argv[1])
print(longwall.count(longwall.graph([tuple(edge) for edge in edges]), pattern, engine="cpu", **options))
"""


def test_answers_are_those_of_fresh_processes() -> None:
    edges = edges_of(11, 30, 90)
    graph = longwall.graph(edges)
    questions: list[tuple[str, dict[str, Any]]] = [
        ("cycle-5", {}),
        ("house", {"induced": True, "memory": "64MiB"}),
        ("star-4", {"limit": 50, "threads": 1}),
    ]
    here = [longwall.count(graph, pattern, engine="cpu", **options) for pattern, options in questions * 2]
    fresh = []
    for pattern, options in questions:
        command = [sys.executable, "-c", FRESH, json.dumps([edges, pattern, options])]
        fresh.append(int(subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout))
    assert here == fresh * 2


def test_a_count_makes_no_folder(folder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from longwall.storage.memory.spill_folder import SpillFolder

    def make(spill: SpillFolder) -> None:
        raise OSError(28, "No space left on device")

    graph = longwall.graph(edges_of(12))
    monkeypatch.setattr(SpillFolder, "_make", make)
    assert longwall.count(graph, "triangle", engine="cpu") == wanted(edges_of(12), "triangle")
    assert len(longwall.motifs(graph, 3, engine="cpu")) == 2
    with pytest.raises(longwall.RunError, match="nothing can be spilled there"):
        longwall.triangles(graph, per="vertex", engine="cpu")


@pytest.mark.gpu
def test_an_engine_that_was_interrupted_as_the_run_ended_is_not_kept(
    engine_kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python swallows the exception of a signal that comes in a finalizer, and the run ends well."""

    def interrupted(spec: Any, env: Any) -> None:
        env.cancel.set()
        env.engine.interrupt()
        kept_engine.keep_engine(spec, env)

    edges = edges_of(3)
    graph = longwall.graph(edges)
    with monkeypatch.context() as patched:
        patched.setattr("longwall.pipeline.run.keep_engine", interrupted)
        assert longwall.count(graph, "triangle", engine=engine_kind) == wanted(edges, "triangle")
    assert kept() is None
    assert longwall.count(graph, "triangle", engine=engine_kind) == wanted(edges, "triangle")
