"""The sources of the CUDA engine that are compiled before they are launched."""

import threading
from pathlib import Path
from typing import Any

import pytest

import longwall
from longwall.kernels import cuda
from longwall.kernels.cuda.kcliques.bitmaps import clique_header
from longwall.kernels.cuda.runtime import compile as compiling
from longwall.kernels.cuda.runtime.sources import sources_of
from longwall.kernels.jit import compile_pool
from longwall.kernels.jit.compile_pool import compile_in_threads
from longwall.storage.observer import NullObserver


def test_sources_are_found_in_the_code_of_a_function():
    assert sources_of(cuda.wheel_counter, {}) == {("homomorphisms/wheels.cu", "")}
    assert sources_of(cuda.edge_counter, {"max_degree": 7}) == {("local_counts/edges.cu", "")}
    assert sources_of(cuda.degeneracy_order, {}) == {("maximal_cliques/order.cu", "")}


def test_sources_that_depend_on_a_query_have_its_header():
    assert ("kcliques/bitmaps.cu", clique_header(6)) in sources_of(cuda.large_clique_counter, {"k": 6, "max_degree": 9})
    assert sources_of(cuda.large_clique_counter, {}) == set()  # it is not known which


class _Shown(NullObserver):
    def __init__(self) -> None:
        self.phases: list[tuple[str, int | None]] = []
        self.done, self.shown = 0, threading.Event()

    def phase(self, name: str, total: int | None, unit: str) -> None:
        self.phases.append((name, total))
        self.shown.set()

    def advance(self, n: int) -> None:
        self.done += n


def test_sources_compile_at_the_same_time(monkeypatch):
    monkeypatch.setattr(compile_pool, "_SHOWN_AFTER", 0.0)
    together, shown = threading.Barrier(3, timeout=60), _Shown()

    def one() -> None:
        together.wait()
        assert shown.shown.wait(60)

    compile_in_threads([one] * 3, 3, shown)
    assert shown.phases == [("compiling kernels", 3)]
    assert shown.done == 3


def test_one_source_compiles_where_it_is_launched():
    shown = _Shown()
    compile_in_threads([pytest.fail], 2, shown)
    assert shown.phases == []


@pytest.mark.gpu
@pytest.mark.parametrize(
    "workload",
    [
        {"kind": "motifs", "k": 5},
        {"kind": "match", "pattern": "house"},
        {"kind": "match", "pattern": "cycle-6"},
        {"kind": "cliques", "k": 7},
        {"kind": "cliques", "k": 5, "output": "vertices"},
    ],
    ids=str,
)
def test_a_plan_names_the_sources_that_it_launches(
    workload: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    compiling.forget()
    before: list[set[str]] = []

    def noted(*arguments: Any) -> None:
        compile_in_threads(*arguments)
        before.append({name for _, name, _ in compiling._modules})

    monkeypatch.setattr(compile_pool, "compile_in_threads", noted)
    graph = {"generator": {"kind": "rmat", "scale": 8, "edge_factor": 8, "seed": 1}}
    engine = {"kind": "cuda", "without": ["motif-enumeration"]}
    longwall.run({"graph": graph, "workload": workload, "engine": engine, "run": {"directory": str(tmp_path / "run")}})
    (compiled,) = before
    assert compiled
    assert {name for _, name, _ in compiling._modules} == compiled
