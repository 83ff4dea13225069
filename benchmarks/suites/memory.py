"""Measure peak memory from outside, against the budget: a promise that `memory.host` makes.

    python -m benchmarks.suites.memory --scratch /tmp/memory
    python -m benchmarks.suites.memory --scratch /tmp/memory ingest list

Every case is a command in a process of its own, whose resident memory (with that of its children) is read every
20 ms; the kernel's own high-water mark counts too, so no peak is missed. The budget holds what Longwall books. What
the interpreter, the libraries and the compiled kernels take is on top of it: that constant is the peak of the same
command on a tiny graph with a small budget. The exit status is 1 where a peak exceeds the budget and the constant.

The inputs are made once and kept in the scratch folder.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

_POLL_SECONDS = 0.02
_MIB = 1 << 20
_TINY_SCALE, _TINY_BUDGET = 8, 32 * _MIB

_MAKE_TEXT = """
import sys
import numpy as np, pyarrow as pa, pyarrow.csv as csv
import longwall
scale, path = int(sys.argv[1]), sys.argv[2]
graph = longwall.generate_graph("rmat", seed=1, scale=scale, edge_factor=16)
sources = np.repeat(np.arange(graph.num_vertices, dtype=np.uint32), np.diff(graph.indptr))
once = graph.indices < sources
ends = [graph.original_ids[array[once]] for array in (sources, graph.indices)]
plain = csv.WriteOptions(include_header=False, delimiter=" ", quoting_style="none")
csv.write_csv(pa.table(ends, names=["u", "v"]), path, plain)
"""
# Every connected subgraph of three edges that begins at an edge: columns that are many times the budget.
_EXTEND_EDGES = """
import sys
import longwall
edges = longwall.edges(longwall.open_graph(sys.argv[1]), memory=int(sys.argv[2]), spill=sys.argv[3])
with longwall.extend_edges(longwall.extend_edges(edges)) as table:
    print(len(table), table.table.nbytes)
"""


@dataclass(frozen=True)
class Case:
    """A command whose memory is measured."""

    title: str
    budget: int
    """Bytes of host memory that the command is given."""
    scale: int
    """Of the R-MAT graph."""
    prepare: Callable[[Path, int], Path]
    """Makes the input in the scratch folder, from the scale; gives its path."""
    command: Callable[[Path, Path, int], list[str]]
    """The command, from the input, a folder for what it writes, and the budget."""


@dataclass(frozen=True)
class Usage:
    """What a command took."""

    peak: int
    """Bytes."""
    seconds: float
    written: int
    """Bytes that it left in its folder."""


def main() -> None:
    """Measure the cases of the command line and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scratch", type=Path, required=True, help="folder for inputs and outputs")
    parser.add_argument("cases", nargs="*", metavar="case", help=f"of {', '.join(CASES)}; default: all")
    settings = parser.parse_args()
    unknown = set(settings.cases) - set(CASES)
    if unknown:
        parser.error(f"there is no case {sorted(unknown)[0]}; choose of {', '.join(CASES)}")
    settings.scratch.mkdir(parents=True, exist_ok=True)
    print("| case | budget MiB | constant MiB | peak MiB | of the budget | seconds | written MiB | |")
    print("|---|---:|---:|---:|---:|---:|---:|---|")
    over = [name for name in settings.cases or CASES if not _report(CASES[name], settings.scratch)]
    sys.exit(1 if over else 0)


def _report(case: Case, scratch: Path) -> bool:
    """Measure a case and print its line; gives whether it kept the promise."""
    tiny = case.prepare(scratch, _TINY_SCALE)
    _measure(case, tiny, _TINY_BUDGET, scratch)  # compiles the kernels, where they are not in the cache yet
    constant = _measure(case, tiny, _TINY_BUDGET, scratch).peak
    usage = _measure(case, case.prepare(scratch, case.scale), case.budget, scratch)
    kept = usage.peak <= case.budget + constant
    figures = [
        f"{case.budget / _MIB:.0f}",
        f"{constant / _MIB:.0f}",
        f"{usage.peak / _MIB:.0f}",
        f"{(usage.peak - constant) / case.budget:.0%}",
        f"{usage.seconds:.1f}",
        f"{usage.written / _MIB:.0f}",
        "kept" if kept else "EXCEEDED",
    ]
    print(f"| {case.title} | {' | '.join(figures)} |", flush=True)
    return kept


def _measure(case: Case, source: Path, budget: int, scratch: Path) -> Usage:
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        began = time.monotonic()
        process = subprocess.Popen(case.command(source, Path(folder), budget), stdout=subprocess.DEVNULL)
        polled = 0
        ended = 0
        while not ended:
            polled = max(polled, _resident(process.pid))
            time.sleep(_POLL_SECONDS)
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - began
        if process.returncode:
            sys.exit(f"{case.title}: failed with exit status {process.returncode}")
        written = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
        return Usage(max(polled, usage.ru_maxrss * 1024), seconds, written)


def _resident(pid: int) -> int:
    """Resident bytes of a process and its descendants."""
    total = 0
    try:
        process = psutil.Process(pid)
        for one in (process, *process.children(recursive=True)):
            total += one.memory_info().rss
    except psutil.NoSuchProcess:
        return total
    return total


def _text(scratch: Path, scale: int) -> Path:
    """Make the edge list of an R-MAT graph."""
    path = scratch / f"rmat-{scale}.txt"
    if not path.exists():
        partial = path.with_suffix(".partial")
        subprocess.run([sys.executable, "-c", _MAKE_TEXT, str(scale), str(partial)], check=True)
        partial.rename(path)
    return path


def _store(scratch: Path, scale: int, edge_factor: int = 16) -> Path:
    """Make the graph store of an R-MAT graph."""
    path = scratch / f"rmat-{scale}-{edge_factor}.zarr"
    if not path.exists():
        command = _longwall("generate", "rmat", str(path), "--scale", str(scale), "--edge-factor", str(edge_factor))
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return path


def _sparse_store(scratch: Path, scale: int) -> Path:
    return _store(scratch, scale, edge_factor=8)


def _longwall(*words: str) -> list[str]:
    return [sys.executable, "-m", "longwall", *words]


def _ingest(source: Path, folder: Path, budget: int) -> list[str]:
    options = ["--memory", str(budget), "--spill", str(folder / "spill"), "--quiet"]
    return _longwall("ingest", str(source), str(folder / "graph.zarr"), *options)


def _list_cliques(source: Path, folder: Path, budget: int) -> list[str]:
    config = folder / "cliques.toml"
    config.write_text(
        f"""
[graph]
path = "{source}"
[workload]
kind = "cliques"
k = 4
output = "embeddings"
[memory]
host = {budget}
spill = "{folder / "spill"}"
[engine]
kind = "cpu"
[run]
directory = "{folder}"
"""
    )
    return _longwall("run", str(config), "--quiet")


def _extend_edges(source: Path, folder: Path, budget: int) -> list[str]:
    return [sys.executable, "-c", _EXTEND_EDGES, str(source), str(budget), str(folder / "spill")]


CASES = {
    "ingest": Case("ingest of R-MAT 20 as text", 256 * _MIB, 20, _text, _ingest),
    "list": Case("all 4-cliques of R-MAT 14", 256 * _MIB, 14, _store, _list_cliques),
    "tables": Case("e-ET of 3 edges on R-MAT 10, 1.5 GiB", 64 * _MIB, 10, _sparse_store, _extend_edges),
}

if __name__ == "__main__":
    main()
