"""Show when each step of one small run begins and ends, in which thread: what waits for what.

    python -m benchmarks.gpu.timeline --engine cuda
    python -m benchmarks.gpu.timeline --engine cpu --pattern triangle      # where there is no GPU
    python -m benchmarks.gpu.timeline --engine cuda --devices all          # a process for each GPU
    python -m benchmarks.gpu.timeline --engine cpu --workers 2             # the same where there is none

The count of a small graph is compared with brute force first. The run is the program's own, in a process of its own,
with kernels on disk; functions of `STEPS` and imports of `PACKAGES` are timed from inside. Of the runs the shortest is
shown, in milliseconds since the process was started. "Busy" is the processor time of the whole process. Steps of
worker processes are those of threads whose names begin with the worker's.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import reduce, wraps
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder
from multiprocessing import current_process
from pathlib import Path
from typing import Any

from benchmarks.gpu.start import EDGES, WORKLOADS, caches, expected, finished, imports, say

PACKAGES = (
    "typer", "pydantic", "numpy", "cupy", "pyarrow", "llvmlite.binding", "numba", "pandas", "jinja2", "dask",
    "distributed", "zarr", "scipy", "longwall.pipeline.config", "longwall.pipeline.run",
    "longwall.pipeline.planning.planner", "longwall.kernels.cuda.engine",
)  # fmt: skip
STEPS = {
    "longwall.pipeline.config.load": ("load_config",),
    "longwall.kernels.driver": ("wake_driver",),
    "longwall.kernels.cuda.runtime.open_device": ("open_device",),
    "longwall.kernels.cuda.runtime.compile": ("_module",),
    "longwall.kernels.jit.machine_code": ("load",),
    "longwall.pipeline.cluster.connect": ("reach", "_scheduler", "ComingCluster.share", "ComingCluster.wait"),
    "longwall.pipeline.cluster.dask_executor": ("DaskExecutor.run",),
    "longwall.pipeline.cluster.started.processes": ("StartedWorkers.meet", "StartedWorkers.close"),
    "longwall.pipeline.cluster.worker_process": ("serve", "WorkerProcess.close"),
    "longwall.pipeline.inputs": ("open_resources", "read_graph", "plan_for", "open_beside"),
    "longwall.pipeline.run": ("_coordinator", "_publish"),
    "longwall.storage.graph.graph_store": ("open_store", "StoreReader.read", "StoreReader.check_distinct"),
    "longwall.pipeline.report.publish": ("publish_report",),
    "longwall.storage.memory.resources": ("open_resources",),
}
_SHORT = 0.002  # seconds; shorter steps are left out
_BEGAN, _STEPS = "LONGWALL_TIMELINE_BEGAN", "LONGWALL_TIMELINE_STEPS"  # of a run, and the file for steps of its workers


class _Watch(MetaPathFinder):
    """Times imports of packages, and wraps functions as soon as their modules are there; a worker writes them."""

    def __init__(self, began: float, file: str | None = None):
        self._began, self._file = began, file
        self.events: list[tuple[float, float, str, str]] = []
        self._looking = threading.local()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Find a module that is watched, with a loader that times it."""
        if (name not in PACKAGES and name not in STEPS) or getattr(self._looking, "on", False):
            return None
        self._looking.on = True
        try:
            found = self._spec(name)
        finally:
            self._looking.on = False
        if found is None or found.loader is None or not hasattr(found.loader, "exec_module"):
            return None
        run = found.loader.exec_module

        def timed(module: Any) -> None:
            with_steps = self._timed(f"import {name}", run) if name in PACKAGES else run
            with_steps(module)
            for step in STEPS.get(name, ()):
                *classes, function = step.split(".")
                owner = reduce(getattr, classes, module)
                setattr(owner, function, self._timed(step.strip("_"), getattr(owner, function)))

        found.loader.exec_module = timed
        return found

    @staticmethod
    def _spec(name: str) -> Any:
        for finder in sys.meta_path:
            if isinstance(finder, _Watch):
                continue
            parent = sys.modules.get(name.rpartition(".")[0])
            place = getattr(parent, "__path__", None) if parent is not None else None
            found = finder.find_spec(name, place) if finder is not PathFinder else PathFinder.find_spec(name, place)
            if found is not None:
                return found
        return None

    def _timed(self, what: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def timed(*arguments: Any, **options: Any) -> Any:
            start = time.time()
            try:
                return function(*arguments, **options)
            finally:
                took = time.time() - start
                detail = next((str(one) for one in arguments if isinstance(one, str) and len(one) < 40), "")
                thread = threading.current_thread()
                where = "main" if thread is threading.main_thread() else thread.name
                if took >= _SHORT:
                    self._note((start - self._began, start - self._began + took, where, f"{what} {detail}"))

        return timed

    def _note(self, event: tuple[float, float, str, str]) -> None:
        if self._file is None:
            self.events.append(event)
            return
        start, end, thread, what = event
        with Path(self._file).open("a") as file:  # at once: a worker ends without notice
            file.write(json.dumps((start, end, f"{current_process().name}, {thread}", what)) + "\n")


def child(words: list[str], began: float) -> None:
    """Run the program with these words, and print the events as JSON."""
    watch = _Watch(began)
    os.environ |= {_BEGAN: str(began), _STEPS: str(Path(f"workers-{os.getpid()}.jsonl").absolute())}
    watch.events.append((0.0, time.time() - began, "main", "interpreter"))
    sys.meta_path.insert(0, watch)
    from longwall.__main__ import main

    sys.argv = ["longwall", *words]
    code: Any = 0
    try:
        main()
    except SystemExit as end:
        code = end.code
    watch.events.append((time.time() - began, time.time() - began + _SHORT, "main", "leaves"))
    busy = sum(os.times()[:2])
    with suppress(FileNotFoundError):
        watch.events += map(json.loads, Path(os.environ[_STEPS]).read_text().splitlines())
    print(json.dumps({"events": watch.events, "busy": busy, "code": code}), flush=True)
    os._exit(code or 0)  # as the program leaves


def one_run(folder: Path, words: list[str], limit: float) -> dict[str, Any]:
    """Return the events of a run with warm caches, and how long the process took."""
    environment = caches(folder, False) | {
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path[1:]])
    }
    start = time.time()
    command = ["-m", "benchmarks.gpu.timeline", "--began", str(start), "--child", *words]
    found = finished(command, folder, environment, limit)
    return found | {"whole": time.time() - start}


def main() -> None:
    """Measure, and print the timeline."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--devices", help='"all" or a list: a process for each GPU')
    parser.add_argument("--workers", type=int, help="so many processes, each with a share of the cores")
    parser.add_argument("--pattern", choices=("triangle", "house"), default="triangle")
    parser.add_argument("--store", type=Path, help="count the cliques of 5 vertices of this store; nothing is compared")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="of which the shortest is shown")
    parser.add_argument("--limit", type=float, default=40.0, metavar="S", help="seconds that a process may take")
    parser.add_argument("--began", type=float, default=0.0, help=argparse.SUPPRESS)
    parser.add_argument("--child", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child, options.began)
        return
    name = "5-cliques" if options.store else {"triangle": "triangles", "house": "houses"}[options.pattern]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        os.environ.pop("NUMBA_CACHE_DIR", None)
        (folder / "graph.txt").write_text("".join(f"{u} {v}\n" for u, v in EDGES))
        workloads: dict[str, dict[str, Any]] = WORKLOADS | {"5-cliques": {"kind": "cliques", "k": 5}}
        lines = [f"{key} = {json.dumps(value)}\n" for key, value in workloads[name].items()]
        config = folder / f"{name}-{options.engine}.toml"
        devices = f"engine.devices = {json.dumps(options.devices)}\n" if options.devices else ""
        if options.workers:
            devices += f'scheduler.kind = "dask"\nscheduler.workers = {options.workers}\n'
        graph = json.dumps(str(options.store.absolute()) if options.store else "graph.txt")
        head = f'graph.path = {graph}\nengine.kind = "{options.engine}"\n{devices}run.directory = "runs"\n'
        config.write_text(f"{head}[workload]\n{''.join(lines)}")
        plain = ["-m", "longwall", "run", str(config), "--json", "--set", "run.name="]
        walls = []
        for number in range(options.runs + 1):
            start = time.perf_counter()
            count = finished([*plain[:-1], f"run.name=plain{number}"], folder, caches(folder, False), options.limit)
            walls.append(time.perf_counter() - start)
            if not options.store and count["count"] != expected(name):
                raise SystemExit(f"{count['count']}, not {expected(name)}")
        timed = ["run", str(config), "--quiet", "--set"]
        runs = [
            one_run(folder, [*timed, f"run.name=timed{number}"], options.limit) for number in range(options.runs + 1)
        ]
        best = min(runs[1:], key=lambda run: float(run["whole"]))
        print(
            f"\n{name} on {options.engine}: first {walls[0]:.3f} s, then " + " ".join(f"{one:.3f}" for one in walls[1:])
        )
        print(f"the run below: {best['whole']:.3f} s, busy {best['busy']:.3f}; ms from, to, took, thread, step")
        for start, end, thread, what in sorted(best["events"]):
            print(f"{start * 1e3:6.0f} {end * 1e3:6.0f} {(end - start) * 1e3:6.0f}  {thread:28} {what}")
        try:
            if not options.store:
                imports(folder, options.engine, options.limit)
        except subprocess.CalledProcessError as error:
            say(error.stderr[-2000:])


if __name__ == "__mp_main__" and _STEPS in os.environ:  # a worker process imports what its parent runs
    sys.meta_path.insert(0, _Watch(float(os.environ[_BEGAN]), os.environ[_STEPS]))

if __name__ == "__main__":
    main()
