"""What the access modes and GAMMA's optimisations are worth where the device's budget does not hold the graph.

    python -m benchmarks.gpu.gpu_memory --out FILE.md            # R-MAT of scale 25, made on the GPU; under 10 minutes
    python -m benchmarks.gpu.gpu_memory --graph STORE --out FILE.md
    python -m benchmarks.gpu.gpu_memory --tiny                   # scale 10, everything once
    python -m benchmarks.gpu.gpu_memory --workloads edges --cache 0.1 --variants adaptive,zero-copy+unordered --steps

The last one measures one goal, and says where the time of both variants goes; `--seconds 0.6 --limit 8 --time 40`
bounds it.

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
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

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
VARIANTS = {variant.name: variant for variant in (*RIVALS, *PLAIN, RESIDENT)}
EDGE_FACTOR, LABELS = 16, 8
_PAGE_BYTES = paged_graph.PAGE_BYTES  # of large graphs
SMALL_SCALE, SMALL_EDGE_FACTOR, SMALL_LABELS, SMALL_LIMIT = 10, 5, 4, 120.0


class Scope(NamedTuple):
    """What is measured of every workload, and for how long."""

    shares: list[float]
    """Of the graph's bytes, that the device's budget has."""
    variants: list[str]
    limit: float
    """Seconds for one variant."""
    deadline: float
    """The time on the monotonic clock after which none begins."""
    steps: bool
    """Whether steps are timed."""


def measure_all(
    graph: Graph,
    workloads: list[Workload],
    report: Report,
    link: LinkCounter,
    scope: Scope,
    seconds: float | None = None,
) -> bool:
    """Measure the workloads on a graph; gives whether nothing failed.

    Parameters
    ----------
    graph, workloads
        The graph, and what is run on it.
    report, link
        Takes the figures; counts what crosses the link.
    scope
        What is measured.
    seconds
        As many roots are taken as the adaptive variant does in about so many seconds; None: all, and all variants
        must find what the CPU engine does.
    """
    use_pages_for(graph)
    limit = scope.limit
    roots, found, good = {}, {}, True
    for one in workloads:
        if seconds is None:
            fraction = 1.0
            found[one.name] = count_by_cpu(graph, one)
        else:
            fraction = choose_fraction(graph, one, scope.shares[0], seconds, limit)
        roots[one.name] = spread_roots(graph, fraction)
        report.workloads[one.name] = {"title": one.title, "fraction": fraction}
    for share, one, variant in in_order(workloads, scope):
        if time.monotonic() > scope.deadline:
            say("no time left for the rest")
            break
        record = measure(graph, one, variant, share, roots[one.name], limit, link, steps=scope.steps)
        report.add(record)
        shown = record.reason or f"{record.seconds:.3f} s, {record.found.rows:,} rows"
        say(f"{one.name}, {share:.0%}, {variant.name}: {shown}")
        if record.steps:
            say("  " + ", ".join(f"{name} {spent:.3f} s" for name, spent in record.steps.items()))
        if record.reason:
            good &= record.over_limit and seconds is not None
        elif found.setdefault(one.name, record.found) != record.found:
            say(f"FAILED: others found {found[one.name]}, this one {record.found}")
            good = False
    return good


def in_order(workloads: list[Workload], scope: Scope) -> Iterator[tuple[float, Workload, Variant]]:
    """Budgets, workloads and variants; what matters most comes first, since the time may not do for all."""
    for variants in (RIVALS, PLAIN):
        for share in scope.shares:
            for one in workloads:
                wanted = [variant for variant in variants if variant.name in scope.variants]
                yield from ((share, one, variant) for variant in wanted if variant.plain in ("", *one.plain))
    if RESIDENT.name in scope.variants:
        yield from ((0.0, one, RESIDENT) for one in workloads)


def use_pages_for(graph: Graph) -> None:
    """Make pages smaller, also managed ones, where the graph would have few; and large again for the next graph."""
    paged_graph.PAGE_BYTES = _PAGE_BYTES
    paged_graph.PAGE_BYTES = paged_graph.page_bytes(graph.indices.size)


def say(text: str) -> None:
    """Tell how far it is."""
    print(text, file=sys.stderr, flush=True)


def _some_of(names: Iterable[str]) -> Callable[[str], list[str]]:
    """The type of an option: some of the names, with commas between."""
    known = list(names)

    def chosen(text: str) -> list[str]:
        if unknown := set(text.split(",")) - set(known):
            raise argparse.ArgumentTypeError(f"unknown {min(unknown)!r}, known are {', '.join(known)}")
        return text.split(",")

    return chosen


def _shares(text: str) -> list[float]:
    try:
        shares = [float(part) for part in text.split(",")]
    except ValueError:
        shares = []
    if not shares or not all(0 < share <= 1 for share in shares):
        raise argparse.ArgumentTypeError(f"{text}: give fractions of the graph's bytes, such as 0.1 or 0.25,0.1")
    return shares


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
    parser.add_argument("--workloads", type=_some_of(NAMES), default=list(NAMES), help=",".join(NAMES))
    parser.add_argument("--variants", type=_some_of(VARIANTS), default=list(VARIANTS), help=", ".join(VARIANTS))
    parser.add_argument("--cache", type=_shares, default=list(SHARES), help="of the graph's bytes, that the device has")
    parser.add_argument("--steps", action="store_true", help="run once more, and say what gather, copy, ... took")
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
    scope = Scope(settings.cache, settings.variants, settings.limit, deadline, settings.steps)
    good = measure_all(small, workloads, checked, link, scope._replace(limit=SMALL_LIMIT))
    if good and not settings.tiny:
        good = measure_all(graph, workloads, report, link, scope, settings.seconds)
    print(report.markdown(), end="")
    return 0 if good else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except InputError as error:
        say(str(error))
        sys.exit(2)
