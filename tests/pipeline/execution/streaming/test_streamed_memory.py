"""Memory that a run over a graph in its store takes, measured by the operating system."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from longwall.storage.generators.kinds import generate

MEASURED = """
import json, resource, sys
import longwall
def peak(store, host):
    longwall.run({"graph": {"path": store}, "workload": {"kind": "cliques", "k": 4}, "engine": {"kind": "cpu"},
                  "memory": {"host": host, "spill": "spill"}, "run": {"directory": "runs", "report": False}})
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
tiny = peak(sys.argv[1], 32 << 20)
print(json.dumps([tiny, peak(sys.argv[2], int(sys.argv[3]))]))
"""


@pytest.mark.slow
def test_no_more_memory_is_taken_than_reserved(tmp_path: Path) -> None:
    """Resident memory grows by the budget at most, from a run of a small graph to one of a large graph."""
    generate("rmat", scale=14, edge_factor=24, seed=1).save(tmp_path / "tiny")
    large = generate("rmat", scale=18, edge_factor=24, seed=1)
    large.save(tmp_path / "large")
    budget = 16 << 20
    assert large.nbytes > 2 * budget
    command = [sys.executable, "-c", MEASURED, "tiny", "large", str(budget)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    tiny, peak = json.loads(done.stdout)
    assert peak - tiny <= budget + (4 << 20)  # what the budget does not hold: stacks of threads, freed memory
