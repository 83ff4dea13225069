"""Write, open and check a graph store on some numbers of cores, beside what each step alone takes.

    python -m benchmarks.suites.store FOLDER [--scale 22] [--edge-factor 16] [--threads 2,16] [--repeat 3]

The folder keeps a store (R-MAT, seed 1) for the next time. Speeds are bytes of arrays in memory a second, the best of
the repetitions, with the seconds of processors in brackets: on a busy machine these say more. Everything is read from
the page cache; what is written is synced to the disk. The graph that was written last is opened and compared.

"memory" copies arrays, "plain read" reads the store's files, "digest", "encode", "decode" and "rows" do one step each
with what is in memory already. Opening does all but "encode"; writing digests, encodes and writes.
"""

import argparse
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.lib.machine import describe_machine
from longwall.storage.arrays.array_hash import ArrayHash
from longwall.storage.arrays.array_reader import StoredArray
from longwall.storage.arrays.blosc_chunks import decode_chunk
from longwall.storage.arrays.layout import BLOSC, CHUNK_BYTES
from longwall.storage.generators.kinds import generate_store
from longwall.storage.graph.graph import Graph
from longwall.storage.graph.graph_store import describe_store, open_store
from longwall.storage.graph.row_checks import RowChecks
from longwall.storage.graph.store_header import DTYPES
from longwall.storage.system.concurrency import core_count, map_all

_PIECE = 2**20
_WANTED = {("write", 16): 2.5, ("open", 16): 5.0, ("open", 2): 1.2}  # GB/s, by the number of cores


@contextmanager
def on_cores(count: int) -> Iterator[None]:
    """Let this process use so many cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


class Clock:
    """Prints how fast something is.

    Parameters
    ----------
    repeat
        How often each thing is done.
    nbytes
        What is worked on.
    """

    def __init__(self, repeat: int, nbytes: int) -> None:
        self._repeat, self._nbytes = repeat, nbytes

    def measure(self, what: str, work: Callable[[], object], nbytes: int | None = None) -> None:
        """Do it, and print a line."""
        best, processors = float("inf"), float("inf")
        for _ in range(self._repeat):
            began, used = time.perf_counter(), time.process_time()
            work()
            best = min(best, time.perf_counter() - began)
            processors = min(processors, time.process_time() - used)
        speed = (self._nbytes if nbytes is None else nbytes) / best / 1e9
        wanted = _WANTED.get((what, core_count()))
        note = f"  wanted: {wanted} GB/s" if wanted else ""
        print(f"  {what:<12} {speed:7.2f} GB/s {best:8.3f} s  ({processors:.3f} s){note}", flush=True)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scale", type=int, default=22)
    parser.add_argument("--edge-factor", type=int, default=16)
    parser.add_argument("--threads", help="numbers of cores, with commas; all if not given")
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"rmat-{arguments.scale}-{arguments.edge_factor}.zarr"
    if not path.exists():
        generate_store("rmat", path, seed=1, scale=arguments.scale, edge_factor=arguments.edge_factor)
    graph = open_store(path)
    print(json.dumps(describe_machine()))
    files = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    print(f"{graph.num_vertices:,} vertices, {graph.num_edges:,} edges: {graph.nbytes:,} bytes, {files:,} in the store")
    for count in map(int, (arguments.threads or str(core_count())).split(",")):
        with on_cores(count):
            print(f"{core_count()} cores")
            _floors(graph, path, Clock(arguments.repeat, graph.indices.nbytes))
            _store(graph, path, folder, Clock(arguments.repeat, graph.nbytes))


def _store(graph: Graph, path: Path, folder: Path, clock: Clock) -> None:
    copy = folder / "copy.zarr"

    def write() -> None:
        shutil.rmtree(copy, ignore_errors=True)
        graph.save(copy)

    clock.measure("write", write)
    written = open_store(copy)
    assert written.content_hash == graph.content_hash
    for name in DTYPES:
        assert np.array_equal(getattr(written, name), getattr(graph, name)), name
    del written
    shutil.rmtree(copy)
    clock.measure("open", lambda: open_store(path))
    clock.measure("check", lambda: describe_store(path))


def _floors(graph: Graph, path: Path, clock: Clock) -> None:
    """What can be done at best with the neighbours."""
    from numcodecs.blosc import Blosc

    array, workers = graph.indices, core_count()
    size = CHUNK_BYTES // array.itemsize
    starts = list(range(0, len(array), size))
    target = np.empty_like(array)
    files = [file for file in (path / "indices" / "c").iterdir() if file.is_file()]
    codec = Blosc(**BLOSC, shuffle=Blosc.SHUFFLE)
    rows = RowChecks(graph.indptr, graph.split, graph.transactions)
    hashed = ArrayHash(array.dtype, len(array))
    encoded: dict[int, bytes] = {}

    def copy(start: int) -> None:
        target[start : start + size] = array[start : start + size]

    def read(file: Path) -> None:
        with file.open("rb", buffering=0) as opened:
            buffer = bytearray(_PIECE)
            while opened.readinto(buffer):
                pass

    def encode(start: int) -> None:
        encoded[start] = codec.encode(array[start : start + size])

    def decode(start: int) -> None:
        decode_chunk(encoded[start], target[start : start + size], "a chunk")

    with ThreadPoolExecutor(workers) as pool:

        def all_of(work: Callable[[Any], object], items: list[Any]) -> Callable[[], object]:
            return lambda: map_all(pool, workers, work, items)

        clock.measure("memory", all_of(copy, starts))
        clock.measure("plain read", all_of(read, files), sum(file.stat().st_size for file in files))
        clock.measure("digest", all_of(lambda start: hashed.put(start, array[start : start + size]), starts))
        clock.measure("encode", all_of(encode, starts))
        clock.measure("decode", all_of(decode, starts))
        assert np.array_equal(array, target)
        stored = StoredArray(path, "indices", array.dtype, len(array))
        clock.measure(
            "read, decode", all_of(lambda block: stored.read(block[0], target[slice(*block)]), stored.blocks())
        )
        clock.measure("rows", all_of(lambda start: rows.check(start, array[start : start + size]), starts))


if __name__ == "__main__":
    main()
