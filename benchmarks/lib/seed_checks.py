"""What `benchmarks.suites.seeds` checks before it measures: every row's counts against igraph's or published ones.

Each function returns lines ``[row, what, count, equal to, whether it is]``.
"""

import json
import re
import tempfile
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import igraph

import longwall
from benchmarks.lib.seed_patterns import LABELS, TDFS, edges, less_an_edge, mod_labels

Line = list[Any]
Edges = list[tuple[int, int]]
_MOTIF_SIZES = {"citeseer-motifs-4m": 4, "citeseer-motifs-5m": 5, "citeseer-motifs-6m": 6}
_DENSE = 22, 165  # vertices and edges of the random graph in which all patterns occur, whatever their labels


class Checker:
    """Runs Longwall on small graphs.

    Parameters
    ----------
    engine
        ``"cpu"`` or ``"cuda"``.
    work
        A folder.
    """

    def __init__(self, engine: str, work: str):
        self._engine, self._folder = engine, tempfile.TemporaryDirectory(dir=work)

    def mine(self, graph: Edges | str, labels: list[int] | None = None, **workload: Any) -> Any:
        """Run a workload on edges, or on a file; the result."""
        section, folder = {"path": graph}, self._folder.name
        if not isinstance(graph, str):
            section["path"] = _write(folder, "graph.txt", graph)
        if labels is not None:
            section["labels"] = _write(folder, "labels.txt", list(enumerate(labels)))
        run, engine = {"directory": folder}, {"kind": self._engine}
        return longwall.run({"graph": section, "workload": workload, "engine": engine, "run": run})


def _write(folder: str, name: str, rows: Edges) -> str:
    path = Path(folder, name)
    path.write_text("".join(f"{first} {second}\n" for first, second in rows))
    return str(path)


def motifs(engine: str, work: str, data: str) -> list[Line]:
    """Motifs of 4 to 6 vertices as published, by both methods, and those of 7 and 8 of a small graph."""
    checker, lines = Checker(engine, work), []
    for name, k in _MOTIF_SIZES.items():
        published = Path(data, "truth", f"{name}.txt")
        if not published.exists():
            continue
        known = _published(published, k)
        for method in ("enumeration", "counting") if k < 6 else ("enumeration",):
            graph = str(Path(data, "graphs", "citeseer.edges.gz"))
            found = _by_form(checker.mine(graph, kind="motifs", k=k, method=method), k)
            what = f"citeseer, k = {k}, {method}"
            lines.append(["D3, D5", what, sum(found.values()), "published, pattern by pattern", found == known])
    small = _random(11, 22)
    for k in (7, 8):
        found = _by_form(checker.mine(small, kind="motifs", k=k), k)
        line = f"random graph of 22 edges, k = {k}", sum(found.values()), "all sets, by igraph's canonical forms"
        lines.append(["D4, D5", *line, found == _all_motifs(small, k)])
    return lines


def quasi_cliques(engine: str, work: str, data: str) -> list[Line]:
    """Quasi-cliques of 4 to 10 vertices, as sets and as cliques less an edge."""
    checker, lines = Checker(engine, work), []
    dense = [edge for edge in combinations(range(13), 2) if (edge[0] * 7 + edge[1] * 5) % 9]
    theirs = igraph.Graph(dense)
    for k in range(4, 11):
        least = k * (k - 1) // 2 - 1
        sets = sum(theirs.induced_subgraph(one).ecount() >= least for one in combinations(range(13), k))
        found = checker.mine(dense, kind="quasi-cliques", k=k, missing=1).count
        lines.append(["D6", f"dense graph of 13 vertices, k = {k}", found, "all sets", found == sets])
        whole = len(theirs.cliques(k, k))
        wanted = sets - whole + whole * k * (k - 1) // 2
        found = checker.mine(dense, kind="match", pattern=less_an_edge(k)).count
        lines.append(["D6", f"the same, q{k} not induced", found, "all sets and igraph's cliques", found == wanted])
    truth = Path(data, "truth", "counts.json")
    if truth.exists():
        known = json.loads(truth.read_text())["ca-GrQc"]
        found = checker.mine(str(Path(data, "graphs", "ca-GrQc.edges.gz")), kind="quasi-cliques", k=4, missing=1).count
        wanted = known["induced"]["diamond"] + known["cliques"]["4"]
        lines.append(["D6", "ca-GrQc, k = 4", found, "known counts", found == wanted])
    return lines


def labelled(engine: str, work: str) -> list[Line]:
    """All patterns of T-DFS, without labels, with one, and with those of P12 to P22."""
    checker = Checker(engine, work)
    small = _random(*_DENSE)
    labels = [vertex // 2 % LABELS if vertex % 2 else 0 for vertex in range(_DENSE[0])]
    theirs, lines = igraph.Graph(small), []
    for name, pattern in TDFS.items():
        query = igraph.Graph(edges(pattern))
        size = query.vcount()
        for what, colours in (("", None), (", one label", [0] * size), (", labels i mod 4", mod_labels(pattern))):
            more = {} if colours is None else {"pattern_labels": colours}
            found = checker.mine(
                small, None if colours is None else labels, kind="match", pattern=pattern, **more
            ).count
            named = {} if colours is None else {"color1": labels, "color2": colours}
            mappings = theirs.count_subisomorphisms_vf2(query, **named)
            group = query.count_automorphisms(color=colours)
            lines.append(["T3, T4", f"{name}{what}", found, "igraph (vf2)", found * group == mappings])
    return lines


def joins(engine: str, work: str) -> list[Line]:
    """Listings by vertices and by edges."""
    checker, lines = Checker(engine, work), []
    small = _random(40, 200)
    theirs = igraph.Graph(small)
    for name in ("P1", "P2", "P4"):
        query = igraph.Graph(edges(TDFS[name]))
        wanted = theirs.count_subisomorphisms_vf2(query) // query.count_automorphisms()
        for join in ("vertices", "edges"):
            found = checker.mine(small, kind="match", pattern=TDFS[name], output="embeddings", join=join)
            same = found.count == len(found.table()) == wanted
            lines.append(["joins", f"{name} by {join}", found.count, "igraph (vf2)", same])
    return lines


def searches(engine: str, work: str) -> list[Line]:
    """Every way of load balancing, and of sharing out stacks; they are the device's."""
    if engine == "cpu":
        return []
    from benchmarks.gpu.seed_searches import check
    from benchmarks.lib.seed_runs import make_graph

    store = str(Path(work, "check-8.zarr"))
    make_graph(store, scale=8)
    found = check(store, TDFS["P4"])
    expected = found.pop("cpu")
    return [
        ["D7, T1, T2", f"P4 of R-MAT 8, {way}", count, "the cpu engine", count == expected]
        for way, count in found.items()
    ]


def _random(vertices: int, number: int) -> Edges:
    import random

    return sorted(random.Random(1).sample(list(combinations(range(vertices), 2)), number))


def _form(pairs: Edges, k: int) -> tuple[tuple[int, int], ...]:
    graph = igraph.Graph(k, pairs)
    return tuple(sorted(graph.permute_vertices(graph.canonical_permutation()).get_edgelist()))


def _by_form(result: Any, k: int) -> dict[Any, int]:
    return {_form(edges(one.pattern), k): one.count for one in result.patterns if one.count}


def _published(path: Path, k: int) -> dict[Any, int]:
    """Read lines such as ``[2-3][1-2][1-4](3~4) 111153``; vertices are numbered from 1."""
    found = {}
    for line in path.read_text().splitlines():
        pairs = [(int(u) - 1, int(v) - 1) for u, v in re.findall(r"\[(\d)-(\d)\]", line)]
        found[_form(pairs, k)] = int(line.split()[1])
    return {form: count for form, count in found.items() if count}


def _all_motifs(pairs: Edges, k: int) -> dict[Any, int]:
    """Count the connected sets of k vertices by what they induce."""
    graph, found = igraph.Graph(pairs), Counter[Any]()
    for chosen in combinations(range(graph.vcount()), k):
        inside = graph.induced_subgraph(chosen)
        if inside.is_connected():
            found[_form(inside.get_edgelist(), k)] += 1
    return dict(found)
