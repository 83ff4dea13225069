"""Measure frequent patterns, in one graph and over transactions, after what is found was checked.

    python -m benchmarks.suites.frequent --data ../shared/data --out frequent.md
    python -m benchmarks.suites.frequent --data DATA --engine cuda --scale 16 --limit 300

Every run is in a fresh process under a time limit; the time is that of mining with the kernels loaded, where a run is
short enough to be done twice. Checked first: the numbers of frequent patterns that are published for the database of
compounds, and another engine's patterns against the CPU's. gspan-mining, where it is installed, mines the same
database in the same run, and must find as many patterns.
"""

import argparse
import gzip
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.lib.measure import Outcome, call
from benchmarks.lib.report import seconds
from benchmarks.lib.suite import Suite

_SHARES = (0.35, 0.25, 0.23, 0.21, 0.18, 0.15)  # of Table 2 of the paper of gSpan on the GPU
_PUBLISHED = {211: 29, 168: 56, 126: 120, 84: 932}  # Compound_422: least support to frequent patterns
_AGAIN_BELOW_SECONDS = 5.0
_EDGE_FACTOR = 16


def mine(graph: dict[str, Any], workload: dict[str, Any], engine: str, work: str) -> dict[str, Any]:
    """Mine; gives the patterns, seconds, and what of memory and disk was used."""
    import json

    import longwall

    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(dir=work) as folder:
        for name in ("first", "again"):
            run = {"directory": folder, "name": name}
            result = longwall.run({"graph": graph, "workload": workload, "engine": {"kind": engine}, "run": run})
            patterns = sorted((one.pattern, str(one.labels), one.support, one.count) for one in result.patterns)
            memory = json.loads((result.path / "manifest.json").read_text())["memory"]
            found = {"patterns": len(patterns), "seconds": result.timings["mine"], "rows": patterns[:2000]}
            found["memory"] = {place: memory[place]["peak"] for place in memory if place in ("host", "disk", "device")}
            if found["seconds"] > _AGAIN_BELOW_SECONDS:
                break
    return found


def mine_by_gspan(path: str, min_support: int) -> dict[str, Any]:
    """Mine transactions with gspan-mining, reading included; frequent single vertices are no patterns here."""
    from gspan_mining.gspan import gSpan

    found = 0

    class Miner(gSpan):  # type: ignore[misc]
        """Counts what it finds; the package's own report needs a method that pandas no longer has."""

        def _report(self, projected: object) -> None:
            nonlocal found
            found += 1

    began = time.perf_counter()
    Miner(path, min_support=min_support, min_num_vertices=2).run()
    return {"patterns": found, "seconds": time.perf_counter() - began}


class Frequent(Suite):
    """One run of the benchmark."""

    def measure(self) -> None:
        """Check and measure, in a database and in single graphs."""
        settings = self.settings
        self.head(f"Frequent patterns, {settings.engine}")
        self.say(f"- Limit {settings.limit:g} s a run", "")
        if settings.data is not None:
            self._transactions(settings.data / "transactions" / "Compound_422.gz")
        self._one_graph()

    def _transactions(self, path: Path) -> None:
        plain = self.work / "compounds.gspan"
        with gzip.open(path) as packed, plain.open("wb") as file:
            shutil.copyfileobj(packed, file)
        for least, patterns in _PUBLISHED.items():
            self._expect(f"support {least}", self._mine(plain, least), patterns)
        self.say(
            "| 422 compounds, support | patterns | mine s | gspan-mining s | times |",
            "|---|---:|---:|---:|---:|",
        )
        slow = False
        for share in _SHARES:
            ours = self._mine(plain, share)
            least = -(-int(share * 100) * 422 // 100)
            theirs = Outcome("skipped") if slow else call(
                "benchmarks.suites.frequent:mine_by_gspan", self.settings.limit, path=str(plain), min_support=least
            )  # fmt: skip
            slow |= theirs.status == "over the limit"
            if ours.status == "done" and theirs.status == "done":
                self._expect(f"gspan-mining at {least}", ours, theirs.value["patterns"])
            times = f"{theirs.value['seconds'] / ours.value['seconds']:.1f}" if _both(ours, theirs) else "-"
            patterns = ours.value["patterns"] if ours.status == "done" else "-"
            self.say(f"| {share:.0%} ({least}) | {patterns} | {_time(ours)} | {_time(theirs)} | {times} |")
        self.say("")

    def _mine(self, database: Path, least: float) -> Outcome:
        return self._call({"path": str(database)}, {"kind": "transactions", "min_support": least})

    def _one_graph(self) -> None:
        settings = self.settings
        self.say(
            "| graph | support | patterns | mine s | exact = false, s | host MiB | disk MiB | device MiB |",
            "|---|---|---:|---:|---:|---:|---:|---:|",
        )
        graphs: list[tuple[str, dict[str, Any], int]] = []
        if settings.data is not None:
            files = settings.data / "graphs" / "socfb-JohnsHopkins55"
            graphs.append(
                (files.name, {"path": f"{files}.edges.gz", "labels": f"{files}.labels.gz"}, settings.real_support)
            )
        for scale in settings.scale:
            generator = {"kind": "rmat", "scale": scale, "edge_factor": _EDGE_FACTOR, "num_labels": settings.labels}
            least = max(settings.support * 2**scale // 2**12, 1)
            graphs.append((f"rmat-{scale}, {settings.labels} labels", {"generator": generator | {"seed": 1}}, least))
        for name, graph, least in graphs:
            workload = {"kind": "frequent", "support": "mni", "min_support": least, "max_edges": settings.edges}
            exact, quick = self._call(graph, workload), self._call(graph, workload | {"exact": False})
            if _both(exact, quick):
                self._expect(f"{name}, exact = false", quick, exact.value["patterns"])
            memory = exact.value["memory"] if exact.status == "done" else {}
            used = [f"{memory[key] / 2**20:.0f}" if key in memory else "-" for key in ("host", "disk", "device")]
            patterns = exact.value["patterns"] if exact.status == "done" else "-"
            cells = [name, f"mni {least}", str(patterns), _time(exact), _time(quick), *used]
            self.say(f"| {' | '.join(cells)} |")
            if settings.engine != "cpu" and exact.status == "done":
                self._same_as_cpu(name, graph, workload, exact)
        self.say("")

    def _same_as_cpu(self, name: str, graph: dict[str, Any], workload: dict[str, Any], ours: Outcome) -> None:
        theirs = call(
            "benchmarks.suites.frequent:mine",
            self.settings.limit,
            graph=graph,
            workload=workload,
            engine="cpu",
            work=str(self.work),
        )
        if theirs.status == "done":
            self.say(f"| {name}, cpu | | | {_time(theirs)} | | | | |")
            if theirs.value["rows"] != ours.value["rows"]:
                self.failures.append(f"{name}: the engines differ")

    def _call(self, graph: dict[str, Any], workload: dict[str, Any]) -> Outcome:
        settings = self.settings
        outcome = call(
            "benchmarks.suites.frequent:mine",
            settings.limit,
            graph=graph,
            workload=workload,
            engine=settings.engine,
            work=str(self.work),
        )
        if outcome.status == "failed":
            self.failures.append(f"{workload}: {outcome.reason}")
        return outcome

    def _expect(self, name: str, ours: Outcome, patterns: int) -> None:
        if ours.status == "done" and ours.value["patterns"] != patterns:
            self.failures.append(f"{name}: {ours.value['patterns']} patterns, not {patterns}")


def _both(first: Outcome, second: Outcome) -> bool:
    return first.status == second.status == "done"


def _time(outcome: Outcome) -> str:
    return seconds(outcome.value["seconds"]) if outcome.status == "done" else outcome.reason or outcome.status


def _parse(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--data", type=Path, help="folder of the real graphs and databases")
    parser.add_argument("--scale", type=int, nargs="*", default=[12], help="R-MAT graphs")
    parser.add_argument("--labels", type=int, default=5, help="labels of an R-MAT graph")
    parser.add_argument("--support", type=int, default=200, help="least support at scale 12; more in proportion above")
    parser.add_argument("--real-support", type=int, default=300)
    parser.add_argument("--edges", type=int, default=3, help="edges of the largest patterns")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds a run may take")
    parser.add_argument("--work", default="build/benchmarks", help="folder for graphs and runs")
    parser.add_argument("--out", type=Path, help="write the section to this file, too")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(Frequent(_parse(sys.argv[1:])).run())
