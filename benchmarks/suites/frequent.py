"""Measure frequent patterns, in one graph and over transactions, after what is found was checked.

    python -m benchmarks.suites.frequent --data ../shared/data --out frequent.md
    python -m benchmarks.suites.frequent --data DATA --engine cuda --scale 16 --limit 300
    python -m benchmarks.suites.frequent --data DATA --only falling --limit 500

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
from benchmarks.lib.report import published_rivals, seconds
from benchmarks.lib.suite import Suite

_SHARES = (0.35, 0.25, 0.23, 0.21, 0.18, 0.15)  # of Table 2 of the paper of gSpan on the GPU
_PUBLISHED = {211: 29, 168: 56, 126: 120, 84: 932}  # Compound_422: least support to frequent patterns
_AGAIN_BELOW_SECONDS = 5.0
_CITESEER = {350: 5, 300: 9, 290: 10}  # published: least support to frequent patterns of up to 3 edges
_PARTS = ("transactions", "graphs", "falling")
_FALLING = {  # least supports
    "citeseer": (150, 100, 50, 20),
    "rmat-12, 5 labels": (500, 300, 200, 100, 50),
    "rmat-14, 20 labels": (200, 150, 100, 50),
}
_EDGE_FACTOR = 16


def mine(graph: dict[str, Any], workload: dict[str, Any], engine: str, work: str) -> dict[str, Any]:
    """Mine. Return the patterns, seconds, processor seconds of the run, and the memory and disk that it used."""
    import json

    import longwall

    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(dir=work) as folder:
        for name in ("first", "again"):
            run = {"directory": folder, "name": name}
            began = time.process_time()
            result = longwall.run({"graph": graph, "workload": workload, "engine": {"kind": engine}, "run": run})
            patterns = sorted((one.pattern, str(one.labels), one.support, one.count) for one in result.patterns)
            memory = json.loads((result.path / "manifest.json").read_text())["memory"]
            found = {"patterns": len(patterns), "seconds": result.timings["mine"], "rows": patterns[:2000]}
            found["processor"] = time.process_time() - began
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
        parts = settings.only
        if "transactions" in parts and settings.data is not None:
            self._transactions(settings.data / "transactions" / "Compound_422.gz")
        if "graphs" in parts:
            self._one_graph()
        if "falling" in parts:
            self._falling()

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

    def _falling(self) -> None:
        """Measure patterns of up to 3 edges at falling supports, beside Peregrine's figures where there are any."""
        settings = self.settings
        theirs = published_rivals("cpu").get("rmat-12-labelled", {})
        self.say(
            "| graph | support | patterns | mine s | processor s | exact = false, s | processor s | Peregrine s |",
            "|---|---:|---:|---:|---:|---:|---:|---:|",
        )
        for name, supports in _FALLING.items():
            graph = self._falling_graph(name)
            if graph is None:
                continue
            for least in supports:
                workload = {"kind": "frequent", "support": "mni", "min_support": least, "max_edges": 3}
                exact, quick = self._call(graph, workload), self._call(graph, workload | {"exact": False})
                if _both(exact, quick):
                    self._expect(f"{name} at {least}, exact = false", quick, exact.value["patterns"])
                figure = theirs.get(f"frequent from {least}", {}) if name.startswith("rmat-12") else {}
                patterns = exact.value["patterns"] if exact.status == "done" else "-"
                cells = [name, str(least), str(patterns), _time(exact), _processor(exact), _time(quick)]
                cells += [_processor(quick), str(figure["Peregrine"]["wall"]) if figure else ""]
                self.say(f"| {' | '.join(cells)} |")
                if settings.engine != "cpu" and exact.status == "done":
                    self._same_as_cpu(name, graph, workload, exact)
        self.say("")

    def _falling_graph(self, name: str) -> dict[str, Any] | None:
        if name != "citeseer":
            kind, labels = name.split(", ")
            scale, number = int(kind.removeprefix("rmat-")), int(labels.split()[0])
            generator = {"kind": "rmat", "scale": scale, "edge_factor": _EDGE_FACTOR, "num_labels": number, "seed": 1}
            return {"generator": generator}
        if self.settings.data is None:
            return None
        files = self.settings.data / "graphs" / name
        graph = {"path": f"{files}.edges.gz", "labels": f"{files}.labels.gz"}
        for least, patterns in _CITESEER.items():
            workload = {"kind": "frequent", "support": "mni", "min_support": least, "max_edges": 3}
            self._expect(f"{name} at {least}", self._call(graph, workload), patterns)
        return graph

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


def _processor(outcome: Outcome) -> str:
    return seconds(outcome.value["processor"]) if outcome.status == "done" else "-"


def _parse(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--data", type=Path, help="folder of the real graphs and databases")
    parser.add_argument(
        "--only",
        nargs="*",
        choices=_PARTS,
        default=_PARTS,
        help="parts of the suite",
    )
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
