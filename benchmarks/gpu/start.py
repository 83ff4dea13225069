"""Measure where the time of a small run goes, on a GPU and on the CPU: first with no kernel on disk, then with all.

    python -m benchmarks.gpu.start
    python -m benchmarks.gpu.start --engine cpu --runs 3     # where there is no GPU

Triangles and houses of a small graph are counted by brute force first; every run must count the same. Then each run is
done in processes of its own: as `longwall run` (the row "whole process"), and once more in parts. "Cold" is with
empty folders for the kernels of Numba and CuPy, "cached" is the median of the runs that follow.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.lib.machine import describe_machine

VERTICES = 400
EDGES = sorted({(u, v) for v in range(VERTICES) for u in range(v) if (u * 37 + v * 101 + u * v) % 31 == 0})
WORKLOADS = {"triangles": {"kind": "triangles"}, "houses": {"kind": "match", "pattern": "house"}}
PARTS = (
    "interpreter", "imports", "CuPy", "context", "first kernel", "modules", "graph", "plan", "mine", "write", "rest",
    "report", "end", "in parts", "whole process",
)  # fmt: skip


def expected(name: str) -> int:
    """Count a pattern by brute force: a house is an edge of a 4-cycle with a vertex that sees both ends."""
    near: dict[int, set[int]] = {v: set() for v in range(VERTICES)}
    for u, v in EDGES:
        near[u].add(v)
        near[v].add(u)
    if name == "triangles":
        return sum(len(near[u] & near[v]) for u, v in EDGES) // 3
    houses = 0
    for u, v in EDGES:
        roofs = near[u] & near[v]
        walls = [(a, b) for a in near[u] - {v} for b in near[a] & near[v] - {u}]
        houses += sum(len(roofs - {a, b}) for a, b in walls)
    return houses


def child(config: str, began: float) -> None:
    """Do a run in parts, and print the seconds of each as JSON."""
    parts = dict.fromkeys(PARTS, 0.0) | {"interpreter": time.time() - began}

    @contextmanager
    def part(name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        parts[name] += time.perf_counter() - start

    with part("imports"):
        from longwall.pipeline import cli  # noqa: F401
        from longwall.pipeline.config import load_config
        from longwall.pipeline.run import running

        kind = load_config(config).engine.kind
    if kind == "cuda":
        with part("CuPy"):
            import cupy

            from longwall.kernels.cuda.runtime import compile as sources
            from longwall.kernels.cuda.runtime.device import open_device
        with part("context"):
            cupy.cuda.runtime.free(0)
        with part("first kernel"):
            open_device()
        made = sources._module.__wrapped__
        sources._module = _timed(made, part)
    start = time.perf_counter()
    with running(config) as result:
        whole = time.perf_counter() - start
        start = time.perf_counter()
    known = result.timings | {"report": time.perf_counter() - start}
    parts |= {name: known.get(name, 0.0) for name in ("graph", "plan", "mine", "write", "report")}
    parts["rest"] = whole - sum(result.timings.values())
    found = {"parts": parts, "count": result.count, "engine": result.engine, "left": time.time()}
    print(json.dumps(found), flush=True)
    os._exit(0)  # as the program leaves


def _timed(make: Callable[..., Any], part: Callable[[str], Any]) -> Callable[..., Any]:
    """Add up the time that modules take, which is part of "graph" and "mine", too."""
    kept: dict[tuple[Any, ...], Any] = {}

    def timed(*arguments: Any) -> Any:
        if arguments not in kept:
            with part("modules"):
                kept[arguments] = make(*arguments)
        return kept[arguments]

    return timed


def caches(folder: Path, cold: bool) -> dict[str, str]:
    """Return the environment of a run whose kernels are in a folder: in an empty one for every cold run."""
    place = Path(tempfile.mkdtemp(dir=folder)) if cold else folder / "cache"
    (place / "cupy").mkdir(parents=True, mode=0o700, exist_ok=True)
    return os.environ | {"XDG_CACHE_HOME": str(place), "CUPY_CACHE_DIR": str(place / "cupy")}


def measure(folder: Path, name: str, engine: str, number: int) -> dict[str, float]:
    """Do a run as a whole and in parts, the one of number 0 with no kernels; return the seconds of each part."""
    cold = number == 0
    config = folder / f"{name}-{engine}.toml"
    lines = [f"{key} = {json.dumps(value)}\n" for key, value in WORKLOADS[name].items()]
    sections = f'graph.path = "graph.txt"\nengine.kind = "{engine}"\nrun.directory = "runs"\n'
    config.write_text(f"{sections}[workload]\n{''.join(lines)}")
    names = [f"{name}-{engine}-{number}-{how}" for how in ("whole", "parts")]
    start = time.perf_counter()
    command = [sys.executable, "-m", "longwall", "run", str(config), "--set", f"run.name={names[0]}", "--json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, env=caches(folder, cold))
    whole = time.perf_counter() - start
    count = json.loads(done.stdout.splitlines()[-1])["count"]
    config.write_text(f'run.name = "{names[1]}"\n{config.read_text()}')
    command = [sys.executable, "-m", "benchmarks.gpu.start", "--child", str(config), "--began", str(time.time())]
    here = {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path[1:]])}
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=True, env=caches(folder, cold) | here
    )
    found = json.loads(done.stdout.splitlines()[-1])
    if not count == found["count"] == expected(name) or found["engine"] != engine:
        raise SystemExit(f"{name} on {engine}: counts {count} and {found['count']}, not {expected(name)}")
    parts: dict[str, float] = found["parts"]
    overlap = ("modules", "in parts", "whole process")
    parts["end"] = time.time() - found["left"]
    parts["in parts"] = sum(took for part, took in parts.items() if part not in overlap)
    return parts | {"whole process": whole}


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=("both", "cuda", "cpu"), default="both")
    parser.add_argument("--runs", type=int, default=7, metavar="N", help="runs of each kind with kernels on disk")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--began", type=float, default=0.0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child, options.began)
        return
    if options.runs < 1:
        parser.error("--runs: at least 1")
    engines = ("cuda", "cpu") if options.engine == "both" else (options.engine,)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "graph.txt").write_text("".join(f"{u} {v}\n" for u, v in EDGES))
        os.environ.pop("NUMBA_CACHE_DIR", None)
        columns: dict[str, dict[str, float]] = {}
        for name, engine in [(name, engine) for engine in engines for name in WORKLOADS]:
            columns[f"{name}, {engine}, cold"] = measure(folder, name, engine, 0)
            runs = [measure(folder, name, engine, number) for number in range(1, options.runs + 2)][
                1:
            ]  # the first warms
            columns[f"{name}, {engine}, cached"] = {p: statistics.median(run[p] for run in runs) for p in PARTS}
    machine = describe_machine()
    print(
        f"{len(EDGES):,} edges; {machine['cpu']}, {machine['cores']} cores, load {machine['load_at_start']}; seconds\n"
    )
    print("| part |", " | ".join(columns), "|\n|---|" + "---|" * len(columns))
    for part in PARTS:
        print(f"| {part} |", " | ".join(f"{column[part]:.3f}" for column in columns.values()), "|")


if __name__ == "__main__":
    main()
