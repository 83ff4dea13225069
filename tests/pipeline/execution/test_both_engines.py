"""CPU and GPU together: the answers are those of one engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from breakable import EDGES, KINDS, LABELS, LIMIT, answer
from explained import explain
from run_configs import config_of, write_edges
from sharing import share_every_phase

import longwall

pytestmark = pytest.mark.gpu


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_edges(tmp_path, EDGES, LABELS)
    share_every_phase(monkeypatch)
    return tmp_path


def config(folder: Path, kind: str, engine: str) -> dict[str, Any]:
    found = config_of(folder, kind, engine, str(folder / "runs"))
    return found | {"engine": {"kind": engine, "threads": 2}}


def shares(run: Path) -> dict[str, int]:
    """How many ranges each engine did."""
    found: dict[str, int] = {}
    for row in pq.read_table(run / "metrics.parquet").to_pylist():
        if row["stage"].startswith("ranges of "):
            engine = row["stage"].removeprefix("ranges of ")
            found[engine] = found.get(engine, 0) + row["tasks"]
    return found


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "listing with a limit"])
def test_both_engines_give_what_one_gives(folder: Path, kind: str) -> None:
    one = longwall.run(config(folder, kind, "cpu"))
    both = longwall.run(config(folder, kind, "both"))
    assert answer(Path(both.path)) == answer(Path(one.path))
    manifest = json.loads((Path(both.path) / "manifest.json").read_text())
    assert manifest["engine"]["name"] == "cpu+cuda"
    if kind == "frequent patterns":  # levels have barriers: the GPU does them alone
        assert both.engine == "cuda"
        return
    assert both.engine == "cpu+cuda"
    found = shares(Path(both.path))
    assert set(found) == {"cpu", "cuda"}
    assert all(found.values())


def test_a_limit_is_for_both_together(folder: Path) -> None:
    everything = answer(Path(longwall.run(config(folder, "listing", "cpu")).path))["embeddings"]
    found = answer(Path(longwall.run(config(folder, "listing with a limit", "both")).path))
    assert len(found["embeddings"]) == len(set(found["embeddings"])) == LIMIT
    assert set(found["embeddings"]) <= set(everything)


@pytest.mark.parametrize("fits", [True, False])
def test_auto_is_the_device_alone(folder: Path, fits: bool) -> None:
    choice = config(folder, "cliques", "auto")
    choice["graph"] = {"generator": {"kind": "rmat", "scale": 12, "edge_factor": 8, "seed": 1}}
    choice["memory"]["device"] = "1GiB" if fits else "300KiB"
    text = explain(choice)
    assert "in long phases" not in text
    found = longwall.run(choice)
    assert found.engine == "cuda"
    manifest = json.loads((Path(found.path) / "manifest.json").read_text())
    assert manifest["engine"]["name"] == found.engine
    choice["engine"]["kind"] = "cpu"
    assert longwall.run(choice | {"run": {"directory": str(folder / "runs")}}).count == found.count
