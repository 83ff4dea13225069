"""A run names the kernels that it will call: each that it calls is among them, and most that it names are called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cases import each_case

import longwall
from longwall.kernels import cpu
from longwall.kernels.jit.compile import Kernel
from longwall.kernels.jit.compile_pool import CompilePool, kernels_called_by
from longwall.pipeline.terminal import warm

TEXT = {"path": "edges.txt"}
PLANNING = {"canonical_codes", "count_removable"}  # by the pattern, and once in a process
RMAT = {"generator": {"kind": "rmat", "scale": 11, "edge_factor": 8, "seed": 1}}


@each_case(
    ("graph", "workload"),
    [
        (TEXT, {"kind": "triangles"}),
        (TEXT, {"kind": "cliques", "k": 4}),
        (TEXT, {"kind": "motifs", "k": 3}),
        (TEXT, {"kind": "match", "pattern": "house"}),
        (TEXT, {"kind": "maximal-cliques"}),
        (TEXT, {"kind": "maximal-cliques", "output": "vertices"}),
        (TEXT, {"kind": "maximal-cliques", "output": "embeddings"}),
        (TEXT, {"kind": "motifs", "k": 4, "output": "vertices"}),
        (RMAT, {"kind": "match", "pattern": "diamond"}),
        (RMAT, {"kind": "motifs", "k": 4}),
        (RMAT, {"kind": "cliques", "k": 7}),
        (RMAT, {"kind": "match", "pattern": "cycle-4"}),
    ],
)
def test_a_run_names_what_it_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, graph: dict[str, Any], workload: dict[str, Any]
) -> None:
    warm._write_graphs(tmp_path)
    named: set[str] = set()
    called: set[str] = set()
    call = Kernel.__call__

    def note_names(_: CompilePool, kernels: list[Kernel]) -> int:
        named.update(one.name for one in kernels)
        return 0

    def note_call(self: Kernel, *arguments: Any) -> Any:
        called.add(self.name)
        return call(self, *arguments)

    monkeypatch.setattr(CompilePool, "add", note_names)
    monkeypatch.setattr(Kernel, "__call__", note_call)
    longwall.run(warm._config(tmp_path, {"graph": graph, "workload": workload}, "cpu"))
    assert called
    assert called - named <= PLANNING, "not named"
    assert named - called <= {"_count_groups", *PLANNING}, "named for nothing"


def test_the_code_of_a_function_says_which_kernels_it_calls() -> None:
    def names(function: Any) -> set[str]:
        return {kernel.name for kernel in kernels_called_by(function)}

    assert names(cpu.triangle_counter) == {"count_triangles"}
    assert names(cpu.reverse_arcs) == {"list_reverse"}
    assert "count_cliques" in names(cpu.clique_counter)
    assert names(len) == set()
