"""What the access modes and GAMMA's optimisations are worth where the device's budget does not hold the graph.

    python -m benchmarks.gpu.gpu_memory --out FILE.md            # R-MAT of scale 25, made on the GPU; under 10 minutes
    python -m benchmarks.gpu.gpu_memory --graph STORE --out FILE.md
    python -m benchmarks.gpu.gpu_memory --tiny                   # scale 10, everything once

The generator is checked against the project's own building of the same edges, and every variant against the CPU
engine on a small graph, which compiles the kernels, too. Then labelled diamonds and 4-cliques are listed level by level
(the rows of the last level are counted and dropped), and edges are extended by one edge. The roots are a part of the
graph's slots, the same for all variants, in runs that are spread evenly.

All variants must find the same number of rows and the same sum of their last column: if one does not, or fails, the
exit status is 1.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.gpu.device_rmat import check_generator, labelled, rmat_graph
from benchmarks.gpu.link_counter import LinkCounter
from benchmarks.gpu.paged_report import Report
from benchmarks.gpu.paged_runs import choose_fraction, count_by_cpu, graph_bytes, measure, spread_roots
from benchmarks.gpu.paged_variants import PLAIN, RESIDENT, RIVALS, Variant
from benchmarks.gpu.paged_workloads import NAMES, Workload, plan_workloads
from benchmarks.lib.machine import describe_machine
from longwall.kernels.cuda.engine import CudaEngine
from longwall.kernels.interface.engine import EngineUnavailable
from longwall.storage.errors import InputError
from longwall.storage.graph.graph import Graph
from longwall.storage.ingest.ingest import load_graph
from longwall.storage.pages import paged_graph

BY_NVML = "bytes that NVML saw arrive"
BY_RECORD = "bytes read of pages that are away, and pages that came; for managed, pages that went back"
SHARES = (0.25, 0.10)  # of the graph's bytes, that the device's budget has
EDGE_FACTOR, LABELS = 16, 8
SMALL_SCALE, SMALL_EDGE_FACTOR, SMALL_LABELS, SMALL_LIMIT = 10, 5, 4, 120.0


def measure_all(
    graph: Graph,
    workloads: list[Workload],
    report: Report,
    link: LinkCounter,
    limits: tuple[float, float],
    seconds: float | None = None,
) -> bool:
    """Measure the workloads on a graph; gives whether nothing failed.

    Parameters
    ----------
    graph, workloads
        The graph, and what is run on it.
    report, link
        Takes the figures; counts what crosses the link.
    limits
        Seconds for one variant; the time on the monotonic clock after which none begins.
    seconds
        As many roots are taken as the adaptive variant does in about so many seconds; None: all, and all variants
        must find what the CPU engine does.
    """
    use_pages_for(graph)
    limit, deadline = limits
    roots, found, good = {}, {}, True
    for one in workloads:
        if seconds is None:
            fraction = 1.0
            found[one.name] = count_by_cpu(graph, one)
        else:
            fraction = choose_fraction(graph, one, SHARES[0], seconds, limit)
        roots[one.name] = spread_roots(graph, fraction)
        report.workloads[one.name] = {"title": one.title, "fraction": fraction}
    for share, one, variant in in_order(workloads):
        if time.monotonic() > deadline:
            say("no time left for the rest")
            break
        record = measure(graph, one, variant, share, roots[one.name], limit, link)
        report.add(record)
        shown = record.reason or f"{record.seconds:.3f} s, {record.found.rows:,} rows"
        say(f"{one.name}, {share:.0%}, {variant.name}: {shown}")
        if record.reason:
            good &= record.over_limit and seconds is not None
        elif found.setdefault(one.name, record.found) != record.found:
            say(f"FAILED: others found {found[one.name]}, this one {record.found}")
            good = False
    return good


def in_order(workloads: list[Workload]) -> Iterator[tuple[float, Workload, Variant]]:
    """Budgets, workloads and variants; what matters most comes first, since the time may not do for all."""
    for variants in (RIVALS, PLAIN):
        for share in SHARES:
            for one in workloads:
                yield from ((share, one, variant) for variant in variants if variant.plain in ("", *one.plain))
    for one in workloads:
        yield 0.0, one, RESIDENT


def use_pages_for(graph: Graph) -> None:
    """Make pages smaller, also managed ones, where the graph would have few."""
    paged_graph.PAGE_BYTES = paged_graph.page_bytes(graph.indices.size)


def say(text: str) -> None:
    """Tell how far it is."""
    print(text, file=sys.stderr, flush=True)


def _names(text: str) -> list[str]:
    if unknown := set(text.split(",")) - set(NAMES):
        raise argparse.ArgumentTypeError(f"unknown {min(unknown)!r}, known are {', '.join(NAMES)}")
    return text.split(",")


def _out(text: str) -> Path:
    path = Path(text)
    if path.suffix not in (".md", ".json") or not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"{text}: give FILE.md or FILE.json in a folder that exists")
    return path


def main() -> int:
    """Read the command line, check, measure."""
    began = time.monotonic()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=int, default=25, choices=range(6, 27), metavar="6..26", help="of R-MAT")
    parser.add_argument("--graph", type=Path, help="a store or an edge list instead")
    parser.add_argument("--workloads", type=_names, default=list(NAMES), help=",".join(NAMES))
    parser.add_argument("--seconds", type=float, default=2, help="that adaptive should take, at most (default: 2)")
    parser.add_argument("--limit", type=float, default=20, help="seconds for one variant (default: 20)")
    parser.add_argument("--time", type=float, default=520, help="seconds after which no variant begins (default: 520)")
    parser.add_argument("--out", type=_out, help="FILE.md or FILE.json; both are written")
    parser.add_argument("--tiny", action="store_true", help="try everything on a graph of scale 10")
    settings = parser.parse_args()
    deadline = began + settings.time
    try:
        engine = CudaEngine()
    except EngineUnavailable as reason:
        raise SystemExit(f"no CUDA engine: {reason}") from None
    xp, device = engine.xp, engine.device.name
    del engine
    link = LinkCounter(xp)
    check_generator(xp)
    say("checked the generator")
    small = labelled(rmat_graph(xp, SMALL_SCALE, SMALL_EDGE_FACTOR), SMALL_LABELS)
    if settings.tiny:
        title, graph = f"R-MAT {SMALL_SCALE}", small
    elif settings.graph is None:
        title, graph = f"R-MAT {settings.scale}", labelled(rmat_graph(xp, settings.scale, EDGE_FACTOR), LABELS)
    else:
        title, graph = settings.graph.name, labelled(load_graph(settings.graph), LABELS)
    say(f"{title}: {graph.num_vertices:,} vertices, {graph.num_edges:,} edges, after {time.monotonic() - began:.1f} s")
    facts = {
        "graph": f"{title}, {graph.stats.num_labels} labels",
        "vertices": graph.num_vertices,
        "edges": graph.num_edges,
        "bytes": graph_bytes(graph),
        "device": device,
        "machine": describe_machine(),
        "date": time.strftime("%Y-%m-%d"),
        "link": BY_NVML if link.works else BY_RECORD,
    }
    report = Report(settings.out, facts)
    # Planned for the graph that is measured: the check compiles what will be timed.
    workloads = [one for one in plan_workloads(graph) if one.name in settings.workloads]
    checked = report if settings.tiny else Report(None, facts)
    good = measure_all(small, workloads, checked, link, (SMALL_LIMIT, deadline))
    if good and not settings.tiny:
        good = measure_all(graph, workloads, report, link, (settings.limit, deadline), settings.seconds)
    print(report.markdown(), end="")
    return 0 if good else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except InputError as error:
        say(str(error))
        sys.exit(2)
