"""CPU and GPU together: the answers are those of one engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from breakable import EDGES, KINDS, LABELS, LIMIT, answer
from rig import config_of

import longwall
from longwall.pipeline.execution import task_pool

pytestmark = pytest.mark.gpu


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "graph.txt").write_text("".join(f"{u} {v}\n" for u, v in EDGES))
    (tmp_path / "labels.txt").write_text("".join(f"{vertex} {label}\n" for vertex, label in LABELS.items()))
    monkeypatch.setattr(task_pool, "_GUESSED", {"cuda": 1.0, "cpu": 1.0})
    monkeypatch.setattr(task_pool, "_LEAST_SECONDS", {"cuda": 0.0, "cpu": 0.0})
    return tmp_path


def config(folder: Path, kind: str, engine: str) -> dict[str, Any]:
    found = config_of(folder, kind, engine, str(folder / "runs"))
    return found | {"engine": {"kind": engine, "threads": 2}}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "listing with a limit" and "maximal" not in kind])
def test_both_engines_give_what_one_gives(folder: Path, kind: str) -> None:
    one = longwall.run(config(folder, kind, "cpu"))
    both = longwall.run(config(folder, kind, "both"))
    assert answer(Path(both.path)) == answer(Path(one.path))
    assert both.engine == "cpu+cuda"
    stages = pq.read_table(Path(both.path) / "metrics.parquet").column("stage").to_pylist()
    assert "ranges of cuda" in stages
    manifest = json.loads((Path(both.path) / "manifest.json").read_text())
    assert manifest["engine"]["name"] == "cpu+cuda"


def test_a_limit_is_for_both_together(folder: Path) -> None:
    everything = answer(Path(longwall.run(config(folder, "listing", "cpu")).path))["embeddings"]
    found = answer(Path(longwall.run(config(folder, "listing with a limit", "both")).path))
    assert len(found["embeddings"]) == len(set(found["embeddings"])) == LIMIT
    assert set(found["embeddings"]) <= set(everything)
