"""Runs on the emulator that show which sources each kind of work compiles for a device, for the table of first runs.

PYTHONPATH=tests/emulator:tests/support python -m first_device_runs      # writes device_sources.json anew
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from first_runs import TABLE, text_of
from run_configs import run_config

import longwall
from longwall.kernels.cuda.cliques import tables_ahead
from longwall.kernels.cuda.runtime import compile as compiler
from longwall.pipeline.ahead.device_sources import OF_A_PART
from longwall.pipeline.ahead.names import work_name
from longwall.pipeline.config import load_config

SOURCES = TABLE.with_name("device_sources.json")
GRAPHS: list[dict[str, Any]] = [
    {"kind": "erdos-renyi", "vertices": 60, "edges": 300, "seed": 1},
    {"kind": "rmat", "scale": 6, "edge_factor": 4, "seed": 1},
]
WIDE = {"kind": "erdos-renyi", "vertices": 150, "edges": 11000, "seed": 1}
"""Vertices have more than 128 smaller neighbours, as in most large graphs: triangles are counted another way."""
PART = {"kind": "rmat", "scale": 12, "edge_factor": 16, "seed": 1}
"""And the memory of a device that holds a part of it."""
PART_MEMORY = "160KiB"
LARGE = {"triangles count", "cliques count 3", "cliques count 4", "cliques count 5"}
"""Work that compiles other sources for large graphs: tables of cliques are made ahead."""
WORK: list[list[dict[str, Any]]] = [
    *([{"kind": "triangles", "output": output}] for output in ("count", "vertices", "edges")),
    *([{"kind": "cliques", "k": k}] for k in (3, 4, 5, 6, "all")),
    [{"kind": "match", "pattern": pattern} for pattern in ("house", "path-4", "bowtie")],
    *([{"kind": "motifs", "k": k}] for k in (3, 4, 5)),
    [{"kind": "motifs", "k": 4, "output": "vertices"}],
    *([{"kind": "maximal-cliques", "output": output}] for output in ("count", "embeddings", "vertices")),
    [{"kind": "frequent", "min_support": 20, "max_edges": 2}],
]
"""Work of one name each: what all of it compiles, on both graphs, is in the table, and what `LARGE` does for `WIDE`."""
WORK_ON_A_PART: list[list[dict[str, Any]]] = [
    *([{"kind": "triangles", "output": output}] for output in ("count", "vertices")),
    *([{"kind": "cliques", "k": k}] for k in (3, 4, 5)),
    [{"kind": "match", "pattern": pattern} for pattern in ("diamond", "cycle-4")],
]
"""The same, where the device holds a part of the graph."""


@contextmanager
def recording(patch: Callable[[Any, str, Any], None]) -> Iterator[Callable[..., tuple[str, list[tuple[str, str]]]]]:
    """Record what is compiled: a function that does work, and returns its name and its sources in order."""
    found: dict[tuple[str, str], None] = {}
    module = compiler._module

    def recorded(device: int, name: str, generated: str, waits: Callable[[], None]) -> Any:
        if waits is compiler._report:  # not ahead
            found[name, generated] = None
        return module(device, name, generated, waits)

    patch(compiler, "_module", recorded)

    def do(work: list[dict[str, Any]], folder: Path, *, of_a_part: bool = False) -> tuple[str, list[tuple[str, str]]]:
        memory = {"device": PART_MEMORY} if of_a_part else {}

        def compiled(workload: dict[str, Any], graph: dict[str, Any]) -> list[tuple[str, str]]:
            compiler.forget()
            found.clear()
            longwall.run(config_of(workload, graph, folder) | {"memory": memory})
            return list(found)

        graphs = [PART] if of_a_part else GRAPHS
        first, *others = [compiled(workload, graph) for workload in work for graph in graphs]
        sources = [one for one in first if all(one in other for other in others)]
        config = config_of(work[0], graphs[0], folder)
        name = work_name(load_config(config | {"run": {"name": "run"}}), alike=False)
        if of_a_part:
            return name + OF_A_PART, sources
        if name in LARGE:
            fits = tables_ahead._FROM
            patch(tables_ahead, "_FROM", 0)
            sources = list(dict.fromkeys(compiled(work[0], WIDE) + sources))
            patch(tables_ahead, "_FROM", fits)
        return name, sources

    yield do


def config_of(workload: dict[str, Any], graph: dict[str, Any], folder: Path) -> dict[str, Any]:
    """A run of that work on that graph."""
    labels = {"num_labels": 2} if workload["kind"] == "frequent" else {}
    generator = {"generator": graph | labels}
    return run_config(folder, generator, workload, engine={"kind": "cuda"}, run={"report": False})


def main() -> None:
    """Write the table anew."""
    table: dict[str, dict[str, Any]] = {"headers": {}, "work": {}}
    with tempfile.TemporaryDirectory() as place, recording(setattr) as do:
        for work, of_a_part in [*((work, False) for work in WORK), *((work, True) for work in WORK_ON_A_PART)]:
            name, sources = do(work, Path(place), of_a_part=of_a_part)
            for _, generated in sources:
                table["headers"].setdefault(generated, len(table["headers"]))
            table["work"][name] = [[source, table["headers"][generated]] for source, generated in sources]
            print(name, [source for source, _ in sources], flush=True)
    SOURCES.write_text(text_of(table | {"headers": {str(number): text for text, number in table["headers"].items()}}))


if __name__ == "__main__":
    main()
