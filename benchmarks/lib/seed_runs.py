"""Longwall's side of `benchmarks.suites.seeds`: several runs on one graph, in the process that is measured."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import longwall
from benchmarks.lib.seed_patterns import LABELS
from longwall.storage.graph.store_header import is_store
from longwall.storage.graph.store_writer import write_graph

_AGAIN_BELOW_SECONDS = 3.0


def make_graph(store: str, scale: int = 0, edge_factor: int = 16, edges: str = "", labelled: bool = False) -> None:
    """Make the store of an R-MAT graph or of an edge list, with random labels if wanted, unless it is there."""
    if is_store(store):
        return
    if not labelled:
        graph = _rmat(scale, edge_factor) if scale else longwall.open_graph(edges)
    elif scale:
        graph = _rmat(scale, edge_factor, num_labels=LABELS)
    else:
        ids = np.sort(longwall.open_graph(edges).original_ids)
        labels = np.random.default_rng(1).integers(0, LABELS, len(ids))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "labels.txt")
            np.savetxt(path, np.column_stack([ids, labels]), "%d")
            graph = longwall.open_graph(edges, path)
    write_graph(graph, store)


def _rmat(scale: int, edge_factor: int, **more: int) -> Any:
    facts = {"seed": 1, "scale": scale, "edge_factor": edge_factor, "a": 0.57, "b": 0.19, "c": 0.19}
    return longwall.generate_graph("rmat", **facts, **more)


def mine(store: str, workloads: dict[str, dict[str, Any]], engine: str, work: str, record: str) -> None:
    """Run workloads one after another; a line of JSON in `record` for each says what it found, and in how many seconds.

    A short run is done twice, and the second time counts: then kernels are there.
    """
    with tempfile.TemporaryDirectory(dir=work) as folder:
        for name, section in workloads.items():

            def once(section: dict[str, Any] = section) -> tuple[Any, float]:
                run = {"directory": folder}
                result = longwall.run(
                    {"graph": {"path": store}, "workload": section, "engine": {"kind": engine}, "run": run}
                )
                counts = [one.count for one in result.patterns]
                plan = json.loads((result.path / "manifest.json").read_text())["plan"]["kind"]
                return {"count": sum(counts), "patterns": len(counts), "plan": plan}, result.timings["mine"]

            note(record, name, once)


def note(record: str, name: str, once: Callable[[], tuple[dict[str, Any], float]]) -> None:
    """Call a function, twice where that is short, and add a line to a file of lines of JSON.

    Parameters
    ----------
    record
        The file.
    name
        What the line is about.
    once
        Returns what was found, and seconds.
    """
    found, seconds = once()
    if seconds < _AGAIN_BELOW_SECONDS:
        again, seconds = once()
        if again["count"] != found["count"]:
            raise RuntimeError(f"{name}: {found['count']} at first, then {again['count']}")
        found = again
    with Path(record).open("a") as file:
        file.write(json.dumps({"name": name, "seconds": seconds, **found}) + "\n")
