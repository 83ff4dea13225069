"""Measure labelled queries of 12 to 24 vertices, up to 100,000 embeddings and up to the last, after a check.

    python -m benchmarks.gpu.labelled_queries --json queries.json                  # on a machine with a GPU
    python -m benchmarks.gpu.labelled_queries --engine cpu --counts queries.json   # compares the counts with those

Random walks in the graph draw the queries (`benchmarks.lib.drawn_queries`), so each query occurs there. A dense query
has all edges of the graph between its vertices, at least 3 for every 2 vertices; walks that find fewer are dropped.
A sparse query has a spanning tree and a few more edges. The graphs are hprd and yeast with their labels, from the
folder that LONGWALL_DATA names, or an R-MAT graph with 8 random labels. First, counts of small queries on the first
graph are compared with those of VF2 in networkx and in igraph, and of LAD.

Embeddings are mappings, as papers on such queries count them. One process counts all queries, with the graph in memory.
A short count is repeated, and its time is the median without the first one. "mine" is the time from the end of planning
to the count: it includes finding the candidates, but no compiling. A count that does not end in `--seconds` counts as
that time, and is listed. Embeddings per second are the embeddings of all queries of a row over their seconds. The
exit status is 1 if a count differs from that in `--counts`, if a query does not occur, or if its two counts disagree.
"""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import longwall
from benchmarks.lib.drawn_queries import DrawnQuery, GraphNeighbours, by_igraph, by_networkx, draw, numbered
from benchmarks.lib.machine import describe_machine
from longwall.storage.errors import Interrupted

_ROOT = Path(__file__).resolve().parents[2]
_DATA = Path(os.environ.get("LONGWALL_DATA", _ROOT.parent / "shared" / "data"))
_LABELS = 8  # of R-MAT graphs
_DENSE = 1.5  # edges for each vertex, at least
_TRIES = 50  # walks for each wanted query, at most
_CHECK_SIZE, _CHECKED, _MOST_CHECKED = 9, 6, 20_000  # of checked queries: vertices, their number, most mappings
_WARM = 120.0  # seconds for the first count in a graph, which may compile
_AGAIN = 0.5  # a count that takes fewer seconds is repeated

Record = dict[str, Any]


def opened(name: str) -> Any:
    """Open or make a graph."""
    kind, _, scale = name.partition("-")
    if kind == "rmat":
        facts = {"seed": 1, "scale": int(scale), "edge_factor": 16, "a": 0.57, "b": 0.19, "c": 0.19}
        return longwall.generate_graph("rmat", num_labels=_LABELS, **facts)
    return longwall.open_graph(*(_DATA / "graphs" / f"{name}.{part}.gz" for part in ("edges", "labels")))


def drawn(graph: Any, size: int, dense: bool, number: int) -> list[DrawnQuery]:
    """Draw queries; the same arguments give the same queries."""
    near, choose = GraphNeighbours(graph), random.Random(f"{size} {dense}")
    found: list[DrawnQuery] = []
    for _ in range(number * _TRIES):
        edges = draw(near, range(graph.num_vertices), size, dense, choose)
        if edges is not None and (not dense or len(edges) >= _DENSE * size):
            found.append(numbered(edges, graph.labels))
            if len(found) == number:
                break
    return found


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Interrupt the block if it takes longer."""
    timer = threading.Timer(seconds, signal.raise_signal, [signal.SIGINT])
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def counted(graph: Any, query: DrawnQuery, engine: Record, limit: int | None, work: Path, seconds: float) -> Record:
    """Count a query once; return the count, and the milliseconds of the run's parts."""
    workload: Record = {"kind": "match", "pattern": query.pattern, "pattern_labels": query.labels, "count": "mappings"}
    if limit is not None:
        workload["limit"] = limit
    with tempfile.TemporaryDirectory(dir=work) as folder:
        run = {"directory": folder, "report": False}
        config = {"graph": graph, "workload": workload, "engine": engine, "run": run, "memory": {"spill": folder}}
        try:
            with _at_most(seconds):
                result = longwall.run(config)
        except (Interrupted, KeyboardInterrupt):
            return {"ended": False, "mine_ms": 1e3 * seconds}
    parts = {f"{part}_ms": round(1e3 * result.timings.get(part, 0.0), 3) for part in ("plan", "compile", "mine")}
    return {"ended": True, "count": result.count, "method": result.patterns[0].method} | parts


def measure(name: str, settings: argparse.Namespace, work: Path, wrong: list[str]) -> list[Record]:
    """Draw and count the queries on a graph; print a row for each kind of them."""
    graph, records = opened(name), []
    for size in settings.sizes:
        for dense in (False, True):
            kind = "dense" if dense else "sparse"
            queries = drawn(graph, size, dense, settings.each)
            here = [
                {
                    "graph": name,
                    "size": size,
                    "kind": kind,
                    "number": number,
                    "labels": query.labels,
                    "edges": query.pattern,
                }
                for number, query in enumerate(queries)
            ]
            if queries and not records:
                counted(graph, queries[0], {"kind": settings.engine}, settings.limit, work, _WARM)
            for asked in settings.asked:
                limit = settings.limit if asked == "first" else None
                for record, query in zip(here, queries, strict=True):
                    record[asked] = _repeated(graph, query, settings, limit, work)
                print(_row(name, size, kind, asked, [record[asked] for record in here]), flush=True)
            wrong += [fault for record in here for fault in _faults(record, settings.limit)]
            records += here
    return records


def _repeated(graph: Any, query: DrawnQuery, settings: argparse.Namespace, limit: int | None, work: Path) -> Record:
    """Count a query, and a few times more if the count is short; by then all kernels are compiled and loaded."""
    engine: Record = {"kind": settings.engine}
    if settings.threads:
        engine["threads"] = settings.threads
    found = counted(graph, query, engine, limit, work, settings.seconds)
    if not found["ended"] or found["mine_ms"] > 1e3 * _AGAIN:
        return found
    again = [found, *(counted(graph, query, engine, limit, work, settings.seconds) for _ in range(settings.runs))]
    again = [one for one in again if one["ended"]]
    if len({one["count"] for one in again}) > 1:
        raise RuntimeError(f"{query} was counted as {found['count']}, then otherwise")
    return sorted(again[1:] or again, key=lambda one: one["mine_ms"])[len(again[1:]) // 2]


def _row(name: str, size: int, kind: str, asked: str, found: Sequence[Record]) -> str:
    took = [one["mine_ms"] for one in found]
    ended = [one for one in found if one["ended"]]
    rate = sum(one["count"] for one in ended) / sum(took) * 1e3
    late = ", ".join(str(number) for number, one in enumerate(found) if not one["ended"])
    return (
        f"| {name} | {size} | {kind} | {asked} | {len(found)} | {late or '-'} | {median(took):.3g} | "
        f"{geometric_mean(took):.3g} | {max(took):.3g} | {rate:.3g} |"
    )


def _faults(record: Record, limit: int) -> Iterator[str]:
    """Say if a query was not found, or if its two counts cannot be right."""
    counts = {asked: record[asked]["count"] for asked in ("first", "all") if record.get(asked, {}).get("ended")}
    if not min(counts.values(), default=1):
        yield f"{_name(record)} occurs, 0 were found"
    if len(counts) == 2 and min(counts["all"], limit) != counts["first"]:
        yield f"{_name(record)}: {counts['first']} of the first {limit}, {counts['all']} of all"


def _name(record: Record) -> str:
    return f"query {record['number']} ({record['kind']}, {record['size']} vertices) on {record['graph']}"


def compared(records: Sequence[Record], before: Sequence[Record]) -> tuple[int, list[str]]:
    """Compare counts with those of another measurement; return how many are equal, and the differences."""
    known = {_name(one): one for one in before}
    equal, wrong = 0, []
    for record in records:
        other = known.get(_name(record))
        if other is None:
            continue
        if (record["edges"], record["labels"]) != (other["edges"], other["labels"]):
            wrong.append(f"{_name(record)} is another query in the file")
            continue
        for asked in ("first", "all"):
            if not all(one.get(asked, {}).get("ended") for one in (record, other)):
                continue
            if record[asked]["count"] == other[asked]["count"]:
                equal += 1
            else:
                wrong.append(f"{_name(record)}, {asked}: {record[asked]['count']}, not {other[asked]['count']}")
    return equal, wrong


def check(name: str, settings: argparse.Namespace, work: Path) -> list[str]:
    """Compare counts of small queries with other programs; return those that differ."""
    graph = opened(name)
    ends = graph.indptr[1:] - graph.indptr[:-1]
    sources = [v for v, degree in enumerate(ends.tolist()) for _ in range(degree)]
    edges = [(u, v) for u, v in zip(sources, graph.indices.tolist(), strict=True) if u < v]
    labels, wrong, equal = graph.labels.tolist(), [], 0
    for dense in (False, True):
        for query in drawn(graph, _CHECK_SIZE, dense, _CHECKED):
            found = counted(graph, query, {"kind": settings.engine}, None, work, 60.0)
            if not found["ended"] or found["count"] > _MOST_CHECKED:
                continue
            others = {*by_igraph(edges, labels, query), by_networkx(edges, labels, query)}
            if others != {found["count"]}:
                wrong.append(f"{query} on {name}: {found['count']}, others count {sorted(others)}")
            equal += others == {found["count"]}
    print(f"checked: {equal} queries of {_CHECK_SIZE} vertices on {name} as networkx and igraph count them", flush=True)
    return wrong


def main() -> int:
    """Check, measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--graphs", nargs="+", default=["hprd", "yeast", "rmat-18"], help="hprd, yeast, or rmat-SCALE")
    parser.add_argument("--sizes", nargs="+", type=int, default=[12, 16, 20, 24], help="vertices of a query")
    parser.add_argument("--each", type=int, default=5, help="queries of each size and kind")
    parser.add_argument("--asked", nargs="+", choices=("first", "all"), default=["first", "all"])
    parser.add_argument("--limit", type=int, default=100_000, help="embeddings that `first` counts, at most")
    parser.add_argument("--seconds", type=float, default=10.0, help="a count that takes longer is a time-out")
    parser.add_argument("--runs", type=int, default=3, help="counts of a query after the first one, if it is short")
    parser.add_argument("--threads", type=int, help="by default one for each core")
    parser.add_argument("--unchecked", action="store_true", help="do not compare small queries with other programs")
    parser.add_argument("--counts", type=Path, metavar="FILE", help="a file of --json to compare with")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write queries, counts and times to a file")
    settings = parser.parse_args()
    began = time.perf_counter()
    memory = Path("/dev/shm")  # a busy disk would take a part of the seconds
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        work = Path(folder)
        print(machine := describe_machine(), flush=True)
        wrong = [] if settings.unchecked else check(settings.graphs[0], settings, work)
        print(
            "| graph | vertices | kind | asked | queries | timed out | median ms | geometric mean ms | longest ms | "
            "embeddings/s |\n" + "|---" * 10 + "|"
        )
        records = [record for name in settings.graphs for record in measure(name, settings, work, wrong)]
    if settings.counts is not None:
        equal, others = compared(records, json.loads(settings.counts.read_text())["queries"])
        print(f"{equal} counts equal to those of {settings.counts}")
        wrong += others
    if settings.json is not None:
        settings.json.write_text(
            json.dumps({"machine": machine, "engine": settings.engine, "queries": records}, indent=1)
        )
    print(f"{time.perf_counter() - began:.0f} s in all", *wrong, sep="\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
