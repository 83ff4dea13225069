"""Measure labelled queries: folders of them in one run each, after their counts were checked.

    python -m benchmarks.suites.queries --data DATA --graphs yeast,hprd,cora,citeseer,socfb-Reed98 --each 50 --threads 2

DATA is a folder with `graphs/NAME.edges.gz`, `graphs/NAME.labels.gz` and, where the published queries on hprd shall be
measured, `matching/hprd-queries.tar.gz` and `matching/hprd-expected.txt`. Queries of other sizes are drawn by random
walks, dense (all edges of the graph between the vertices) and sparse (a spanning tree and a few edges). Before they are
measured, small ones are counted to the end and compared with igraph's LAD and VF2; a count that differs makes the exit
status 1. Every query that was drawn occurs, so a count of 0 does, too. Times are those of single queries, with the
graph open: candidates, search, and the commit.

With `--full` queries are counted to the end, those of 12 and 16 vertices on a random graph of 5,000 vertices, 500,000
edges and 44 labels, too: these are counted again by one search without sums, for `--patience` seconds each.
"""

import argparse
import random
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.lib.drawn_queries import Adjacency, Labels, by_igraph, draw, numbered, read, write
from benchmarks.lib.suite import Suite

_CHECKED, _CHECK_SIZES, _MOST_CHECKED = 12, (6, 9), 100_000
_RANDOM, _RANDOM_SIZES = (5000, 500_000, 44), (12, 16)


def random_graph(vertices: int, edges: int, labels: int) -> tuple[Adjacency, Labels]:
    """Make a graph of distinct random edges, with random labels."""
    choose = random.Random(1)
    near: Adjacency = {v: set() for v in range(vertices)}
    while edges:
        u, v = choose.randrange(vertices), choose.randrange(vertices)
        if u != v and v not in near[u]:
            near[u].add(v)
            near[v].add(u)
            edges -= 1
    return near, {v: choose.randrange(labels) for v in range(vertices)}


def by_search(graph: Any, edges: list[tuple[int, int]], labels: Labels, seconds: float) -> tuple[int | None, float]:
    """Count the mappings of a query by the search alone; None: it did not end. Returns the seconds, too."""
    from longwall.kernels.host.queries.candidate_space import CandidateSpace, QueryGraph
    from longwall.kernels.host.queries.matcher import QueryMatcher
    from longwall.stages.source import host_arrays

    class Unbounded:
        def release(self) -> None:
            """Do nothing."""

    place = {v: at for at, v in enumerate(sorted({v for edge in edges for v in edge}))}
    near = [0] * len(place)
    for u, v in edges:
        near[place[u]] |= 1 << place[v]
        near[place[v]] |= 1 << place[u]
    query = QueryGraph(tuple(near), tuple(labels[v] for v in place))
    began = time.perf_counter()
    matcher, total = QueryMatcher(space := CandidateSpace(host_arrays(graph), query, lambda *_: Unbounded())), 0
    matcher.begin(0, space.roots)
    while not matcher.over and time.perf_counter() - began < seconds:
        total += matcher.advance(None, 1 << 17)
    return (total if matcher.over else None), time.perf_counter() - began


class Queries(Suite):
    """One run of the benchmark."""

    def measure(self) -> None:
        """See `Suite`."""
        given = self.settings
        self.head(f"Labelled queries, {given.threads} threads, limit {given.limit:,}")
        with tempfile.TemporaryDirectory(dir=self.work) as folder:
            self._check(Path(folder))
            self.say(
                "", "| graph | queries | number | median | 95 % | 99 % | longest | at the limit |", "|" + "---|" * 8
            )
            if (given.data / "matching" / "hprd-queries.tar.gz").exists():
                self._published(Path(folder))
            if given.full:
                self._random(Path(folder))
            for name in filter(None, given.graphs.split(",")):
                for size in map(int, given.sizes.split(",")):
                    for dense in (True, False):
                        self._drawn(Path(folder), name, size, dense)

    def _run(self, name: str, queries: Path, **workload: Any) -> Any:
        graphs = self.settings.data / "graphs"
        graph = {"path": str(graphs / f"{name}.edges.gz"), "labels": str(graphs / f"{name}.labels.gz")}
        return self._run_on(graph, queries, **workload)

    def _run_on(self, graph: Any, queries: Path, **workload: Any) -> Any:
        import longwall

        with tempfile.TemporaryDirectory(dir=self.work) as folder:
            return longwall.run(
                {
                    "graph": graph,
                    "workload": {"kind": "match", "pattern": str(queries), "count": "mappings"} | workload,
                    "engine": {"kind": self.settings.engine, "threads": self.settings.threads},
                    "run": {"directory": folder, "report": False},
                    "memory": {"spill": folder},
                }
            )

    def _check(self, folder: Path) -> None:
        """Compare counts of small queries with igraph's; this loads the kernels, too."""
        name, choose = self.settings.graphs.split(",")[0], random.Random(1)
        near, labels = read(self.settings.data, name)
        drawn = [draw(near, sorted(near), size, True, choose) for size in _CHECK_SIZES for _ in range(_CHECKED // 2)]
        checked = folder / "checked"
        checked.mkdir()
        for number, edges in enumerate(drawn):
            if edges is not None:
                write(checked / f"{number}.graph", edges, labels)
        found = {int(one.name): one.count for one in self._run(name, checked).patterns}
        whole, equal = numbered([(u, v) for u in near for v in near[u] if u < v], labels), 0
        for number, edges in enumerate(drawn):
            if edges is None or found[number] > _MOST_CHECKED:
                continue
            if set(by_igraph(*whole, numbered(edges, labels))) != {found[number]}:
                self.failures.append(f"query {number} on {name}: {found[number]} mappings, igraph finds others")
            else:
                equal += 1
        self.say(f"- checked: {equal} queries on {name} equal to VF2 and LAD of igraph")

    def _published(self, folder: Path) -> None:
        matching = self.settings.data / "matching"
        with tarfile.open(matching / "hprd-queries.tar.gz") as archive:
            archive.extractall(folder / "published", filter="data")
        queries = next(path.parent for path in (folder / "published").rglob("*.graph"))
        lines = (matching / "hprd-expected.txt").read_text().split()
        want = {name: int(number) for name, _, number in (line.partition(":") for line in lines)}
        found = self._run("hprd", queries, limit=self.settings.limit).patterns
        for one in found:
            if one.count != min(want[one.name], self.settings.limit):
                self.failures.append(f"{one.name} on hprd: {one.count}, published are {want[one.name]}")
        self._row("hprd", "published, 16", found)

    def _drawn(self, folder: Path, name: str, size: int, dense: bool) -> None:
        near, labels = read(self.settings.data, name)
        choose, kind = random.Random(size), "dense" if dense else "sparse"
        queries = folder / f"{name}-{size}-{kind}"
        queries.mkdir()
        for number in range(self.settings.each):
            edges = draw(near, sorted(near), size, dense, choose)
            if edges is not None:
                write(queries / f"{number}.graph", edges, labels)
        limit = {} if self.settings.full else {"limit": self.settings.limit}
        found = self._run(name, queries, **limit).patterns
        self.failures += [f"{one.name} of {queries.name}: it occurs, 0 were found" for one in found if not one.count]
        self._row(name, f"{kind}, {size}", found)

    def _random(self, folder: Path) -> None:
        """Count drawn queries of a dense random graph, and compare with the search of `by_search`."""
        import longwall

        near, labels = random_graph(*_RANDOM)
        graph = longwall.graph([(u, v) for u in near for v in near[u] if u < v], labels=labels)
        for size in _RANDOM_SIZES:
            for dense in (True, False):
                choose = random.Random(size)
                drawn = [draw(near, sorted(near), size, dense, choose) for _ in range(self.settings.each)]
                queries = folder / f"random-{size}-{'dense' if dense else 'sparse'}"
                queries.mkdir()
                for number, edges in enumerate(drawn):
                    write(queries / f"{number}.graph", edges or [], labels)
                found = self._run_on(graph, queries).patterns
                self._row("random", f"{'dense' if dense else 'sparse'}, {size}", found)
                self._search_again(queries.name, graph, drawn, labels, found)

    def _search_again(self, name: str, graph: Any, drawn: list[Any], labels: Labels, found: Any) -> None:
        ended, seconds = 0, 0.0
        for one in found:
            count, took = by_search(graph, drawn[int(one.name)], labels, self.settings.patience)
            seconds += took
            if count is not None:
                ended += 1
                if count != one.count:
                    self.failures.append(f"{one.name} of {name}: {one.count} mappings, a search finds {count}")
        self.say(f"- {ended} of {len(found)} searches end in {self.settings.patience:g} s, {seconds:.3g} s in all")

    def _row(self, graph: str, queries: str, found: Any) -> None:
        took = sorted(one.seconds for one in found)
        places = [took[min(int(share * len(took)), len(took) - 1)] for share in (0.5, 0.95, 0.99, 1.0)]
        times = " | ".join(f"{1000 * seconds:.3g} ms" for seconds in places)
        ended = sum(one.lower_bound for one in found)
        self.say(f"| {graph} | {queries} | {len(found)} | {times} | {ended} |")


def main() -> int:
    """Parse arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--graphs", default="yeast,hprd,cora,citeseer,socfb-Reed98,socfb-Amherst41")
    parser.add_argument("--sizes", default="20,32", help="vertices of the queries that are drawn")
    parser.add_argument("--each", type=int, default=50, help="queries of each kind")
    parser.add_argument("--limit", type=int, default=100_000)
    parser.add_argument("--full", action="store_true", help="count to the end, and queries on a random graph, too")
    parser.add_argument("--patience", type=float, default=5.0, help="seconds of a search that those are compared with")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--engine", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--work", default="work", help="folder for what is drawn, and runs")
    parser.add_argument("--out", type=Path)
    return Queries(parser.parse_args()).run()


if __name__ == "__main__":
    sys.exit(main())
