"""Time ways of counting the triangles of small graphs on the device, after checking them.

    python -m benchmarks.gpu.triangle_variants [--graphs ca-AstroPh.edges.gz] [--scales 10 13 14 16] [--time 60]

Every way must find what the CPU engine finds. Columns: microseconds of the kernel alone, which is launched while
another one keeps the device busy; of a launch by events, the host's part included; and of the host for a launch.
Medians.
"""

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any, NamedTuple
from unittest.mock import patch

from benchmarks.gpu.gpu_kernels import arrays
from longwall.kernels.cpu.engine import CpuEngine
from longwall.kernels.cuda.device import WARP, fetch_sum
from longwall.kernels.cuda.engine import CudaEngine
from longwall.kernels.cuda.homomorphisms.diamonds import RowPairs
from longwall.kernels.cuda.local_counts import triangles
from longwall.kernels.cuda.local_counts.reverse_adjacency import LargerArcs
from longwall.kernels.cuda.runtime import compile as compiler
from longwall.storage.generators.kinds import generate
from longwall.storage.graph.graph import Graph
from longwall.storage.ingest.ingest import load_graph

_RUNS = 30
_MOST_OUT = 512  # smaller neighbours with which a table still fits
_BUSY = """extern "C" __global__ void keep_busy(long long cycles) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {}
}"""
_CYCLES = 1_500_000


class Variant(NamedTuple):
    """How the kernel of short lists differs from that in use; `ahead` 0 stands for the kernel of bitmaps."""

    ahead: int = 0
    share: int = 4
    blocks: int = 6


VARIANTS = [Variant(), Variant(4), Variant(1), Variant(8, blocks=4), Variant(4, share=2), Variant(4, share=8)]


@contextmanager
def in_place(variant: Variant) -> Iterator[None]:
    """Compile the kernel as the variant says."""
    text = compiler.source_text

    def changed(name: str, generated: str = "") -> tuple[str, tuple[str, ...]]:
        code, options = text(name, generated)
        if name == "local_counts/warp_triangles.cu":
            for old, new in (
                ("kAhead = 4;", f"kAhead = {variant.ahead};"),
                ("table_slots(degree, kTableShare)", f"table_slots(degree, {variant.share})"),
                ("__launch_bounds__(256, 6)", f"__launch_bounds__(256, {variant.blocks})"),
            ):
                assert old in code
                code = code.replace(old, new)
        return code, options

    forget = compiler.forget

    compiler.source_text = changed
    forget()
    try:
        with patch.multiple(triangles, _SHORT_BLOCKS=variant.blocks, TABLE_SHARE=variant.share):
            yield
    finally:
        compiler.source_text = text
        forget()


class Blocks:
    """Triangles by bitmaps of blocks."""

    def __init__(self, device: Any, graph: Any):
        larger = LargerArcs.of_whole(device, graph)
        self._rows = RowPairs(device, graph, "count_triangles", larger.tasks(device, graph))
        self._vertices = 0, graph.num_vertices

    def start(self, first: int, last: int) -> Any:
        """Launch the kernel; see `RowPairs.start`."""
        return self._rows.start(first, last, *self._vertices)


def measured(engine: CudaEngine, launch: Any, num_arcs: int, busy: Any) -> tuple[float, float, float]:
    """Return microseconds of the kernel alone, by events with the host's part, and of the host."""
    xp = engine.xp

    def between(*, queued: bool) -> float:
        before, after = xp.cuda.Event(), xp.cuda.Event()
        if queued:
            busy((1,), (WARP,), (_CYCLES,))
        before.record()
        launch.start(0, num_arcs)
        after.record()
        after.synchronize()
        return 1e3 * float(xp.cuda.get_elapsed_time(before, after))

    alone = median(between(queued=True) for _ in range(_RUNS))
    whole = median(between(queued=False) for _ in range(_RUNS))
    host = []
    for _ in range(_RUNS):
        began = time.perf_counter()
        launch.start(0, num_arcs)
        host.append(1e6 * (time.perf_counter() - began))
        engine.device.synchronize()
    return alone, whole, median(host)


def compare(title: str, graph: Graph, end: float) -> None:
    """Print a line for every way."""
    cpu, engine = CpuEngine(), CudaEngine()
    expected = cpu.kernels.triangle_counter(cpu.device, cpu.load(arrays(graph)), 1 << 30).count(0, 2 * graph.num_edges)
    loaded = engine.load(arrays(graph))
    longest = graph.stats.max_out_degree
    print(f"{title}: {graph.num_edges:,} edges, {longest} smaller neighbours at most, {expected:,}", flush=True)
    busy = engine.xp.RawKernel(_BUSY, "keep_busy", backend="nvrtc")
    print(f"{'':<40}{'alone us':>10}{'events us':>10}{'host us':>10}", flush=True)
    for variant in VARIANTS:
        if time.perf_counter() > end:
            raise SystemExit("out of time")
        if variant.ahead and longest > _MOST_OUT:
            continue
        with in_place(variant):
            launch: Any = (triangles.ShortTriangles if variant.ahead else Blocks)(engine.device, loaded)
            for first, last in ((0, loaded.num_arcs), (loaded.num_arcs // 3, loaded.num_arcs), (0, loaded.num_arcs)):
                found = fetch_sum(launch.start(first, last))
                if last - first == loaded.num_arcs and found != expected:
                    raise SystemExit(f"{title}, {variant}: {found}, not {expected}")
            name = f"{variant}" if variant.ahead else "bitmaps of blocks"
            times = measured(engine, launch, loaded.num_arcs, busy)
            print(f"{name:<40}" + "".join(f"{one:10.1f}" for one in times), flush=True)


def main() -> None:
    """Compare all ways on every graph."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="*", default=[])
    parser.add_argument("--scales", type=int, nargs="*", default=[10, 13, 14, 16])
    parser.add_argument("--time", type=float, default=60, help="seconds after which nothing more is begun")
    options = parser.parse_args()
    end = time.perf_counter() + options.time
    for path in options.graphs:
        compare(path.rpartition("/")[2], load_graph(path), end)
    for scale in options.scales:
        compare(f"rmat-{scale}", generate("rmat", seed=1, scale=scale, edge_factor=16), end)


if __name__ == "__main__":
    main()
