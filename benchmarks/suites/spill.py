"""Spilling: the codecs, the throughput beside that of plain writes, and the memory of a large 3-edge e-ET.

    python -m benchmarks.suites.spill [--folder DIR] [--budget SIZE] [--skip codecs,throughput,memory]

Throughput: chunks of real tables are spilled by one and by two threads, then the same number of random bytes is
written to files of the same sizes in the same folder; both are synced, so that the disk counts and not the page
cache. The memory is that of a child process, looked at from outside every 20 ms; what the same child takes for a tiny
graph, interpreter and libraries included, is the constant that comes on top of the budget.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

CODECS = [
    ("none", {"cname": "lz4", "clevel": 0, "shuffle": 0}),
    ("lz4", {"cname": "lz4", "clevel": 1, "shuffle": 0}),
    ("lz4 + shuffle", {"cname": "lz4", "clevel": 1, "shuffle": 1}),
    ("lz4 + bitshuffle", {"cname": "lz4", "clevel": 1, "shuffle": 2}),
    ("zstd-1", {"cname": "zstd", "clevel": 1, "shuffle": 0}),
    ("zstd-1 + shuffle", {"cname": "zstd", "clevel": 1, "shuffle": 1}),
    ("zstd-1 + bitshuffle", {"cname": "zstd", "clevel": 1, "shuffle": 2}),
]
CHUNKS = 8
UNBOOKED = 16 << 20
"""Bytes beside the budget: the C library keeps 4 MiB of freed memory per thread, the codec's scratch is not booked."""

_CHILD = """
import sys, longwall
def grow(scale, memory):
    graph = longwall.generate_graph("rmat", seed=1, scale=scale, edge_factor=8, a=0.57, b=0.19, c=0.19)
    with longwall.extend_edges(longwall.extend_edges(longwall.edges(graph, memory=memory, spill=sys.argv[3]))) as table:
        print(len(table), table.table.nbytes, table.table.stored, flush=True)
        return longwall.aggregate(table)
grow(4, sys.argv[2])
if int(sys.argv[1]):
    grow(int(sys.argv[1]), sys.argv[2])
"""


def tables() -> dict[str, Any]:
    """Chunks of three kinds of tables on R-MAT 14, of 16 to 40 MiB."""
    import longwall
    from longwall.stages.extension.unguided_edges import extend_by_edge
    from longwall.stages.extension.unguided_vertices import extend_by_vertex
    from longwall.storage.tables.embedding_table import concatenated

    graph = longwall.generate_graph("rmat", seed=1, scale=14, edge_factor=16, a=0.57, b=0.19, c=0.19)
    wedges = longwall.extend_vertices(longwall.vertices(graph), [0])
    ordered = longwall.filter(wedges, lambda columns, graph, xp: columns[1] < columns[0])
    for _ in range(2):
        level = ordered.table.num_levels
        ordered = longwall.extend_vertices(ordered, list(range(level)))
        ordered = longwall.filter(ordered, lambda columns, graph, xp: columns[-1] < columns[-2])
        if level == 2:
            ordered = longwall.filter(ordered, lambda columns, graph, xp: columns[0] % 4 == 0)
    cliques = concatenated(list(ordered.table.stream()))
    edges = longwall.edges(graph)
    with wedges.table.chunk(0) as part, edges.table.chunk(0) as first:
        three = concatenated(list(extend_by_vertex(part.sliced(60_000, 70_000), edges.arrays, [0], 1 << 28)))
        grown = first.sliced(100_000, 101_000)
        for rows in (1_000, 5_000):
            parts = extend_by_edge(grown.sliced(0, rows), edges.arrays, edges.session.engine, 1 << 28)
            grown = concatenated(list(parts))
    return {"4-cliques": cliques.sliced(0, 6_000_000), "wedges": three, "3-edge e-ET": grown}


def timed(work: Callable[[int], Any], threads: int) -> tuple[float, list[Any]]:
    """Seconds of `CHUNKS` calls by so many threads, and what they gave."""
    with ThreadPoolExecutor(threads) as pool:
        began = time.perf_counter()
        results = list(pool.map(work, range(CHUNKS)))
        return time.perf_counter() - began, results


def throughput(folder: Path, codecs: list[tuple[str, dict[str, Any]]]) -> None:
    """Print a table of ratios and rates; the rates of the median of three rounds."""
    from longwall.storage.arrays import blosc_chunks
    from longwall.storage.memory.reservations import MemoryBudget
    from longwall.storage.tables import chunk_file

    print("| table | codec | threads | ratio | write, MB/s of table | read | stored MB/s | plain write MB/s | share |")
    print("|---|---|---|---|---|---|---|---|---|")
    disk = MemoryBudget("memory.disk", 1 << 40)
    for name, table in tables().items():
        for codec, options in codecs:
            chunk_file._BLOSC.update(options)
            blosc_chunks._LZ4 = {"lz4": 1, "zstd": 4}[options["cname"]]  # Longwall itself reads no others
            for threads in (1, 2):
                rounds = []
                for _ in range(3):

                    def spill(i: int, table: Any = table) -> Any:
                        return chunk_file.write_chunk(table, folder / f"{i}", disk, sync=True)

                    written, records = timed(spill, threads)
                    read, _ = timed(lambda i: len(chunk_file.read_chunk(folder / f"{i}")), threads)
                    for i, record in enumerate(records):
                        chunk_file.remove_chunk(folder / f"{i}", record, disk)
                    data = os.urandom(records[0].stored)

                    def plain(i: int, data: bytes = data) -> None:
                        with (folder / f"plain-{i}").open("wb", buffering=0) as file:
                            file.write(data)
                            os.fsync(file.fileno())

                    plainly, _ = timed(plain, threads)
                    for i in range(CHUNKS):
                        (folder / f"plain-{i}").unlink()
                    rounds.append((written, read, plainly))
                written, read, plainly = (statistics.median(column) for column in zip(*rounds, strict=True))
                stored, size = CHUNKS * len(data), CHUNKS * table.nbytes
                print(
                    f"| {name} | {codec} | {threads} | {size / stored:.1f} | {size / written / 1e6:,.0f} "
                    f"| {size / read / 1e6:,.0f} | {stored / written / 1e6:,.0f} | {stored / plainly / 1e6:,.0f} "
                    f"| {plainly / written:.0%} |",
                    flush=True,
                )


def peak_of(scale: int, budget: str, folder: Path) -> tuple[int, float, list[int]]:
    """Largest resident size of a child that grows a 3-edge e-ET, its seconds, and the rows and bytes that it made."""
    import psutil

    began = time.perf_counter()
    child = subprocess.Popen(
        [sys.executable, "-c", _CHILD, str(scale), budget, str(folder / "spill")], stdout=subprocess.PIPE, text=True
    )
    process, peak = psutil.Process(child.pid), 0
    while child.poll() is None:
        try:
            peak = max(peak, process.memory_info().rss)
        except psutil.NoSuchProcess:
            break
        time.sleep(0.02)
    lines = child.communicate()[0].splitlines()
    if child.returncode:
        raise SystemExit(f"the child failed with {child.returncode}")
    return peak, time.perf_counter() - began, [int(word) for word in lines[-1].split()]


def memory(folder: Path, budget: str, scale: int) -> bool:
    """Whether a 3-edge e-ET of many times the budget stays inside budget + constant."""
    from longwall.storage.memory.sizes import parse_size

    constant, _, _ = peak_of(0, budget, folder)
    peak, seconds, (rows, size, stored) = peak_of(scale, budget, folder)
    limit = parse_size(budget) + constant + UNBOOKED
    figures = {
        "rows": rows,
        "table MiB": size >> 20,
        "times the budget": round(size / parse_size(budget), 1),
        "stored MiB": stored >> 20,
        "seconds": round(seconds, 1),
        "constant MiB": constant >> 20,
        "unbooked MiB": UNBOOKED >> 20,
        "peak MiB": peak >> 20,
        "limit MiB": limit >> 20,
        "inside": peak <= limit,
    }
    print(json.dumps(figures))
    return peak <= limit


def main() -> None:
    """Run what was not skipped; exit with 1 if the memory was not kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("spill-benchmark"))
    parser.add_argument("--budget", default="64MiB")
    parser.add_argument("--scale", type=int, default=10)
    parser.add_argument("--skip", default="")
    options = parser.parse_args()
    skipped = options.skip.split(",")
    options.folder.mkdir(parents=True)
    try:
        if "throughput" not in skipped:
            throughput(options.folder, CODECS[2:3] if "codecs" in skipped else CODECS)
        if "memory" not in skipped and not memory(options.folder, options.budget, options.scale):
            sys.exit(1)
    finally:
        shutil.rmtree(options.folder)


if __name__ == "__main__":
    main()
