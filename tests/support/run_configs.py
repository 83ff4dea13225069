"""Configs of runs: every file that a run reads or writes is in one folder."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from breakable import EXAMPLES, KINDS


def write_edges(
    folder: Path, edges: Iterable[tuple[Any, Any]], labels: Mapping[Any, Any] | None = None
) -> dict[str, str]:
    """Write ``graph.txt``, and ``labels.txt`` if labels are given; return the section that reads them."""
    (folder / "graph.txt").write_text("".join(f"{u} {v}\n" for u, v in edges))
    section = {"path": str(folder / "graph.txt")}
    if labels is None:
        return section
    (folder / "labels.txt").write_text("".join(f"{vertex} {label}\n" for vertex, label in labels.items()))
    return section | {"labels": str(folder / "labels.txt")}


def run_config(folder: Path | None, graph: Any, workload: dict[str, Any], **sections: dict[str, Any]) -> dict[str, Any]:
    """A run on the CPU that writes below a folder, if there is one, and no report; keys of sections replace those."""
    made: dict[str, Any] = {"graph": graph, "workload": workload, "engine": {"kind": "cpu"}}
    if folder is not None:
        made |= {
            "memory": {"spill": str(folder / "spill")},
            "run": {"directory": str(folder / "runs"), "report": False},
        }
    for section, keys in sections.items():
        made[section] = made.get(section, {}) | keys
    return made


def config_of(folder: Path, kind: str, name: str, directory: str | Path, /, **scheduler: Any) -> dict[str, Any]:
    """A kind of run that tests break, on a cluster if keys for that section are given; its graph is in `folder`."""
    found = tomllib.loads(KINDS[kind].config)
    for key in ("path", "labels"):
        if key in found["graph"]:
            found["graph"][key] = str(folder / found["graph"][key])
    if "algorithm" in found["workload"]:
        found["workload"]["algorithm"] = str(EXAMPLES / found["workload"]["algorithm"])
    found["memory"] = {"spill": str(folder / "spill"), "host": "1GiB"}
    found["run"] = {"directory": str(directory), "name": name}
    if scheduler:
        found["scheduler"] = found.get("scheduler", {}) | {"kind": "dask"} | scheduler
    return found
