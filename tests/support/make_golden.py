"""Make the golden files of a version that writes a new format: ``python tests/support/make_golden.py FOLDER``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import networkx as nx

import longwall

WORK: dict[str, dict[str, Any]] = {
    "diamonds": {"kind": "match", "pattern": "diamond", "output": "embeddings"},
    "maximal-cliques": {"kind": "maximal-cliques", "output": "embeddings"},
    "orbits": {"kind": "motifs", "k": 3, "output": "vertices"},
    "frequent": {"kind": "frequent", "min_support": 20, "max_edges": 2},
}


def graphs() -> dict[str, longwall.Graph]:
    """Graphs with and without names and labels of vertices and edges."""
    numbered = nx.karate_club_graph()
    named = nx.relabel_nodes(numbered, lambda vertex: f"member {vertex + 1}")
    for u, v in named.edges:
        named[u][v]["kind"] = "near" if (int(u[7:]) + int(v[7:])) % 2 else "far"
    return {
        "numbered": longwall.graph(numbered, "club"),
        "named": longwall.graph(named, "club", edge_labels="kind"),
    }


def make(folder: Path) -> None:
    """Write stores, runs and a table to a new folder."""
    folder.mkdir(parents=True)
    os.chdir(folder)
    for name, graph in graphs().items():
        graph.save(f"{name}.zarr")
    for name, workload in WORK.items():
        sys.argv = ["longwall", "run", f"{name}.toml"]
        run = {"name": name, "directory": "finished", "report": False}
        engine = {"kind": "cpu", "threads": 1}
        longwall.run({"graph": {"example": "karate"}, "workload": workload, "run": run, "engine": engine})
    pairs = longwall.extend_vertices(longwall.vertices(longwall.example("karate")), adjacent_to=[0])
    longwall.export(pairs, "pairs.parquet")


if __name__ == "__main__":
    make(Path(sys.argv[1]).absolute())
