"""Runs that show which kernels of the host each kind of run calls, for the table that first runs compile from.

PYTHONPATH=tests/support python -m first_runs      # writes pipeline/ahead/host_kernels.json anew
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import longwall
from longwall.kernels import jit
from longwall.kernels.kernel_cache import file_of
from longwall.pipeline import run as runs
from longwall.pipeline.ahead.names import graph_name, plan_name, work_name

TABLE = Path(__file__).parents[2] / "pipeline" / "ahead" / "host_kernels.json"
_REMEMBERING = ("longwall.kernels.patterns", "longwall.pipeline.")
_RMAT = {"kind": "rmat", "scale": 12, "edge_factor": 8, "seed": 1}
_RANDOM = {"kind": "erdos-renyi", "vertices": 2000, "edges": 16000, "seed": 1}
_GROWN = {"kind": "barabasi-albert", "vertices": 2000, "edges_per_vertex": 8, "seed": 1}

Kernel = tuple[str, str, str]
"""The module, the name, and the kinds of arguments."""
Called = dict[str, dict[Kernel, Any]]
"""Kernels and their functions, in the order of their first calls, of each part of a run."""


@dataclass(frozen=True)
class Case:
    """A run whose calls stand for others of its kind."""

    graph: dict[str, Any]
    work: dict[str, Any]
    shows_graph: bool = False
    """Whether the table has from it how such a graph is read."""
    shows_work: bool = True
    """Whether the table has from it what such work calls before its plan is known."""

    @property
    def name(self) -> str:
        """For messages."""
        return " ".join(map(str, (*self.graph.values(), *self.work.values())))


def _case(kind: str, *, shows_work: bool = True, **keys: Any) -> Case:
    return Case({"path": "store.zarr"}, {"kind": kind} | keys, shows_work=shows_work)


_GRAPHS = [
    *({"path": name} for name in ("edges.txt", "edges.parquet", "store.zarr")),
    *({"generator": one} for one in (_RMAT, _RANDOM, _GROWN)),
]
CASES = [
    *(Case(graph, {"kind": "triangles"}, shows_graph=True, shows_work=False) for graph in _GRAPHS),
    *(_case("triangles", output=output) for output in ("count", "embeddings", "vertices", "edges")),
    *(_case("cliques", k=k) for k in (3, 4, 5, 6, 7, "all")),
    _case("cliques", k=4, output="embeddings"),
    _case("match", pattern="house"),
    *(_case("match", pattern=one, shows_work=False) for one in ("diamond", "cycle-4", "cycle-5", "path-4", "clique-4")),
    *(_case("match", pattern=one, induced=True, shows_work=False) for one in ("diamond", "cycle-4", "house")),
    _case("match", pattern="wheel-5", output="embeddings"),
    *(_case("motifs", k=k) for k in (3, 4, 5)),
    *(_case("motifs", k=k, output="vertices") for k in (4, 5)),
    *(_case("maximal-cliques", output=output) for output in ("count", "embeddings", "vertices")),
    _case("quasi-cliques", k=4),
    Case({"generator": _RMAT | {"num_labels": 4}}, {"kind": "frequent", "min_support": 300, "max_edges": 2}),
]


def prepare(folder: Path) -> None:
    """Write the graphs that the cases read."""
    graph = longwall.open_graph(_text(folder))
    graph.save(folder / "store.zarr")
    table = graph.to_arrow()
    import pyarrow.parquet

    pyarrow.parquet.write_table(table, folder / "edges.parquet")


def _text(folder: Path) -> Path:
    import numpy as np

    ends = np.random.default_rng(1).integers(0, 2000, (16000, 2))
    path = folder / "edges.txt"
    path.write_text("".join(f"{u} {v}\n" for u, v in ends))
    return path


def _forget() -> None:
    """Let what functions remember be made anew: a first run has nothing of the runs before."""
    for name, module in list(sys.modules.items()):
        if name.startswith(_REMEMBERING):
            for value in vars(module).values():
                if callable(clear := getattr(value, "cache_clear", None)):
                    clear()


@contextmanager
def recording(
    patch: Callable[[Any, str, Any], None],
) -> Iterator[Callable[[Case, Path], tuple[dict[str, str], Called]]]:
    """Record what is called: a function that does a case, and returns the names of its parts and their kernels."""
    part: list[str] = ["graph"]
    called: Called = {}
    names: dict[str, str] = {}
    call, plan_for = jit.Kernel.__call__, runs.plan_for

    def recorded(kernel: Any, *arguments: Any) -> Any:
        kinds = jit._describe(tuple(map(jit._kind, arguments)))
        if kinds is not None:
            called.setdefault(part[0], {})[kernel.__module__, kernel.__qualname__, kinds] = kernel._function
        return call(kernel, *arguments)

    def planned(spec: Any, graph: Any) -> Any:
        part[0] = "work"
        found = plan_for(spec, graph)
        names.update(graph=graph_name(spec), work=work_name(spec), plan=plan_name(spec, found))
        part[0] = "plan"
        return found

    patch(jit.Kernel, "__call__", recorded)
    patch(runs, "plan_for", planned)

    def do(case: Case, folder: Path) -> tuple[dict[str, str], Called]:
        part[0] = "graph"
        called.clear()
        _forget()
        graph = {key: str(folder / one) if key == "path" else one for key, one in case.graph.items()}
        longwall.run(
            {"graph": graph, "workload": case.work, "engine": {"kind": "cpu", "threads": 2}}
            | {"run": {"directory": str(folder / "runs"), "report": False}}
            | ({"export": {"limit": 1000}} if case.work.get("output") == "embeddings" else {})
        )
        parts: Called = {name: dict(called.get(name, {})) for name in ("graph", "work", "plan")}
        parts["work"] |= parts["plan"]
        return dict(names), parts

    yield do


def parts_of(case: Case) -> list[str]:
    """Which parts of the table a case shows."""
    return [*(["graph"] if case.shows_graph else []), *(["work"] if case.shows_work else []), "plan"]


def table_of(found: Iterable[tuple[Case, dict[str, str], Called]]) -> dict[str, dict[str, Any]]:
    """The table: what the cases show, and the arguments of each kernel, with the KiB of its machine code."""
    keys: dict[Kernel, str] = {}
    table: dict[str, dict[str, Any]] = {"kernels": {}, "graph": {}, "work": {}, "plan": {}}
    for case, names, called in found:
        for part in parts_of(case):
            row = table[part].setdefault(names[part], [])
            for kernel, function in called[part].items():
                if kernel not in keys:
                    same = sum(one[:2] == kernel[:2] for one in keys)
                    keys[kernel] = f"{kernel[0]}.{kernel[1]}{f' {same + 1}' if same else ''}"
                    table["kernels"][keys[kernel]] = [kernel[2], _kibibytes(function, kernel[2])]
                if keys[kernel] not in row:
                    row.append(keys[kernel])
    return table


def text_of(table: dict[str, dict[str, Any]]) -> str:
    """JSON with a line for each entry."""
    parts = {part: [f"  {json.dumps(key)}: {json.dumps(row)}" for key, row in table[part].items()] for part in table}
    return (
        "{\n" + ",\n".join(f' "{part}": {{\n' + ",\n".join(lines) + "\n }" for part, lines in parts.items()) + "\n}\n"
    )


def _kibibytes(function: Any, kinds: str) -> int:
    path = file_of(function, kinds)
    assert path is not None
    return -(-Path(path).stat().st_size // 1024)


def main() -> None:
    """Write the table anew."""
    with tempfile.TemporaryDirectory() as place, recording(setattr) as do:
        folder = Path(place)
        prepare(folder)
        table = table_of((case, *do(case, folder)) for case in CASES)
    TABLE.write_text(text_of(table))


if __name__ == "__main__":
    main()
