"""Measure where the time of a small run goes, on a GPU and on the CPU: first with no kernel on disk, then with all.

    python -m benchmarks.gpu.start
    python -m benchmarks.gpu.start --engine cuda --runs 2 --limit 60     # each part is printed as it ends
    python -m benchmarks.gpu.start --engine cpu --runs 3                 # where there is no GPU

Triangles and houses of a small graph are counted by brute force first; every run must count the same. Then each run is
done in processes of its own: as `longwall run` (the row "whole process"), and once more in parts. "Cold" is with
empty folders for the kernels of Numba and CUDA, "cached" is the median of the runs that follow. What is done is printed
to standard error as it is done, with every kernel that is compiled or loaded; a process that outlasts the limit shows
where it stands, and ends the benchmark.
"""

import argparse
import cProfile
import faulthandler
import io
import json
import os
import pstats
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from benchmarks.lib.machine import describe_machine

VERTICES = 400
EDGES = sorted({(u, v) for v in range(VERTICES) for u in range(v) if (u * 37 + v * 101 + u * v) % 31 == 0})
WORKLOADS = {"triangles": {"kind": "triangles"}, "houses": {"kind": "match", "pattern": "house"}}
HEAVY = ("pandas", "scipy", "dask", "zarr", "cupyx", "networkx", "charset_normalizer", "requests")
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


def say(text: str) -> None:
    """Print what was done, at once."""
    print(text, file=sys.stderr, flush=True)


def child(config: str, began: float) -> None:
    """Do a run in parts, and print the seconds of each as JSON."""
    parts = dict.fromkeys(PARTS, 0.0) | {"interpreter": time.time() - began}
    say(f"    interpreter {parts['interpreter']:.3f}")
    sys.meta_path.insert(0, _HeavyImports)

    @contextmanager
    def part(name: str, what: str = "") -> Iterator[None]:
        start = time.perf_counter()
        yield
        took = time.perf_counter() - start
        parts[name] += took
        say(f"    {name} {took:.3f} {what}")

    with part("imports"):
        from longwall.pipeline import cli  # noqa: F401
        from longwall.pipeline.config import load_config
        from longwall.pipeline.run import running

        kind = load_config(config).engine.kind
    if kind == "cuda":
        _open_device(part)
    start = time.perf_counter()
    with running(config) as result:
        whole = time.perf_counter() - start
        start = time.perf_counter()
    known = result.timings | {"report": time.perf_counter() - start}
    parts |= {name: known.get(name, 0.0) for name in ("graph", "plan", "mine", "write", "report")}
    parts["rest"] = whole - sum(result.timings.values())
    say(
        "    " + ", ".join(f"{name} {parts[name]:.3f}" for name in ("graph", "plan", "mine", "write", "rest", "report"))
    )
    found = {"parts": parts, "count": result.count, "engine": result.engine, "left": time.time()}
    print(json.dumps(found), flush=True)
    os._exit(0)  # as the program leaves


def _open_device(part: Callable[..., Any]) -> None:
    """Open the device step by step, and let every kernel be reported that is compiled or loaded from now on."""
    with part("CuPy"):
        import cupy

        from longwall.kernels.cuda.runtime import compile as sources
        from longwall.kernels.cuda.runtime.open_device import open_device
    with part("context", "devices"):
        cupy.cuda.runtime.getDeviceCount()
    with part("context", "context"):
        cupy.cuda.runtime.free(0)
    with suppress(ImportError):
        from cupy.cuda import compiler

        compiler._compile_module_with_cache = _timed(compiler._compile_module_with_cache, part)
    sources._module = _timed(sources._module, part)
    profile = cProfile.Profile()
    with part("first kernel"):
        profile.runcall(open_device)
    stream = io.StringIO()
    pstats.Stats(profile, stream=stream).sort_stats("cumulative").print_stats(14)
    slowest = [line.split(None, 5)[3:] for line in stream.getvalue().splitlines() if line[:10].strip().isdigit()]
    say("      " + "; ".join(f"{words[0]} {words[-1].rpartition('/')[2]}" for words in slowest))


class _HeavyImports:
    """Says who imports what a small run should do without."""

    @staticmethod
    def find_spec(name: str, *_: Any) -> None:
        """Find nothing."""
        if name in HEAVY:
            frames = [frame for frame in traceback.extract_stack() if "importlib" not in frame.filename]
            who = " < ".join(f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in frames[-2:-9:-1])
            say(f"      {name} is imported by {who}")


def _timed(make: Callable[..., Any], part: Callable[..., Any]) -> Callable[..., Any]:
    """Add up the time that modules take, which is part of "graph" and "mine", too."""

    def timed(*arguments: Any, **options: Any) -> Any:
        source = str(next((word for word in arguments if isinstance(word, str)), ""))
        kernel = source.partition("__global__ void ")[2].partition("(")[0] if len(source) > 99 else source
        with part("modules", f"{make.__name__.strip('_')} {kernel}"):
            return make(*arguments, **options)

    return timed


def caches(folder: Path, cold: bool) -> dict[str, str]:
    """Return the environment of a run whose kernels are in a folder: in an empty one for every cold run."""
    place = Path(tempfile.mkdtemp(dir=folder)) if cold else folder / "cache"
    (place / "cupy").mkdir(parents=True, mode=0o700, exist_ok=True)
    return os.environ | {
        "XDG_CACHE_HOME": str(place),
        "CUPY_CACHE_DIR": str(place / "cupy"),
        # As where the program is installed: modules are compiled once.
        "PYTHONPYCACHEPREFIX": str(folder / "modules"),
        "PYTHONDONTWRITEBYTECODE": "",
    }


def finished(command: list[str], folder: Path, environment: dict[str, str], limit: float) -> dict[str, Any]:
    """Run Python to its end; return the JSON that it prints last.

    Raises
    ------
    SystemExit
        If it fails, or outlasts the limit: then it has said where it stood.
    """
    words = [sys.executable, "-X", "faulthandler", *command]
    process = subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        printed, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)
        process.kill()
        raise SystemExit(f"not done in {limit:g} s: {' '.join(command)}") from None
    if process.returncode:
        raise SystemExit(f"exit code {process.returncode}: {' '.join(command)}")
    answer: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return answer


def imports(folder: Path, engine: str, limit: float) -> None:
    """Say which packages take longest to import in a run with kernels on disk."""
    config = str(folder / f"triangles-{engine}.toml")
    command = [sys.executable, "-X", "importtime", "-m", "longwall", "run", config, "--set", "run.name=imports"]
    done = subprocess.run(
        [*command, f"--set=run.directory={folder}/imports-{engine}"], cwd=folder, env=caches(folder, False),
        capture_output=True, text=True, timeout=limit, check=True,
    )  # fmt: skip
    packages: dict[str, int] = defaultdict(int)
    for line in done.stderr.splitlines():
        fields = line.removeprefix("import time:").split("|")
        if len(fields) == 3 and fields[0].strip().isdigit():
            packages[fields[2].strip().partition(".")[0]] += int(fields[0])
    slowest = sorted(packages.items(), key=lambda one: -one[1])[:16]
    whole = sum(packages.values())
    say(f"imports, {engine}: {whole / 1e3:.0f} ms of {', '.join(f'{name} {us / 1e3:.0f}' for name, us in slowest)}")


def measure(folder: Path, name: str, engine: str, number: int, limit: float) -> dict[str, float]:
    """Do a run as a whole and in parts, the one of number 0 with no kernels; return the seconds of each part."""
    cold = number == 0
    config = folder / f"{name}-{engine}.toml"
    lines = [f"{key} = {json.dumps(value)}\n" for key, value in WORKLOADS[name].items()]
    sections = f'graph.path = "graph.txt"\nengine.kind = "{engine}"\nrun.directory = "runs"\n'
    config.write_text(f"{sections}[workload]\n{''.join(lines)}")
    names = [f"{name}-{engine}-{number}-{how}" for how in ("whole", "parts")]
    say(f"{name}, {engine}, {'cold' if cold else f'cached, {number}'}")
    start = time.perf_counter()
    command = ["-m", "longwall", "run", str(config), "--set", f"run.name={names[0]}", "--json"]
    count = finished(command, folder, caches(folder, cold), limit)["count"]
    whole = time.perf_counter() - start
    say(f"  whole process {whole:.3f}; once more, in parts:")
    config.write_text(f'run.name = "{names[1]}"\n{config.read_text()}')
    command = ["-m", "benchmarks.gpu.start", "--child", str(config), "--began", str(time.time())]
    here = {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path[1:]])}
    found = finished(command, folder, caches(folder, cold) | here, limit)
    if not count == found["count"] == expected(name) or found["engine"] != engine:
        raise SystemExit(f"{name} on {engine}: counts {count} and {found['count']}, not {expected(name)}")
    parts: dict[str, float] = found["parts"]
    overlap = ("modules", "in parts", "whole process")
    parts["end"] = time.time() - found["left"]
    parts["in parts"] = sum(took for part, took in parts.items() if part not in overlap)
    return parts | {"whole process": whole}


def main() -> None:
    """Measure, and print a table."""
    faulthandler.enable()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=("both", "cuda", "cpu"), default="both")
    parser.add_argument("--runs", type=int, default=7, metavar="N", help="runs of each kind with kernels on disk")
    parser.add_argument("--limit", type=float, default=120.0, metavar="S", help="seconds that a process may take")
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
            columns[f"{name}, {engine}, cold"] = measure(folder, name, engine, 0, options.limit)
            runs = [measure(folder, name, engine, number, options.limit) for number in range(1, options.runs + 2)]
            kept = runs[1:]  # the first one warms
            columns[f"{name}, {engine}, cached"] = {p: statistics.median(run[p] for run in kept) for p in PARTS}
        for engine in engines:
            imports(folder, engine, options.limit)
    machine = describe_machine()
    print(
        f"{len(EDGES):,} edges; {machine['cpu']}, {machine['cores']} cores, load {machine['load_at_start']}; seconds\n"
    )
    print("| part |", " | ".join(columns), "|\n|---|" + "---|" * len(columns))
    for part in PARTS:
        print(f"| {part} |", " | ".join(f"{column[part]:.3f}" for column in columns.values()), "|")


if __name__ == "__main__":
    main()
