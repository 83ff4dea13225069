"""Compare a listing with the time in which pyarrow writes the same table, and with batches that come to Python.

    python -m benchmarks.suites.listings [--scale 16] [--edge-factor 16] [--maximal-cliques] [--repeat 10]

The graph is an R-MAT one, in a store; the engine is the CPU. Seconds on the clock and of the processors are the least
of the repetitions. Two threads write half of the rows each with pyarrow, once they are in memory.
"""

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Any

_THREADS = 2


def least(work: Callable[[int], object], repeat: int) -> tuple[float, float]:
    """Return the least seconds on the clock, and of the processors; the first time does not count."""
    found = []
    for number in range(repeat + 1):
        clock, processors = time.perf_counter(), time.process_time()
        work(number)
        found.append((time.perf_counter() - clock, time.process_time() - processors))
    return min(clock for clock, _ in found[1:]), min(processors for _, processors in found[1:])


def write_halves(table: Any, folder: Path, **options: Any) -> None:
    """Write a table by pyarrow."""
    import pyarrow.parquet as pq

    cuts = [len(table) * number // _THREADS for number in range(_THREADS + 1)]
    threads = [
        Thread(target=pq.write_table, args=(table.slice(a, b - a), folder / f"floor-{a}.parquet"), kwargs=options)
        for a, b in pairwise(cuts)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def size(files: Any) -> float:
    """Return the megabytes of files."""
    return sum(file.stat().st_size for file in files) / 1e6


def main() -> None:
    """Measure, and print a table."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    import longwall
    from longwall.storage.graph.store_writer import write_graph

    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--scale", type=int, default=16)
    options.add_argument("--edge-factor", type=int, default=16)
    options.add_argument("--maximal-cliques", action="store_true")
    options.add_argument("--repeat", type=int, default=10)
    given = options.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="listings"))
    try:
        graph = longwall.generate_graph("rmat", scale=given.scale, edge_factor=given.edge_factor, seed=1)
        write_graph(graph, folder / "store")
        config = {
            "graph": {"path": str(folder / "store")},
            "workload": {"kind": "maximal-cliques" if given.maximal_cliques else "triangles", "output": "embeddings"},
            "engine": {"kind": "cpu"},
        }

        def run(number: int) -> None:
            longwall.run(config | {"run": {"directory": str(folder), "name": str(number), "report": False}})

        def stream(_: int) -> None:
            find = (
                longwall.maximal_cliques
                if given.maximal_cliques
                else lambda *a, **b: longwall.match(a[0], "triangle", **b)
            )
            for _batch in find(graph, engine="cpu"):
                pass

        times = {"listing": least(run, given.repeat)}
        files = sorted((folder / str(given.repeat) / "results").glob("embeddings-*.parquet"))
        sizes = {"listing": size(files)}
        table = pa.concat_tables([pq.read_table(file) for file in files]).combine_chunks()
        for name, dictionaries in (("pyarrow, no dictionaries", False), ("pyarrow, dictionaries", True)):
            kinds = {"compression": "zstd", "use_dictionary": dictionaries}
            times[name] = least(lambda _, kinds=kinds: write_halves(table, folder, **kinds), given.repeat)
            sizes[name] = size(folder.glob("floor-*.parquet"))
        times["batches"] = least(stream, given.repeat)
        print(f"{len(table):,} rows")
        for name, (clock, processors) in times.items():
            rate, stored = len(table) / clock / 1e6, f"{sizes[name]:.1f} MB" if name in sizes else ""
            print(f"{name:25} {clock:.3f} s, {processors:.3f} s of processors, {rate:.1f} million rows/s  {stored}")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
