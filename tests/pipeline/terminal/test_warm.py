"""`longwall doctor --warm` compiles what runs call, in processes beside it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from longwall.kernels.jit.child_process import python_words
from longwall.pipeline.config import load_config
from longwall.pipeline.terminal import warm
from longwall.storage.observer import NullObserver

TRIANGLES = {"graph": {"path": "edges.txt"}, "workload": {"kind": "triangles"}}
WRONG = {"graph": {"path": "missing.txt"}, "workload": {"kind": "triangles"}}


class Counted(NullObserver):
    """Counts what is done."""

    def __init__(self) -> None:
        self.total, self.done = 0, 0

    def phase(self, name: str, total: int | None, unit: str) -> None:
        self.total = total or 0

    def advance(self, n: int) -> None:
        self.done += n


def test_a_process_that_ends_is_no_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm, "_SERVE", "raise SystemExit(3)")
    assert warm.do_runs("cpu", NullObserver(), [TRIANGLES]) == ["a process that compiles has ended"]


def test_every_run_is_a_config_and_every_workload_has_one(tmp_path: Path) -> None:
    specs = [load_config(warm._config(tmp_path, run, "cpu")) for run in warm.RUNS]
    kinds = {spec.workload.kind for spec in specs}
    assert kinds >= {"triangles", "cliques", "match", "motifs", "maximal-cliques", "quasi-cliques", "frequent"}


def test_runs_tell_why_they_fail_each_reason_once() -> None:
    seen = Counted()
    reasons = warm.do_runs("cpu", seen, [TRIANGLES, WRONG, WRONG])
    assert (seen.total, seen.done) == (3, 3)
    assert len(reasons) == 1
    assert "missing.txt" in reasons[0]


@pytest.mark.slow
def test_runs_compile_nothing_afterwards(tmp_path: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    environment = kept | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "longwall", "doctor", "--warm", "--json"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["kernels"].startswith("compiled: "), done.stdout
    warm._write_graphs(tmp_path)
    configs = json.dumps([warm._config(tmp_path, run, "cpu") for run in warm.RUNS])
    code = """
import json, sys, longwall
for config in json.loads(sys.argv[1]):
    longwall.run(config)
    assert "numba" not in sys.modules, f"a kernel was not on disk: {config['workload']}"
"""
    done = subprocess.run([*python_words(code), configs], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
