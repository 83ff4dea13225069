"""Measure labelled queries: folders of them in one run each, after their counts were checked.

    python -m benchmarks.suites.queries --data DATA --graphs yeast,hprd,cora,citeseer,socfb-Reed98 --each 50 --threads 2

DATA is a folder with `graphs/NAME.edges.gz`, `graphs/NAME.labels.gz` and, where the published queries on hprd shall be
measured, `matching/hprd-queries.tar.gz` and `matching/hprd-expected.txt`. Queries of other sizes are drawn by random
walks, dense (all edges of the graph between the vertices) and sparse (a spanning tree and a few edges). Before they are
measured, small ones are counted to the end and compared with igraph's LAD and VF2; a count that differs makes the exit
status 1. Every query that was drawn occurs, so a count of 0 does, too. Times are those of single queries, with the
graph open: candidates, search, and the commit.
"""

import argparse
import gzip
import random
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.lib.suite import Suite

_CHECKED, _CHECK_SIZES, _MOST_CHECKED = 12, (6, 9), 100_000
_SPARSE = 1.3  # edges for each vertex

Adjacency = dict[int, set[int]]
Labels = dict[int, int]


def read(data: Path, name: str) -> tuple[Adjacency, Labels]:
    """Read a graph as sets of neighbours, and its labels."""
    near: Adjacency = {}
    with gzip.open(data / "graphs" / f"{name}.edges.gz", "rt") as file:
        for line in file:
            u, v = map(int, line.split())
            near.setdefault(u, set()).add(v)
            near.setdefault(v, set()).add(u)
    with gzip.open(data / "graphs" / f"{name}.labels.gz", "rt") as file:
        labels = dict(tuple(map(int, line.split())) for line in file)  # type: ignore[misc]
    return near, labels


def draw(near: Adjacency, size: int, dense: bool, choose: random.Random) -> list[tuple[int, int]] | None:
    """Return the edges of a query between vertices of a random walk, which is as long as it takes; None: too long."""
    at = choose.choice(sorted(near))
    found = {at: 0}
    for _ in range(1000 * size):
        if len(found) == size:
            break
        at = choose.choice(sorted(near[at]))
        found.setdefault(at, len(found))
    else:
        return None
    edges = [(u, v) for u in found for v in near[u] if v in found and found[u] < found[v]]
    if not dense:
        choose.shuffle(edges)
        part = {v: v for v in found}
        tree, rest = [], []
        for u, v in edges:
            a, b = _root(part, u), _root(part, v)
            part[a] = b
            (tree if a != b else rest).append((u, v))
        edges = tree + rest[: max(int(size * _SPARSE) - len(tree), 0)]
    return edges


def _root(part: dict[int, int], v: int) -> int:
    while part[v] != v:
        v = part[v]
    return v


def write(path: Path, edges: list[tuple[int, int]], labels: Labels) -> None:
    """Write a query as a ``.graph`` file."""
    number = {v: i for i, v in enumerate(sorted({v for edge in edges for v in edge}))}
    degrees = [sum(v in edge for edge in edges) for v in number]
    lines = [f"t {len(number)} {len(edges)}"]
    lines += [f"v {i} {labels[v]} {degree}" for (v, i), degree in zip(number.items(), degrees, strict=True)]
    path.write_text("\n".join([*lines, *(f"e {number[u]} {number[v]}" for u, v in edges)]) + "\n")


def by_igraph(near: Adjacency, labels: Labels, edges: list[tuple[int, int]]) -> tuple[int, int]:
    """Count the mappings of a query by VF2 and by LAD."""
    import igraph

    number = {v: i for i, v in enumerate(sorted(near))}
    large = igraph.Graph(len(number), [(number[u], number[v]) for u in near for v in near[u] if u < v])
    place = {v: i for i, v in enumerate(sorted({v for edge in edges for v in edge}))}
    small = igraph.Graph(len(place), [(place[u], place[v]) for u, v in edges])
    colours, wanted = [labels[v] for v in number], [labels[v] for v in place]
    domains = [[i for i, colour in enumerate(colours) if colour == label] for label in wanted]
    lad = len(large.get_subisomorphisms_lad(small, domains=domains, induced=False))
    vf2 = large.count_subisomorphisms_vf2(small, color1=colours, color2=wanted)
    return vf2, lad


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
            for name in given.graphs.split(","):
                for size in map(int, given.sizes.split(",")):
                    for dense in (True, False):
                        self._drawn(Path(folder), name, size, dense)

    def _run(self, name: str, queries: Path, **workload: Any) -> Any:
        import longwall

        graphs = self.settings.data / "graphs"
        with tempfile.TemporaryDirectory(dir=self.work) as folder:
            return longwall.run(
                {
                    "graph": {"path": str(graphs / f"{name}.edges.gz"), "labels": str(graphs / f"{name}.labels.gz")},
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
        drawn = [draw(near, size, True, choose) for size in _CHECK_SIZES for _ in range(_CHECKED // 2)]
        checked = folder / "checked"
        checked.mkdir()
        for number, edges in enumerate(drawn):
            if edges is not None:
                write(checked / f"{number}.graph", edges, labels)
        found = {int(one.name): one.count for one in self._run(name, checked).patterns}
        equal = 0
        for number, edges in enumerate(drawn):
            if edges is None or found[number] > _MOST_CHECKED:
                continue
            if set(by_igraph(near, labels, edges)) != {found[number]}:
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
            edges = draw(near, size, dense, choose)
            if edges is not None:
                write(queries / f"{number}.graph", edges, labels)
        found = self._run(name, queries, limit=self.settings.limit).patterns
        self.failures += [f"{one.name} of {queries.name}: it occurs, 0 were found" for one in found if not one.count]
        self._row(name, f"{kind}, {size}", found)

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
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--engine", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--work", default="work", help="folder for what is drawn, and runs")
    parser.add_argument("--out", type=Path)
    return Queries(parser.parse_args()).run()


if __name__ == "__main__":
    sys.exit(main())
