"""The planner is imported while the arrays of a store are read, and changes nothing for the threads that come later."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from run_configs import write_edges

import longwall

PROGRAM = """
import json, sys, threading
import longwall

PLANNER = "longwall.pipeline.planning.planner"


class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == PLANNER:
            importers.append(threading.current_thread().name)


importers, before = [], sys.getswitchinterval()
sys.meta_path.insert(0, Watch())
sections = json.loads(sys.argv[1])
counts = []


def run(name):
    counts.append(longwall.run(sections | {"run": sections["run"] | {"name": name}}).count)


if sys.argv[2] == "two":
    threads = [threading.Thread(target=run, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
else:
    run("a")
print(json.dumps([counts, importers, sys.getswitchinterval() == before]))
"""


@pytest.mark.parametrize(
    ("kind", "number", "importers"),
    [("triangles", "one", ["import-planner"]), ("triangles", "two", ["import-planner"]), ("frequent", "one", [])],
)
def test_the_planner_is_imported_by_a_thread_of_its_own(
    tmp_path: Path, kind: str, number: str, importers: list[str]
) -> None:
    """Of a triangle with a tail, for workloads that are planned by it."""
    write_edges(tmp_path, [(0, 1), (0, 2), (1, 2), (2, 3)])
    longwall.open_graph(tmp_path / "graph.txt").save(tmp_path / "graph.zarr")
    workload = {"kind": "triangles"} if kind == "triangles" else {"kind": kind, "min_support": 2, "max_edges": 1}
    sections = {
        "graph": {"path": str(tmp_path / "graph.zarr")},
        "workload": workload,
        "engine": {"kind": "cpu"},
        "run": {"directory": str(tmp_path / "runs")},
    }
    command = [sys.executable, "-c", PROGRAM, json.dumps(sections), number]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    counts, found, same = json.loads(done.stdout.splitlines()[-1])
    assert counts == [1 if kind == "triangles" else None] * (2 if number == "two" else 1)
    assert found == importers
    assert same
