"""Measure what Longwall takes from DuMato, T-DFS and GAMMA's edge join, row by row, after its counts were checked.

    python -m benchmarks.suites.seeds --engine cpu --out seeds.md          # --engine cuda on a machine with a GPU

docs/seeds.md has the rows. Counts are compared with igraph's and with published ones first; one that differs makes the
exit status 1. Real graphs are in the folder that the environment variable `LONGWALL_DATA` names. What there is no
``--time`` left for is left out, and FILE.md has what there is after every row.

Standard library only, so that the processes it starts are measured right (see `measure`).
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks.lib.measure import Outcome, call
from benchmarks.lib.report import seconds
from benchmarks.lib.seed_patterns import DUMATO_MOTIFS, DUMATO_QUASI_CLIQUES, TDFS, less_an_edge, mod_labels
from benchmarks.lib.suite import Suite

_ROOT = Path(__file__).resolve().parents[2]
_DATA = Path(os.environ.get("LONGWALL_DATA", _ROOT.parent / "shared" / "data"))
_CHECKS = ("searches", "motifs", "quasi_cliques", "labelled", "joins")
_SHARES = [1.0, 0.25, 0.125, 0.0625]
_TIME = {"cpu": 600.0, "cuda": 190.0}
_LEAST = 4.0  # seconds: with less left, nothing is begun
_GROUP = 60.0  # seconds for runs that share a process
_ROWS = "balance,stacks,motifs,quasi-cliques,labelled,both-ways,joins"
_NONE = 15.0  # seconds for a search without load balancing

# What is measured: on two cores, and on a GPU.
_BALANCED = {"cpu": [], "cuda": [("ca-AstroPh", "P4"), ("rmat-16", "P4"), ("rmat-16", "P3")]}
_STACKS = {"cpu": [], "cuda": [("rmat-16", "P3"), ("rmat-16", "P6")]}
_MOTIFS = {
    "cpu": [("citeseer", 6), ("citeseer", 7), ("ca-GrQc", 6), ("ca-GrQc", 7)],
    "cuda": [("ca-GrQc", 6), ("ca-GrQc", 7), ("citeseer", 6), ("citeseer", 7), ("citeseer", 8)],
}
_QUASI_CLIQUES = {
    "cpu": [("ca-AstroPh", (4, 5, 6)), ("ca-GrQc", (7, 8)), ("hprd", (9, 10))],
    "cuda": [("ca-AstroPh", (4, 5, 6, 7, 8)), ("ca-GrQc", (10,))],
}
_BOTH_WAYS = {
    "cpu": [("rmat-12", 3), ("rmat-12", 4), ("ca-AstroPh", 4), ("citeseer", 5), ("ca-GrQc", 5)],
    "cuda": [("rmat-14", 4), ("ca-AstroPh", 4), ("ca-AstroPh", 5), ("ca-GrQc", 5)],
}
_LABELLED = {"cpu": ["ca-AstroPh"], "cuda": ["ca-AstroPh"]}
_JOINS = {
    "cpu": [("rmat-12", "P2"), ("rmat-11", "P1"), ("ca-GrQc", "P1")],
    "cuda": [("rmat-12", "P2"), ("rmat-11", "P1"), ("ca-AstroPh", "P1")],
}


class Seeds(Suite):
    """One run of the suite."""

    def __init__(self, settings: argparse.Namespace):
        super().__init__(settings)
        self.engine: str = settings.engine
        self._deadline = time.monotonic() + (settings.time or _TIME[self.engine])
        self._records = count()

    def say(self, *lines: str) -> None:
        """Add lines to the section, print them, and write what there is."""
        super().say(*lines)
        if self.settings.out is not None:
            self.settings.out.write_text("\n".join(self.lines) + "\n")

    def measure(self) -> None:
        """Check, then measure row by row."""
        self.head(f"Seeds, {self.engine}")
        self._check()
        if self.failures:
            return
        rows = {
            "balance": self._load_balance,
            "stacks": self._stacks,
            "motifs": self._motifs,
            "quasi-cliques": self._quasi_cliques,
            "labelled": self._labelled,
            "both-ways": self._both_ways,
            "joins": self._joins,
        }
        for name in self.settings.rows:
            rows[name]()

    def _check(self) -> None:
        self.table("Checked first", "row", "counts", "sum", "equal to")
        with ThreadPoolExecutor(max(len(os.sched_getaffinity(0)) // 2, 1)) as pool:
            outcomes = list(pool.map(self._checked, _CHECKS))
        for name, outcome in zip(_CHECKS, outcomes, strict=True):
            if outcome.status != "done":
                self.failures.append(f"check of {name}: {outcome.reason}")
                continue
            groups: dict[tuple[str, str], list[int]] = {}
            for row, what, found, equal_to, same in outcome.value:
                groups.setdefault((row, equal_to), []).append(found)
                if not same:
                    self.failures.append(f"{row}, {what}: Longwall counts {found:,}, otherwise than {equal_to}")
            for (row, equal_to), found in groups.items():
                self.row(row, str(len(found)), f"{sum(found):,}", equal_to)

    def _checked(self, name: str) -> Outcome:
        more = {"data": str(_DATA)} if name in ("motifs", "quasi_cliques") else {}
        arguments = {"engine": self.engine, "work": str(self.work), **more}
        return call(f"benchmarks.lib.seed_checks:{name}", self._left(), **arguments)

    def _load_balance(self) -> None:
        if not _BALANCED[self.engine]:
            self.say("", "D7, T1 and T2 are about the warps of a device.")
            return
        head = "graph", "pattern", "count", "ring s", "time-out of 10 ms s", "host redistributes s", "launches"
        self.table("D7, T1: load balancing of a search", *head, "tasks moved", "none s")
        for graph, pattern in self._some(_BALANCED):
            arguments = {"store": self._store(graph), "pattern": TDFS[pattern]}
            found = self._lines("benchmarks.gpu.seed_searches:balance", ways=["ring", "10 ms", "host"], **arguments)
            found |= self._lines("benchmarks.gpu.seed_searches:balance", ways=["none"], limit=_NONE, **arguments)
            self._agree(f"{pattern} of {graph}", found)
            host = found.get("host", {})
            cells = [_seconds(found.get(way)) for way in ("ring", "10 ms", "host")]
            cells += [_number(host.get("launches")), _number(host.get("moved")), _seconds(found.get("none"))]
            self.row(graph, pattern, _count(found), *cells)

    def _stacks(self) -> None:
        if not _STACKS[self.engine]:
            return
        head = "graph", "pattern", "stacks", "warps", "MB", "saved of a list per level", "s"
        self.table("T2: stacks of fewer bytes than the longest sets take", *head)
        for graph, pattern in self._some(_STACKS):
            arguments = {"store": self._store(graph), "pattern": TDFS[pattern], "shares": _SHARES}
            found = self._lines("benchmarks.gpu.seed_searches:stacks", **arguments)
            self._agree(f"{pattern} of {graph}", found)
            for one in found.values():
                way = "fixed, for all warps" if one["share"] == 1 else one["way"]
                saved = f"{100 - 100 * one['bytes'] / one['lists']:.0f} %"
                self.row(graph, pattern, way, _number(one["warps"]), f"{one['bytes'] / 1e6:.1f}", saved, _seconds(one))

    def _motifs(self) -> None:
        self.table("D5: motifs by enumeration", "graph", "k", "motifs", "s", "DuMato (TITAN V) s")
        for graph, k in self._some(_MOTIFS):
            found = self._mine(graph, {"motifs": {"kind": "motifs", "k": k, "method": "enumeration"}})
            paper = DUMATO_MOTIFS.get((graph, k))
            cells = [_count(found), _seconds(found.get("motifs")), f"{paper:,}" if paper else "-"]
            self.row(graph, str(k), *cells)

    def _quasi_cliques(self) -> None:
        head = "graph", "q", "cliques less an edge", "s", "sets, cliques too", "s", "DuMato (TITAN V) s"
        self.table("D6: quasi-cliques", *head)
        for graph, sizes in self._some(_QUASI_CLIQUES):
            workloads: dict[str, dict[str, Any]] = {}
            for k in sizes:
                workloads[f"match {k}"] = {"kind": "match", "pattern": less_an_edge(k)}
                workloads[f"sets {k}"] = {"kind": "quasi-cliques", "k": k, "missing": 1}
            found = self._mine(graph, workloads, limit=_GROUP)
            for k in sizes:
                cells: list[str] = []
                for name in (f"match {k}", f"sets {k}"):
                    cells += [_number(found.get(name, {}).get("count")), _seconds(found.get(name))]
                paper = DUMATO_QUASI_CLIQUES.get(k) if graph == "ca-AstroPh" else None
                self.row(graph, f"q{k}", *cells, str(paper) if paper else "-")

    def _both_ways(self) -> None:
        head = "graph", "k", "motifs", "pattern-aware s", "pattern-oblivious s", "`auto` takes"
        self.table("D3: pattern-aware and pattern-oblivious motifs", *head)
        for graph, k in self._some(_BOTH_WAYS):
            section = {"kind": "motifs", "k": k}
            ways = {way: section | {"method": way} for way in ("counting", "enumeration", "auto")}
            found = self._mine(graph, ways)
            self._agree(f"motifs {k} of {graph}", found)
            taken = found.get("auto", {}).get("plan", "-").removeprefix("motif ")
            self.row(graph, str(k), _count(found), *(_seconds(found.get(way)) for way in list(ways)[:2]), taken)

    def _labelled(self) -> None:
        for graph in self._some(_LABELLED):
            head = "pattern", "no labels", "s", "one of 4 labels", "s", "labels i mod 4", "s"
            self.table(f"T4: T-DFS's patterns on {graph}", *head)
            plain = {name: {"kind": "match", "pattern": pattern} for name, pattern in TDFS.items()}
            ways: dict[str, dict[str, Any]] = {}
            for name, same in plain.items():
                labels = mod_labels(same["pattern"])
                ways[f"{name} one"] = same | {"pattern_labels": [0] * len(labels)}
                ways[f"{name} mod"] = same | {"pattern_labels": labels}
            found = self._mine(graph, ways, labelled=True, limit=_GROUP)
            found |= self._mine(graph, plain, limit=_GROUP)
            for name in TDFS:
                cells: list[str] = []
                for way in (name, f"{name} one", f"{name} mod"):
                    cells += [_number(found.get(way, {}).get("count")), _seconds(found.get(way))]
                self.row(f"{name}, {_eleven_on(name)}", *cells)

    def _joins(self) -> None:
        head = "graph", "pattern", "embeddings", "vertex by vertex s", "edge by edge s", "times"
        self.table("Listing by worst-case optimal and by binary joins", *head)
        for graph, name in self._some(_JOINS):
            same = {"kind": "match", "pattern": TDFS[name], "output": "embeddings"}
            found = self._mine(graph, {join: same | {"join": join} for join in ("vertices", "edges")})
            self._agree(f"{name} of {graph}", found)
            ratio = "-"
            if len(found) == 2:
                ratio = f"{found['edges']['seconds'] / found['vertices']['seconds']:.1f}"
            cells = [_seconds(found.get(join)) for join in ("vertices", "edges")]
            self.row(graph, name, _count(found), *cells, ratio)

    # --- what rows have in common ---------------------------------------------------------------------------------

    def table(self, title: str, *head: str) -> None:
        """Begin a table."""
        self.say("", f"**{title}**", "", f"| {' | '.join(head)} |", "|---" * len(head) + "|")

    def row(self, *cells: str) -> None:
        """Add a row to it."""
        self.say(f"| {' | '.join(cells)} |")

    def _left(self) -> float:
        return max(self._deadline - time.monotonic(), 0.1)

    def _some(self, rows: dict[str, list[Any]]) -> Iterator[Any]:
        """Yield the rows of an engine as long as there is time."""
        mine = [one for one in rows[self.engine] if self._there(one if isinstance(one, str) else one[0])]
        for number, one in enumerate(mine):
            if self._left() < _LEAST:
                self.say("", f"No time was left for {len(mine) - number} more.")
                return
            yield one

    def _there(self, graph: str) -> bool:
        """Whether a graph can be made; says so if not."""
        if graph.startswith("rmat-") or _edges_of(graph).exists():
            return True
        self.say("", f"{graph} is left out: LONGWALL_DATA has no graphs/{graph}.edges.gz.")
        return False

    def _store(self, graph: str, *, labelled: bool = False) -> str:
        """Make a graph, once, in a process of its own."""
        store = self.work / f"{graph}{'-labelled' if labelled else ''}.zarr"
        if not store.exists():
            kind, _, scale = graph.partition("-")
            of = {"scale": int(scale)} if kind == "rmat" else {"edges": str(_edges_of(graph))}
            made = call("benchmarks.lib.seed_runs:make_graph", None, store=str(store), labelled=labelled, **of)
            if made.status != "done":
                self.failures.append(f"making {graph}: {made.reason}")
        return str(store)

    def _mine(
        self, graph: str, workloads: dict[str, Any], *, labelled: bool = False, limit: float = 600.0
    ) -> dict[str, dict[str, Any]]:
        arguments = {"engine": self.engine, "work": str(self.work), "workloads": workloads, "limit": limit}
        return self._lines("benchmarks.lib.seed_runs:mine", store=self._store(graph, labelled=labelled), **arguments)

    def _lines(self, function: str, *, limit: float = 600.0, **arguments: Any) -> dict[str, dict[str, Any]]:
        """Call a function; the lines that it recorded, by name, those before it was stopped or failed, too."""
        record = self.work / f"record-{next(self._records)}.jsonl"
        record.unlink(missing_ok=True)
        outcome = call(function, min(limit, self._left()), record=str(record), **arguments)
        if outcome.status == "failed":
            self.failures.append(f"{function}: {outcome.reason}")
        lines = record.read_text().splitlines() if record.exists() else []
        return {one.pop("name"): one for one in map(json.loads, lines)}

    def _agree(self, what: str, found: dict[str, dict[str, Any]]) -> None:
        if len({one["count"] for one in found.values()}) > 1:
            counts = ", ".join(f"{name} {one['count']:,}" for name, one in found.items())
            self.failures.append(f"{what}: the ways differ: {counts}")


def _edges_of(graph: str) -> Path:
    return _DATA / "graphs" / f"{graph}.edges.gz"


def _eleven_on(name: str) -> str:
    """Return the name of a pattern with labels i mod 4."""
    return f"{name[0]}{int(name[1:]) + 11}"


def _count(found: dict[str, dict[str, Any]]) -> str:
    return next((f"{one['count']:,}" for one in found.values()), "-")


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _seconds(found: dict[str, Any] | None) -> str:
    return seconds(found["seconds"]) if found else "not done"


def _rows(text: str) -> list[str]:
    if unknown := set(text.split(",")) - set(_ROWS.split(",")):
        raise argparse.ArgumentTypeError(f"unknown {min(unknown)!r}, known are {_ROWS}")
    return text.split(",")


def main() -> int:
    """Run the suite."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--rows", type=_rows, default=_rows(_ROWS), help=f"what is measured, by default {_ROWS}")
    parser.add_argument("--time", type=float, help="seconds for everything; by default 600, on a GPU 190")
    parser.add_argument("--work", default="build/seeds", help="folder for graph stores and runs")
    parser.add_argument("--out", type=Path, help="file for the section")
    return Seeds(parser.parse_args()).run()


if __name__ == "__main__":
    sys.exit(main())
