"""Compile the kernels of this machine before anybody waits for them: those that declare their types, on all cores.

Kernels of a device are compiled for programs, so small runs of every workload compile them: each process takes one run
after another from the list.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from longwall.storage.errors import InputError, RunError, reason_of
from longwall.storage.observer import Observer

Run = dict[str, Any]
"""The sections of a config that say what to do."""

_SERVE = "from longwall.pipeline.terminal.warm import serve; serve()"
_MOST_PROCESSES = 16
_MEMORY = {"host": "512MiB", "disk": "1GiB"}
_RMAT = {"kind": "rmat", "scale": 11, "edge_factor": 8, "seed": 1}
_LABELLED = _RMAT | {"num_labels": 4}


def _on_store(kind: str, **keys: Any) -> Run:
    return {"graph": {"path": "store.zarr"}, "workload": {"kind": kind} | keys}


def _on_labels(kind: str, **keys: Any) -> Run:
    return {"graph": {"generator": _LABELLED}, "workload": {"kind": kind} | keys}


RUNS: Sequence[Run] = (
    # What compiles longest comes first, so that no process is left alone with it in the end.
    _on_store("motifs", k=5),
    _on_store("motifs", k=5, output="vertices"),
    _on_labels("frequent", min_support=300, max_edges=2),
    *({"graph": {"path": name}, "workload": {"kind": "triangles"}} for name in ("edges.txt", "edges.parquet")),
    *(_on_store("maximal-cliques", output=output) for output in ("count", "embeddings", "vertices")),
    *(
        _on_store("match", pattern=one)
        for one in ("house", "diamond", "cycle-4", "cycle-5", "path-4", "tailed-triangle")
    ),
    *(_on_store("match", pattern=one) for one in ("wheel-5", "path-5", "star-4", "0-1,1-2,2-3,3-4,4-5,0-5,0-3")),
    *(_on_store("match", pattern=one, induced=True) for one in ("diamond", "cycle-4", "house", "star-4", "path-6")),
    *(_on_store("match", pattern=one, output="embeddings") for one in ("wheel-5", "cycle-4")),
    *(_on_labels("match", pattern=f"(a:0)-(b:1)-(c:2)-(a){more}") for more in ("", "-(d)", "-(d:1)-(b)")),
    _on_labels("match", pattern="(a:0)-(b:1)-(c:2)-(d:0)", output="embeddings"),
    _on_store("match", pattern="house", limit=100),
    *(_on_store("motifs", k=k) for k in (3, 4)),
    _on_store("motifs", k=4, output="vertices"),
    *(_on_store("triangles", output=output) for output in ("count", "embeddings", "vertices", "edges")),
    *(_on_store("cliques", k=k) for k in (3, 4, 5, 6, 7, "all")),
    _on_store("cliques", k=4, output="embeddings"),
    _on_store("quasi-cliques", k=4),
    *(
        {"graph": {"generator": one}, "workload": {"kind": "triangles"}}
        for one in (
            {"kind": "erdos-renyi", "vertices": 2000, "edges": 16000, "seed": 1},
            {"kind": "barabasi-albert", "vertices": 2000, "edges_per_vertex": 8, "seed": 1},
        )
    ),
)


def warm_kernels(*, on_gpu: bool) -> str:
    """Compile all kernels of this machine, and show how far that is; return how it went, for the user."""
    from longwall.pipeline.progress.observers import choose_observer

    observer = choose_observer(quiet=False)
    try:
        number, reasons = compile_declared(observer)
        if on_gpu:
            reasons += do_runs("cuda", observer)
    finally:
        observer.close()
    if reasons:
        return f"some were not compiled: {'; '.join(reasons)}"
    return f"compiled: {number} for the CPU{f', and by {len(RUNS)} small runs for the GPU' if on_gpu else ''}"


def compile_declared(observer: Observer) -> tuple[int, list[str]]:
    """Compile the kernels that declare their types, as far as they are not on disk; return their number, and faults."""
    from longwall.kernels.jit.compile_pool import CompilePool, declared_kernels
    from longwall.storage.system.concurrency import core_count

    kernels = declared_kernels()
    with CompilePool(max(core_count(), 2)) as pool:
        pool.add(kernels, every=True)
        pool.show(observer)
    left = [one.name for one in kernels if any(map(one.is_missing, one.signatures))]
    return len(kernels), [f"a process that compiles has ended at {', '.join(left)}"] if left else []


def do_runs(engine: str, observer: Observer, runs: Sequence[Run] = RUNS) -> list[str]:
    """Do runs with an engine, in as many processes as there are cores; return why some failed, each reason once."""
    from longwall.storage.system.concurrency import core_count

    with tempfile.TemporaryDirectory(prefix="longwall-warm-") as name:
        folder = Path(name)
        _write_graphs(folder)
        waiting: SimpleQueue[str] = SimpleQueue()
        for run in runs:
            waiting.put(json.dumps(_config(folder, run, engine)))
        observer.phase("compiling the device's kernels", len(runs), "runs")
        processes = min(core_count(), _MOST_PROCESSES, len(runs))
        with ThreadPoolExecutor(processes) as threads:
            feeding = [threads.submit(_feed, waiting, observer.advance) for _ in range(processes)]
            reasons = [reason for one in feeding for reason in one.result()]
    return list(dict.fromkeys(reasons))


def serve() -> None:
    """Do the runs whose configs come as lines; a line goes back for each: why it failed, or nothing."""
    from longwall.pipeline.run import run

    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        reason = ""
        try:
            run(json.loads(line))
        except (InputError, RunError, MemoryError, OSError) as error:
            reason = reason_of(error).replace("\n", " ")
        answers.write(f"{reason}\n")
        answers.flush()


def _feed(waiting: SimpleQueue[str], advance: Callable[[int], None]) -> list[str]:
    """Let a process do what waits; return why runs failed."""
    from longwall.kernels.jit.child_process import python_words

    reasons = []
    pipe = subprocess.PIPE
    with subprocess.Popen(
        python_words(_SERVE), stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for config in _taken(waiting):
            with suppress(BrokenPipeError):
                process.stdin.write(f"{config}\n")
                process.stdin.flush()
            answer = process.stdout.readline()
            if not answer:
                reasons.append("a process that compiles has ended")
                break
            reasons += [answer.strip()] if answer.strip() else []
            advance(1)
        with suppress(BrokenPipeError):
            process.stdin.close()
    return reasons


def _taken(waiting: SimpleQueue[str]) -> Iterator[str]:
    with suppress(Empty):
        while True:
            yield waiting.get_nowait()


def _config(folder: Path, run: Run, engine: str) -> Run:
    graph = {key: str(folder / value) if key == "path" else value for key, value in run["graph"].items()}
    memory = _MEMORY | {"spill": str(folder / "spill")} | ({"device": "256MiB"} if engine == "cuda" else {})
    return {
        "graph": graph,
        "workload": run["workload"],
        "engine": {"kind": engine, "threads": 2},
        "memory": memory,
        "run": {"directory": str(folder / "runs")},
    }


def _write_graphs(folder: Path) -> None:
    """Write the graphs that runs read: a text, a table, and a graph store."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    from longwall.pipeline.inputs import open_graph

    drawn = np.random.default_rng(1).integers(0, 2000, (16000, 2))
    ends = np.unique(np.sort(drawn[drawn[:, 0] != drawn[:, 1]]), axis=0)
    (folder / "edges.txt").write_text("".join(f"{u} {v}\n" for u, v in ends.tolist()))
    pq.write_table(pa.table({"source": ends[:, 0], "target": ends[:, 1]}), folder / "edges.parquet")
    open_graph(folder / "edges.txt").save(folder / "store.zarr")
