"""Measure how fast a graph store comes to the device: open, load, mine and the whole run, in GB/s of arrays.

    python -m benchmarks.gpu.load --scales 24 25
    python -m benchmarks.gpu.load --scales 26 --pairs 1 --device 16GiB --works triangles 4-cliques diamonds
    python -m benchmarks.gpu.load --scales 8 --pairs 1          # to try it

A store of a small graph is loaded first: the arrays on the device must be those on the host, and triangles those that
SciPy's sparse matrices give. Then R-MAT graphs are made on the device, edge factor 16, and written. Each run is in a
fresh process: `longwall.run` of triangles (or `--works`) as a whole, with `--device` as `memory.device`, and once more
step by step, with the seconds that all threads together take to decode, hash, check and copy. The rate of the link is
that of copies from page-locked memory.
"""

import argparse
import json
import shutil
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.lib.measure import call

_LINK = 1 << 28  # bytes of a copy that measures the link
_WORKS: dict[str, dict[str, Any]] = {
    "triangles": {"kind": "triangles"},
    "4-cliques": {"kind": "cliques", "k": 4},
    "diamonds": {"kind": "match", "pattern": "diamond"},
}
GB = 1e9


def make(store: str, scale: int, edge_factor: int) -> dict[str, Any]:
    """Make a store, on the device."""
    import cupy

    from benchmarks.gpu.device_rmat import rmat_graph
    from longwall.storage.graph.store_writer import write_graph

    start = time.perf_counter()
    graph = rmat_graph(cupy, scale, edge_factor)
    made = time.perf_counter()
    write_graph(graph, store)
    disk = sum(file.stat().st_size for file in Path(store).rglob("*") if file.is_file())
    wrote = time.perf_counter() - made
    return {"edges": graph.num_edges, "bytes": graph.nbytes, "disk": disk, "make": made - start, "write": wrote}


def check(store: str) -> dict[str, Any]:
    """Compare what is on the device with what is on the host, and the triangles with SciPy's; return what differs."""
    from scipy.sparse import csr_array

    import longwall
    from longwall.pipeline.config import load_config
    from longwall.pipeline.inputs import open_resources, read_graph
    from longwall.stages.source import host_arrays
    from longwall.storage.observer import NullObserver
    from longwall.storage.pages.placement import bring_graph, place_graph

    different = []
    with tempfile.TemporaryDirectory() as folder:
        spec = load_config(_config(store, folder), ())
        with open_resources(spec) as resources:
            graph = read_graph(spec, NullObserver(), resources)
            host = host_arrays(graph)
            there = bring_graph(host, resources, place_graph(host, resources, "auto")).graph
            for name in ("indptr", "indices", "split", "labels"):
                if not np.array_equal(getattr(there, name).get(), getattr(host, name)):
                    different.append(name)
        adjacency = csr_array((np.ones(graph.indices.size, np.int64), graph.indices, graph.indptr))
        triangles = int((adjacency @ adjacency).multiply(adjacency).sum()) // 6
        with tempfile.TemporaryDirectory() as other:
            found = longwall.run(_config(store, other)).count
        if found != triangles:
            different.append(f"{found} triangles, not {triangles},")
    return {"different": different, "triangles": triangles}


def link() -> dict[str, float]:
    """Measure copies of page-locked memory to the device, and what it takes to lock memory; GB/s."""
    import cupy

    there = cupy.empty(_LINK, cupy.uint8)
    here = cupy.cuda.alloc_pinned_memory(_LINK)
    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    rates = []
    for _ in range(5):
        start.record()
        there.data.copy_from_host_async(here.ptr, _LINK, cupy.cuda.get_current_stream())
        end.record()
        end.synchronize()
        rates.append(_LINK / GB / (cupy.cuda.get_elapsed_time(start, end) / 1e3))
    touched = np.ones(_LINK, np.uint8)
    began = time.perf_counter()
    cupy.cuda.runtime.hostRegister(touched.ctypes.data, _LINK, 1)
    locked = _LINK / GB / (time.perf_counter() - began)
    began = time.perf_counter()
    cupy.asarray(touched)
    cupy.cuda.runtime.deviceSynchronize()
    return {"link": max(rates), "lock": locked, "CuPy's copy": _LINK / GB / (time.perf_counter() - began)}


def whole(store: str, folder: str, work: str, device: str) -> dict[str, Any]:
    """Run a work; return the count and the seconds."""
    import longwall

    start = time.perf_counter()
    result = longwall.run(_config(store, folder, work, device))
    return {"work": work, "count": result.count, "run": time.perf_counter() - start, **result.timings}


def steps(store: str) -> dict[str, Any]:
    """Open a store and load it, with the seconds that all threads take for each part."""
    from longwall.kernels.cuda.runtime import pinned_buffers
    from longwall.kernels.cuda.runtime.open_device import open_device
    from longwall.pipeline.config import load_config
    from longwall.pipeline.inputs import open_resources, read_graph
    from longwall.stages.source import host_arrays
    from longwall.storage.arrays import array_reader
    from longwall.storage.graph import graph_checks, row_checks
    from longwall.storage.observer import NullObserver
    from longwall.storage.pages import placement
    from longwall.storage.pages.placement import bring_graph, place_graph

    seconds: dict[str, float] = defaultdict(float)
    lock = threading.Lock()

    def timed(owner: Any, method: str, name: str) -> None:
        made: Callable[..., Any] = getattr(owner, method)

        def around(*arguments: Any, **options: Any) -> Any:
            start = time.perf_counter()
            try:
                return made(*arguments, **options)
            finally:
                with lock:
                    seconds[f"threads: {name}"] += time.perf_counter() - start

        setattr(owner, method, around)

    timed(array_reader.StoredArray, "read", "read, decode and hash")
    timed(array_reader, "read_into", "of these, read")
    timed(array_reader, "decode_chunks", "of these, decode and hash")
    timed(graph_checks.GraphChecks, "examine", "check items")
    timed(row_checks.RowChecks, "check", "check rows")
    timed(placement, "_check_rows", "check rows on the device")
    timed(pinned_buffers.StagedCopies, "_put", "copy to the device")
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        spec = load_config(_config(store, folder), ())
        open_device()
        with open_resources(spec) as resources:
            resources.engine  # noqa: B018 - opens it
            seconds["device"] = time.perf_counter() - start
            start = time.perf_counter()
            graph = read_graph(spec, NullObserver(), resources)
            seconds["open"] = time.perf_counter() - start
            start = time.perf_counter()
            host = host_arrays(graph)
            there = bring_graph(host, resources, place_graph(host, resources, "auto")).graph
            resources.engine.xp.cuda.runtime.deviceSynchronize()
            seconds["load"] = time.perf_counter() - start
            sizes = {"bytes": graph.nbytes, "there": sum(a.nbytes for a in (there.indptr, there.indices, there.split))}
    return dict(seconds) | sizes


def _config(store: str, folder: str, work: str = "triangles", device: str = "auto") -> dict[str, Any]:
    memory = {"memory": {"spill": f"{folder}/spill", "device": device}}
    run = {"run": {"directory": folder, "name": "run"}}
    return {"graph": {"path": store}, "workload": _WORKS[work], "engine": {"kind": "cuda"}} | memory | run


def _facts(outcome: Any, what: str) -> dict[str, Any]:
    if outcome.status != "done":
        raise SystemExit(f"{what}: {outcome.status}: {outcome.reason}")
    found: dict[str, Any] = outcome.value
    return found


def _text(facts: dict[str, Any]) -> str:
    return ", ".join(
        f"{name} {value:.3f}" if isinstance(value, float) else f"{name} {value:,}" if isinstance(value, int) else value
        for name, value in facts.items()
    )


def main() -> None:
    """Check, then measure, and print what is known as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scales", type=int, nargs="+", default=[24, 25])
    parser.add_argument("--edge-factor", type=int, default=16)
    parser.add_argument("--works", nargs="+", default=["triangles"], choices=list(_WORKS))
    parser.add_argument("--device", default="auto", help="memory.device of the whole runs")
    parser.add_argument("--pairs", type=int, default=2, help="whole runs of each graph, and runs in steps")
    parser.add_argument("--limit", type=float, default=240.0, metavar="S", help="seconds that a process may take")
    parser.add_argument("--work", default=tempfile.gettempdir(), help="folder on a local disk for graphs and runs")
    options = parser.parse_args()

    def ask(what: str, **arguments: Any) -> dict[str, Any]:
        found = _facts(call(f"benchmarks.gpu.load:{what}", options.limit, **arguments), what)
        print(f"{what}: {_text(found) if what != 'check' else json.dumps(found)}", flush=True)
        return found

    pages = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    print(f"huge pages: {pages.read_text().strip() if pages.exists() else 'unknown'}", flush=True)
    with tempfile.TemporaryDirectory(dir=options.work) as place:
        ask("make", store=f"{place}/small.zarr", scale=8, edge_factor=8)
        if ask("check", store=f"{place}/small.zarr")["different"]:
            raise SystemExit("the small graph is not what it should be on the device")
        rate = ask("link")["link"]
        for scale in options.scales:
            store = f"{place}/{scale}.zarr"
            print(f"R-MAT {scale}", flush=True)
            ask("make", store=store, scale=scale, edge_factor=options.edge_factor)
            counts = set()
            for number in range(options.pairs):
                for work in options.works:
                    folder = f"{place}/runs-{scale}-{number}-{work}"
                    found = ask("whole", store=store, folder=folder, work=work, device=options.device)
                    counts.add((work, found["count"]))
                found = ask("steps", store=store)
                there = found["there"] / GB
                opened, loaded = found["bytes"] / GB / found["open"], there / found["load"]
                print(
                    f"  open {opened:.1f} GB/s, load {loaded:.1f} GB/s ({loaded / rate:.0%} of the link), both "
                    f"{there / (found['open'] + found['load']):.1f} GB/s",
                    flush=True,
                )
            if len(counts) != len(options.works):
                raise SystemExit(f"counts differ: {sorted(counts)}")
            shutil.rmtree(store)


if __name__ == "__main__":
    sys.exit(main())
