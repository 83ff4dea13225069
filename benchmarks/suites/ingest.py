"""Text to graph store under host budgets: speed, peak memory measured from outside, scratch files, and the floors.

    python -m benchmarks.suites.ingest FOLDER [--scale 20] [--memory SIZE]... [--threads 2,16]

Then what each step takes, of the text, of the same edges as Parquet, and of the generator, for some numbers of cores:
seconds, those of processors, and how many cores worked.

The folder keeps text and Parquet (R-MAT, edge factor 16, seed 1) for the next time. Standard library only: a child
starts as a copy of its parent, so a parent that had loaded NumPy would show up in the peak memory of every child.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

_POLL_SECONDS = 0.01
_PIECE = 2**24
_SMALL = 18  # scale of a graph that is made first: what a machine does once is not timed, threads have work
_WRITE_TEXT = """
import sys
import pyarrow as pa, pyarrow.csv as csv
from longwall.storage.generators.random_edges import rmat
from longwall.storage.memory.resources import open_resources

options = csv.WriteOptions(include_header=False, delimiter=" ")
with open(sys.argv[2], "wb") as file, open_resources() as resources:
    for block in rmat(1, resources, scale=int(sys.argv[1]), edge_factor=16, a=0.57, b=0.19, c=0.19):
        csv.write_csv(pa.table({"src": block.src, "dst": block.dst}), file, options)
"""


_WRITE_PARQUET = """
import sys
import pyarrow as pa, pyarrow.parquet as parquet
from longwall.storage.generators.random_edges import rmat
from longwall.storage.memory.resources import open_resources

schema = pa.schema([("src", pa.int64()), ("dst", pa.int64())])
with parquet.ParquetWriter(sys.argv[2], schema) as file, open_resources() as resources:
    for block in rmat(1, resources, scale=int(sys.argv[1]), edge_factor=16, a=0.57, b=0.19, c=0.19):
        file.write_table(pa.table({"src": block.src, "dst": block.dst}, schema=schema))
"""
_STEPS = """
import os, shutil, sys, time
from longwall.storage.generators.kinds import generate_store
from longwall.storage.ingest.ingest import ingest
from longwall.storage.memory.resources import open_resources
from longwall.storage.observer import NullObserver

kind, source, small, store = sys.argv[1:5]
cores, edges = int(sys.argv[5]), float(sys.argv[6])
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])


class Steps(NullObserver):
    def __init__(self):
        self.marks = []

    def phase(self, name, total, unit):
        self.marks.append((name, time.perf_counter(), time.process_time()))


def make(source, observer, resources):
    if kind == "generator":
        given = dict(seed=1, scale=int(source), edge_factor=16)
        generate_store("rmat", store, **given, resources=resources, observer=observer)
    else:
        ingest(source, store, resources=resources, observer=observer)
    shutil.rmtree(store)


with open_resources() as resources:
    make(small, NullObserver(), resources)  # kernels are compiled or loaded, and libraries imported
    steps = Steps()
    steps.phase("drawing and sorting" if kind == "generator" else "opening", None, "")
    make(source, steps, resources)
    steps.phase("", None, "")
whole = steps.marks[-1][1] - steps.marks[0][1]
wanted = {("text", 16): "; wanted: 25", ("generator", 16): "; wanted: 40"}.get((kind, cores), "")
print(f"{kind}, {cores} cores: {whole:.2f} s, {edges / whole / 1e6:.1f} M edges/s{wanted}")
for (name, began, used), (_, ended, used_then) in zip(steps.marks, steps.marks[1:]):
    name = "reading and sorting" if name.startswith("reading") else name
    seconds, processors = ended - began, used_then - used
    print(f"  {name:<24} {seconds:8.2f} s {processors:8.2f} s {processors / seconds:6.1f} cores")
"""


class Outcome(NamedTuple):
    """What a command took."""

    seconds: float
    peak: int
    """Largest resident set, bytes."""
    scratch: int
    """Most bytes that were in the spill folder at once."""


def main() -> None:
    """Print a table of budgets, and the floors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scale", type=int, default=20)
    parser.add_argument("--memory", action="append", help="may be repeated; unlimited, 256MiB and 1/8 of the CSR")
    parser.add_argument("--threads", help="numbers of cores, with commas; all if not given")
    parser.add_argument("--only-steps", action="store_true")
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    text = _made(folder / f"rmat-{arguments.scale}.txt", _WRITE_TEXT, arguments.scale)
    if not arguments.only_steps:
        _print_budgets(arguments, folder, text)
    kinds: list[tuple[str, object, object]] = [("generator", arguments.scale, _SMALL)]
    for kind, program in (("parquet", _WRITE_PARQUET), ("text", _WRITE_TEXT)):
        ending = kind.replace("text", "txt")
        large, small = (_made(folder / f"rmat-{scale}.{ending}", program, scale) for scale in (arguments.scale, _SMALL))
        kinds.insert(0, (kind, large, small))
    for cores in (arguments.threads or str(len(os.sched_getaffinity(0)))).split(","):
        for kind, source, small in kinds:
            words = [kind, source, small, folder.absolute() / "store", cores, 16 << arguments.scale]
            subprocess.run([sys.executable, "-c", _STEPS, *map(str, words)], check=True, cwd=folder)


def _made(path: Path, program: str, scale: int) -> Path:
    """Return a file, which a program makes if it is not there."""
    if not path.exists():
        partial = path.with_suffix(".partial")
        subprocess.run([sys.executable, "-c", program, str(scale), str(partial)], check=True)
        partial.rename(path)
    return path.absolute()


def _print_budgets(arguments: argparse.Namespace, folder: Path, text: Path) -> None:
    tiny = folder / "tiny.txt"
    tiny.write_text("1 2\n")
    lines = 16 << arguments.scale
    base = _ingest(tiny, folder, None)
    print(f"{lines:,} lines, {text.stat().st_size / 1e6:,.0f} MB of text")
    print(f"a graph of one edge: {base.seconds:.2f} s, peak {base.peak / 1e6:.0f} MB: the constant")
    print(f"{'budget':>12} {'seconds':>8} {'M lines/s':>10} {'peak MB':>8} {'less constant':>14} {'scratch MB':>11}")
    budgets: list[str | None] = arguments.memory or [None, "256MiB", "csr/8"]
    size = 0
    for budget in budgets:
        memory = str(size // 8) if budget == "csr/8" else budget
        outcome = _ingest(text, folder, memory)
        if not size:
            described = _longwall("info", folder / "store", "--json")
            size = json.loads(subprocess.run(described, check=True, capture_output=True, text=True).stdout)["bytes"]
        print(
            f"{budget or 'default':>12} {outcome.seconds:8.2f} {lines / outcome.seconds / 1e6:10.2f} "
            f"{outcome.peak / 1e6:8.0f} {(outcome.peak - base.peak) / 1e6:14.0f} {outcome.scratch / 1e6:11.0f}",
            flush=True,
        )
    print(f"the CSR has {size / 1e6:.1f} MB; csr/8 is {size / 8e6:.1f} MB")
    _print_floors(text, folder / "store")
    shutil.rmtree(folder / "store")


def _longwall(*words: object) -> list[str]:
    return [sys.executable, "-m", "longwall", *map(str, words)]


def _ingest(text: Path, folder: Path, memory: str | None) -> Outcome:
    """Ingest in a process of its own and watch it."""
    store, spill = folder / "store", folder / "spill"
    shutil.rmtree(store, ignore_errors=True)
    command = _longwall("ingest", text, store, "--quiet", "--spill", spill)
    if memory is not None:
        command += ["--memory", memory]
    most, over = [0], threading.Event()

    def watch() -> None:
        while not over.wait(_POLL_SECONDS):
            most[0] = max(most[0], _bytes_in(spill))

    watcher = threading.Thread(target=watch)
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    watcher.start()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    over.set()
    watcher.join()
    if status:
        raise SystemExit(f"{' '.join(command)} failed")
    return Outcome(seconds, usage.ru_maxrss * 1024, most[0])


def _bytes_in(folder: Path) -> int:
    size = 0
    for path in folder.rglob("*"):
        try:
            size += path.stat().st_size
        except OSError:
            continue  # gone meanwhile
    return size


def _print_floors(text: Path, store: Path) -> None:
    began = time.perf_counter()
    with text.open("rb", buffering=0) as file:
        while file.read(_PIECE):
            pass
    read = time.perf_counter() - began
    size = _bytes_in(store)
    target = store.with_name("floor")
    began = time.perf_counter()
    with target.open("wb", buffering=0) as file:
        for start in range(0, size, _PIECE):
            file.write(bytes(min(_PIECE, size - start)))
        os.fsync(file.fileno())
    written = time.perf_counter() - began
    target.unlink()
    print(f"floors: reading the text {read:.2f} s, writing and syncing the store's {size / 1e6:.0f} MB {written:.2f} s")


if __name__ == "__main__":
    main()
