"""A small run whose kernels are on disk imports little: what it does not need would take longer than its work."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import tomli_w
from run_configs import write_edges

import longwall

HEAVY = {"numba", "scipy", "pandas", "zarr", "networkx", "rich", "dask", "distributed", "fsspec", "pyarrow.dataset"}
PROGRAM = """
import json, sys
from longwall.pipeline import cli

def imported(*names):
    found[names] = sorted(name for name in HEAVY if name in sys.modules)

def print_result(*arguments, **options):
    imported("jinja2 with the answer" if "jinja2" in sys.modules else "the answer")
    shown(*arguments, **options)

HEAVY, found, shown = sys.argv.pop(1).split(), {}, cli.print_result
cli.print_result = print_result
try:
    cli.main()
finally:
    imported("the report")
    print(json.dumps([[*names, modules] for names, modules in found.items()]), file=sys.stderr)
"""
WORKLOADS = {
    "a pattern": {"kind": "match", "pattern": "house"},
    "triangles": {"kind": "triangles"},
    "cliques": {"kind": "cliques", "k": 4},
    "maximal cliques": {"kind": "maximal-cliques"},
    "motifs": {"kind": "motifs", "k": 4},
    "embeddings": {"kind": "match", "pattern": "diamond", "output": "embeddings"},
    "triangles of vertices": {"kind": "triangles", "output": "vertices"},
    "frequent patterns": {"kind": "frequent", "min_support": 3, "max_edges": 3},
}


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("name", WORKLOADS)
def test_a_small_run_imports_little(tmp_path: Path, name: str) -> None:
    edges = [(u, v) for u in range(20) for v in range(u) if (u * 7 + v * 3) % 5 < 2]
    write_edges(tmp_path, edges)
    graph = {"path": str(tmp_path / "graph.txt")}
    if WORKLOADS[name]["kind"] == "frequent":
        (tmp_path / "labels.txt").write_text("".join(f"{v} {v % 2}\n" for v in range(20)))
        graph["labels"] = str(tmp_path / "labels.txt")
    run = {"directory": str(tmp_path / "runs"), "name": "compiles"}
    sections = {"graph": graph, "workload": WORKLOADS[name], "engine": {"kind": "cpu"}, "run": run}
    longwall.run(sections)
    (tmp_path / "small.toml").write_text(tomli_w.dumps(sections))
    command = [sys.executable, "-c", PROGRAM, " ".join(HEAVY), "run", str(tmp_path / "small.toml")]
    done = subprocess.run(
        [*command, "--set", "run.name=small"], capture_output=True, text=True, check=True, timeout=300
    )
    assert (tmp_path / "runs" / "small" / "report.html").exists()
    assert json.loads(done.stderr.splitlines()[-1]) == [["the answer", []], ["the report", []]]
