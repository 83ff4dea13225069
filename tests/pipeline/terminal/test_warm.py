"""`longwall doctor --warm` compiles what runs call, in processes beside it."""

from __future__ import annotations

import json
import subprocess
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
    assert warm.do_runs(["cpu"], NullObserver(), [TRIANGLES]) == ["a process that compiles has ended"]


def test_every_run_is_a_config_and_every_workload_has_one(tmp_path: Path) -> None:
    specs = [load_config(warm._config(tmp_path, run, "cpu")) for run in warm.RUNS]
    kinds = {spec.workload.kind for spec in specs}
    assert kinds >= {"triangles", "cliques", "match", "motifs", "maximal-cliques", "quasi-cliques", "frequent"}


@pytest.mark.slow
def test_a_run_compiles_nothing_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    seen = Counted()
    reasons = warm.do_runs(["cpu"], seen, [TRIANGLES, WRONG, WRONG])
    assert (seen.total, seen.done) == (3, 3)
    assert len(reasons) == 1
    assert "missing.txt" in reasons[0]
    warm._write_graphs(tmp_path)
    config = json.dumps(warm._config(tmp_path, TRIANGLES, "cpu"))
    code = "import json, sys, longwall; longwall.run(json.loads(sys.argv[1])); print('numba' in sys.modules)"
    done = subprocess.run([*python_words(code), config], capture_output=True, text=True, check=True)
    assert done.stdout.split()[-1] == "False", "Numba was imported: a kernel was not on disk"
