"""Longwall's side of the table: one row on one graph, in the process that is measured."""

import json
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import longwall
from benchmarks.lib.rows import BY_NAME

_WARM_BELOW_SECONDS = 5.0
"""Above this, the fraction of a second that loading compiled kernels takes no longer matters."""


def mine(store: str, row: str, engine: str, work: str, started: float) -> dict[str, Any]:
    """Run a row.

    Parameters
    ----------
    store
        A graph store.
    row
        Name of the row.
    engine
        ``"cpu"`` or ``"cuda"``.
    work
        Folder for the run directories, which are removed again.
    started
        `time.monotonic()` of when this process was asked for.

    Returns
    -------
    dict
        ``counts``; ``mine_seconds`` (with the kernels loaded), ``first_mine_seconds`` (loading them);
        ``total_seconds`` from `started` to the results on disk; ``plans``, as the manifests hold them.
    """
    sections = BY_NAME[row].workloads
    with tempfile.TemporaryDirectory(dir=work) as folder:
        first, results = _run(store, sections, engine, f"{folder}/first")
        total = time.monotonic() - started
        warm = first
        if first < _WARM_BELOW_SECONDS:
            warm, again = _run(store, sections, engine, f"{folder}/again")
            if [one.count for one in again] != [one.count for one in results]:
                raise RuntimeError("the second run counted something else than the first")
        plans = [json.loads((one.path / "manifest.json").read_text())["plan"] for one in results]
    return {
        "counts": [one.count for one in results],
        "mine_seconds": warm,
        "first_mine_seconds": first,
        "total_seconds": total,
        "plans": plans,
    }


def _run(
    store: str, sections: tuple[dict[str, Any], ...], engine: str, folder: str
) -> tuple[float, list[longwall.Result]]:
    results = [
        longwall.run(
            {
                "graph": {"path": store},
                "workload": section,
                "engine": {"kind": engine},
                "run": {"directory": folder, "name": str(number)},
            }
        )
        for number, section in enumerate(sections)
    ]
    return sum(one.timings["mine"] for one in results), results


def describe(engine: str) -> dict[str, Any]:
    """Say which device the engine uses, and the versions of what it is made of."""
    from longwall.kernels import select_engine

    device = select_engine(engine).device.name
    packages = ["longwall", "numpy", "numba"]
    if engine == "cuda":
        packages.append(next(name for name in ("cupy-cuda13x", "cupy-cuda12x", "cupy") if _installed(name)))
    return {
        "device": device,
        "versions": {name: version(name) for name in packages},
    }


def _installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True
