"""Memory that runs short makes pieces smaller and changes no result; a lost device ends a run that can be resumed."""

from __future__ import annotations

import itertools
import json
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import naive
import numpy as np
import pytest
from breakable import EDGES, answer, embeddings_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kill import left_in, status
from run_configs import run_config, write_edges
from typer.testing import CliRunner

import longwall
from longwall.kernels.cpu.engine import CpuEngine
from longwall.kernels.cpu.search import prefix_tree
from longwall.kernels.interface.engine import EngineLost, ShortOfMemory, WorkspaceTooLarge
from longwall.pipeline.execution import search_context, task_ranges, thread_executor, worker_memory
from longwall.pipeline.execution.adaptive_batch import AdaptiveBatch, make_workspace
from longwall.pipeline.run_store import commit_log
from longwall.stages import export, source
from longwall.storage.errors import RunError
from longwall.storage.memory.reservations import MemoryBudget
from longwall.storage.memory.spill_folder import SpillFolder
from longwall.storage.tables import embedding_table
from longwall.storage.tables.chunk_stack import ChunkStack
from longwall.storage.tables.embedding_table import EmbeddingTable

FEW = EDGES[::2]
DIAMOND = naive.Query(4, ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3)))
STAR = naive.Query(4, ((0, 1), (0, 2), (0, 3)))  # many rows: more than an extension has room for
WORKLOADS: dict[str, dict[str, Any]] = {
    "listing": {"kind": "match", "pattern": DIAMOND.text, "output": "embeddings"},
    "stars": {"kind": "match", "pattern": STAR.text, "output": "embeddings"},
    # A prism with a leaf: no tables count it.
    "search": {"kind": "match", "pattern": "0-1,0-2,1-2,3-4,3-5,4-5,0-3,1-4,2-5,0-6"},
    "cliques": {"kind": "cliques", "k": 4},
}
relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
Trouble = Callable[[int, int], BaseException | None]  # from the number of a call, and its size, what it raises


def never(call: int, size: int) -> None:
    return None


def short_beyond(most: int) -> Trouble:
    return lambda _, size: ShortOfMemory("device", 1 << 20) if size > most else None


class Afar(np.ndarray):
    """An array of a device that is made up."""

    def get(self) -> Any:
        return np.array(self)


class AfarModule:
    """The array module of that device."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        if isinstance(found, type) or not callable(found):
            return found
        return lambda *arguments, **options: afar(found(*arguments, **options))

    def asarray(self, array: Any) -> Any:
        return np.array(array).view(Afar)


def afar(found: Any) -> Any:
    if isinstance(found, tuple):
        return tuple(map(afar, found))
    return found.view(Afar) if isinstance(found, np.ndarray) else found


class AfarTrees:
    """What tables are worked on with there."""

    def __getattr__(self, name: str) -> Any:
        work = getattr(prefix_tree, name)
        return lambda *arguments: afar(work(*arguments))


@pytest.fixture(autouse=True, scope="module")
def tables_afar() -> Iterator[None]:
    here = embedding_table._operations
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            embedding_table, "_operations", lambda xp: AfarTrees() if isinstance(xp, AfarModule) else here(xp)
        )
        yield


class TroubledEngine:
    """The CPU engine, whose calls fail as a test wishes; with a device's memory of its own if `remote`.

    Fails in worker threads or, if `in_main`, in the main thread only, which samples and does brief tasks.
    """

    def __init__(
        self,
        trouble: Trouble,
        *,
        threads: int = 1,
        remote: bool = False,
        scratch: int = 1 << 40,
        in_main: bool = False,
    ):
        self._engine, self._trouble, self._remote, self.scratch = CpuEngine(threads), trouble, remote, scratch
        self._in_main = in_main
        self._calls = itertools.count()
        self.sizes: list[int] = []
        self.memory = TroubledMemory(64 << 20 if remote else None)
        self.kernels = TroubledKernels(self, CpuEngine.kernels)
        self.xp = AfarModule() if remote else np

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def check(self, size: int) -> None:
        """Something of that size is about to be done."""
        if self._in_main != (threading.current_thread() is threading.main_thread()):
            return
        fault = self._trouble(next(self._calls), size)
        if fault is not None:
            raise fault
        self.sizes.append(size)

    def tasks(self, size: int) -> int:
        return 12

    def load(self, graph: Any, *_: Any, **__: Any) -> Any:
        if not self._remote:
            return graph
        arrays = {name: afar(getattr(graph, name)) for name in ("indptr", "indices", "split", "labels")}
        return type(graph)(**arrays, max_degree=graph.max_degree, max_out_degree=graph.max_out_degree)


class TroubledKernels:
    """The CPU's, whose searchers and counters ask the engine before they work."""

    def __init__(self, engine: TroubledEngine, kernels: Any):
        self._engine, self._kernels = engine, kernels

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernels, name)

    def searcher(self, device: Any, graph: Any, program: Any, memory: int) -> TroubledScratch:
        if memory > self._engine.scratch and threading.current_thread() is not threading.main_thread():
            raise ShortOfMemory("device", memory)
        return TroubledScratch(self._engine, self._kernels.searcher(device, graph, program, memory))

    def clique_counter(self, device: Any, graph: Any, k: int, memory: int) -> TroubledScratch:
        return TroubledScratch(self._engine, self._kernels.clique_counter(device, graph, k, memory))


class TroubledMemory:
    """That of a device, of which so much is free; None: the host's."""

    def __init__(self, free: int | None):
        self._free, self.released = free, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(CpuEngine.memory, name)

    def free(self) -> int | None:
        return self._free

    def release(self, *, garbage: bool = True) -> None:
        self.released += 1


class TroubledScratch:
    def __init__(self, engine: TroubledEngine, scratch: Any):
        self._engine, self._scratch = engine, scratch
        self.workspace_bytes = scratch.workspace_bytes

    def count(self, first: int, last: int) -> int:
        self._engine.check(last - first)
        return int(self._scratch.count(first, last))

    def count_rows(self, rows: Any, limit: int | None = None) -> int:
        self._engine.check(rows.shape[1])
        return int(self._scratch.count_rows(rows, limit))

    def count_edges(self, first: int, last: int, limit: int | None = None) -> tuple[int, int]:
        self._engine.check(last - first)
        found, rows = self._scratch.count_edges(first, last, limit)
        return int(found), rows

    def extend_rows(self, rows: Any, capacity: int, first: int = 0) -> Any:
        self._engine.check(rows.shape[1])
        found = self._scratch.extend_rows(np.asarray(rows), capacity, first)
        if self._engine.xp is np:
            return found
        return replace(found, counts=afar(found.counts), values=afar(found.values))


class Runner:
    """Runs workloads on engines in trouble."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._numbers = itertools.count()
        write_edges(folder, FEW)
        self.undisturbed = cache(lambda workload: answer(self.run(workload, TroubledEngine(never)).path))

    def config(self, workload: str, order: str) -> dict[str, Any]:
        return run_config(
            self.folder,
            {"path": self.folder / "graph.txt"},
            WORKLOADS[workload],
            memory={"host": "64MiB"},
            engine={"kind": "auto"},
            scheduler={"order": order},
            run={"name": str(next(self._numbers))},
        )

    def run(self, workload: str, engine: TroubledEngine, order: str = "depth") -> longwall.Result:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("longwall.storage.memory.resources.select_engine", lambda *choice: engine)
            return longwall.run(self.config(workload, order))

    def calls(self, order: str, share: float) -> int:
        """A share of the calls that an undisturbed listing makes on a device."""
        engine = TroubledEngine(never, remote=True)
        self.run("listing", engine, order)
        return int(share * len(engine.sizes))

    def failed(self, workload: str, engine: TroubledEngine, order: str = "depth") -> tuple[str, Path]:
        """Check that the run fails. Return the message and the run's folder."""
        with pytest.raises(RunError) as failure:
            self.run(workload, engine, order)
        said = str(failure.value)
        path = max((self.folder / "runs").iterdir(), key=lambda run: int(run.name))
        assert "\n" not in said
        assert f"longwall resume {path}" in said
        assert status(path) == "failed"
        assert left_in(self.folder / "spill") == []
        return said, path

    def resumed(self, workload: str, path: Path) -> None:
        """Resume the run on an engine without trouble, to the right results."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("longwall.storage.memory.resources.select_engine", lambda *choice: TroubledEngine(never))
            assert answer(longwall.resume(path).path) == self.undisturbed(workload)


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    return Runner(tmp_path_factory.mktemp("troubled"))


@pytest.fixture
def short_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_memory, "LARGEST_CHUNK", 64)


@pytest.fixture
def eager_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every task is committed, and there are many."""
    monkeypatch.setattr(task_ranges, "_ARCS_PER_TASK", 1)
    monkeypatch.setattr(commit_log, "COMMIT_SECONDS", 0.0)
    monkeypatch.setattr(thread_executor, "_COMMITS_COST", float("inf"))
    monkeypatch.setattr(thread_executor, "_CRASH_COSTS", 0.0)


@pytest.mark.parametrize(("workload", "query"), [("listing", DIAMOND), ("stars", STAR)])
def test_the_undisturbed_rows_are_the_embeddings(runner: Runner, workload: str, query: naive.Query) -> None:
    rows = runner.undisturbed(workload)["embeddings"]
    found = embeddings_of(rows, query)
    assert len(found) == len(rows)
    assert found == naive.embeddings(FEW, query)


# Memory runs short


@pytest.mark.slow
@settings(relaxed, max_examples=15)
@given(
    seed=st.integers(0, 10**6),
    share=st.sampled_from([0.05, 0.3, 0.6]),
    threads=st.sampled_from([1, 3]),
    remote=st.booleans(),
    order=st.sampled_from(["depth", "levels"]),
    workload=st.sampled_from(["listing", "stars"]),
)
def test_memory_that_is_short_at_random_moments_changes_no_row(
    runner: Runner, short_chunks: None, seed: int, share: float, threads: int, remote: bool, order: str, workload: str
) -> None:
    draw = random.Random(seed)

    def trouble(call: int, size: int) -> BaseException | None:
        return ShortOfMemory("device") if size > 1 and draw.random() < share else None

    engine = TroubledEngine(trouble, threads=threads, remote=remote)
    assert answer(runner.run(workload, engine, order).path) == runner.undisturbed(workload)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("order", ["depth", "levels"])
@pytest.mark.parametrize("remote", [False, True])
@pytest.mark.parametrize("most", [5, 1, 12])
def test_a_listing_with_room_for_few_rows_at_once(runner: Runner, order: str, remote: bool, most: int) -> None:
    engine = TroubledEngine(short_beyond(most), remote=remote)
    assert answer(runner.run("listing", engine, order).path) == runner.undisturbed("listing")
    assert max(engine.sizes) <= most
    assert engine.memory.released > 0


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("workload", ["search", "cliques"])
@pytest.mark.parametrize("most", [5, 1, 12])
def test_a_count_with_room_for_few_roots_at_once(runner: Runner, workload: str, most: int) -> None:
    engine = TroubledEngine(short_beyond(most), threads=2)
    assert answer(runner.run(workload, engine).path) == runner.undisturbed(workload)


def test_pieces_grow_back_when_memory_is_there_again(runner: Runner) -> None:
    whole = TroubledEngine(never)
    runner.run("listing", whole)
    engine = TroubledEngine(lambda call, size: ShortOfMemory("device") if call < 40 and size > 4 else None)
    assert answer(runner.run("listing", engine).path) == runner.undisturbed("listing")
    assert engine.sizes[0] <= 4
    assert max(engine.sizes[:10]) < max(whole.sizes)
    assert max(engine.sizes) >= max(whole.sizes) // 2


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("order", ["depth", "levels"])
@pytest.mark.parametrize("share", [0.3, 0, 0.9])
def test_memory_that_stays_short_ends_the_run_with_a_message(
    runner: Runner, eager_commits: None, short_chunks: None, order: str, share: float
) -> None:
    call = runner.calls(order, share)
    engine = TroubledEngine(lambda number, size: ShortOfMemory("device", 3 << 20) if number >= call else None)
    said, path = runner.failed("listing", engine, order)
    assert "the device is out of memory (3 MiB more were wanted)" in said
    assert "memory.device" in said
    runner.resumed("listing", path)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(("place", "advice"), [("host", "lower memory.host"), ("limit", "memory.device is too small")])
def test_the_message_says_which_memory_is_short(runner: Runner, place: Any, advice: str) -> None:
    said, path = runner.failed("search", TroubledEngine(lambda call, size: ShortOfMemory(place)))
    assert advice in said
    runner.resumed("search", path)


def test_a_memory_error_of_the_host_makes_pieces_smaller(runner: Runner) -> None:
    engine = TroubledEngine(lambda call, size: MemoryError("no room") if size > 3 else None)
    assert answer(runner.run("listing", engine).path) == runner.undisturbed("listing")
    said, _ = runner.failed("listing", TroubledEngine(lambda call, size: MemoryError("no room")))
    assert "out of memory" in said


def test_edges_that_find_no_room_come_in_smaller_tables(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    make, widths = source.edge_source, []

    def few(graph: Any, levels: Any, first: int, last: int, xp: Any) -> EmbeddingTable:
        if last - first > 5:
            raise ShortOfMemory("device")
        widths.append(last - first)
        return make(graph, levels, first, last, xp)

    monkeypatch.setattr(source, "edge_source", few)
    for order in ("depth", "levels"):
        widths.clear()
        assert answer(runner.run("listing", TroubledEngine(never), order).path) == runner.undisturbed("listing")
        assert sum(widths) == 2 * len(FEW)


def test_rows_that_find_no_room_are_exported_in_smaller_parts(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched, least = export._fetched, []

    def few(chunk: EmbeddingTable, begin: int, size: int) -> EmbeddingTable:
        if size > 5:
            raise ShortOfMemory("device")
        least.append(size)
        return fetched(chunk, begin, size)

    monkeypatch.setattr(export, "_fetched", few)
    assert answer(runner.run("listing", TroubledEngine(never)).path) == runner.undisturbed("listing")
    assert least


def test_rows_wait_on_the_host_where_there_is_no_room_to_trim_them(
    runner: Runner, short_chunks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def short(table: EmbeddingTable) -> EmbeddingTable:
        raise ShortOfMemory("device")

    monkeypatch.setattr(search_context, "trimmed", short)
    engine = TroubledEngine(short_beyond(9), remote=True)
    assert answer(runner.run("listing", engine).path) == runner.undisturbed("listing")


def test_scratch_shrinks_to_what_there_is(runner: Runner) -> None:
    assert answer(runner.run("listing", TroubledEngine(never, scratch=1 << 20)).path) == runner.undisturbed("listing")
    said, path = runner.failed("listing", TroubledEngine(never, scratch=100))
    assert "out of memory" in said
    runner.resumed("listing", path)


def test_scratch_that_never_fitted_is_the_inputs_fault() -> None:
    def too_large(memory: int) -> None:
        raise WorkspaceTooLarge(1000)

    with pytest.raises(WorkspaceTooLarge):
        make_workspace(CpuEngine(1), 100, too_large)


def test_a_sample_that_finds_no_memory_is_done_without(runner: Runner) -> None:
    engine = TroubledEngine(lambda call, size: ShortOfMemory("device"), in_main=True)
    assert answer(runner.run("listing", engine).path) == runner.undisturbed("listing")


def test_a_device_that_is_lost_while_sampling_ends_the_run(runner: Runner) -> None:
    engine = TroubledEngine(lambda call, size: EngineLost("gone"), in_main=True)
    said, path = runner.failed("listing", engine)
    assert "the device was lost (gone)" in said
    runner.resumed("listing", path)


def test_the_command_line_says_so_with_exit_code_1(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    from longwall.pipeline.cli import app

    engine = TroubledEngine(lambda *_: ShortOfMemory("device"), in_main=True)
    monkeypatch.setattr("longwall.storage.memory.resources.select_engine", lambda *choice: engine)
    config = runner.folder / "run.toml"
    config.write_text(
        f'[graph]\npath = "{runner.folder / "graph.txt"}"\n[workload]\nkind = "cliques"\nk = 4\n'
        '[engine]\nkind = "cpu"\n'
        f'[run]\ndirectory = "{runner.folder / "cli"}"\nname = "short"\n'
    )
    result = CliRunner().invoke(app, ["run", str(config)])
    assert result.exit_code == 1
    assert result.stderr.count("error: the device is out of memory") == 1
    monkeypatch.undo()
    assert CliRunner().invoke(app, ["resume", str(runner.folder / "cli" / "short")]).exit_code == 0


def test_a_portion_is_halved_and_doubled() -> None:
    most, tried = 8, []

    def work(size: int) -> int:
        tried.append(size)
        if size > most:
            raise MemoryError
        return size

    batch = AdaptiveBatch(CpuEngine(1))
    assert {batch.run(100, work) for _ in range(17)} == {6}
    assert tried == [100, 50, 25, 12, *[6] * 8, 12, *[6] * 9]  # a larger one is tried after eight, and after sixteen
    most = 1000
    assert [batch.run(100, work) for _ in range(40)] == [*[6] * 7, *[12] * 8, *[24] * 8, *[48] * 8, *[96] * 8, 100]
    most, capacities = 3, iter([True, False, True, False])
    tried.clear()
    assert batch.run(5, work, lambda short: next(capacities)) == 2
    assert tried == [5, 5, 2]
    most = 0
    with pytest.raises(ShortOfMemory):
        batch.run(5, work)


def test_chunks_leave_the_device_in_their_order(tmp_path: Path) -> None:
    xp = AfarModule()

    def chunk(number: int) -> EmbeddingTable:
        return EmbeddingTable((xp.asarray(np.full(5, number, np.uint32)),), (), xp)

    with SpillFolder(tmp_path / "spill") as folder:
        disk = MemoryBudget("memory.disk", 1 << 20)
        stack = ChunkStack(xp, 1000, 30, folder, disk, "stack")
        for number in range(4):
            stack.push(chunk(number))
        assert disk.used == 0
        assert stack.leave_engine()
        assert not stack.leave_engine()
        assert disk.used > 0
        stack.push(chunk(4))
        stack.push(chunk(5).to(np))  # on top of one that is on the device
        stack.push(chunk(6))
        found = [stack.pop() for _ in range(7)]
        assert [int(table.values[0][0]) for table in found if table is not None] == [6, 5, 4, 3, 2, 1, 0]
        assert stack.pop() is None
        assert disk.used == 0


# The device is lost


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("order", ["depth", "levels"])
@pytest.mark.parametrize("share", [0.5, 0, 0.1, 0.95])
def test_a_lost_device_ends_the_run_and_resume_completes_it(
    runner: Runner, eager_commits: None, short_chunks: None, order: str, share: float
) -> None:
    call = runner.calls(order, share)
    engine = TroubledEngine(
        lambda number, size: EngineLost("it fell off the bus") if number >= call else None, remote=True
    )
    said, path = runner.failed("listing", engine, order)
    assert "the device was lost (it fell off the bus)" in said
    runner.resumed("listing", path)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("workload", ["search", "cliques"])
def test_a_count_whose_device_is_lost_is_resumed(runner: Runner, eager_commits: None, workload: str) -> None:
    engine = TroubledEngine(lambda number, size: EngineLost("gone") if number >= 5 else None, threads=2)
    said, path = runner.failed(workload, engine)
    assert "the device was lost (gone)" in said
    assert json.loads((path / "manifest.json").read_text())["reason"].startswith("the device was lost")
    runner.resumed(workload, path)
