"""Measure counting: Longwall, its rivals, other systems' figures and the floor, in one table.

    python -m benchmarks.suites.counts --scales 14,18 --engine cpu --out counts.md

Every row runs in fresh processes under a time limit. Counts are checked on small graphs first; a count that
differs, there or later, makes the exit status 1. docs/benchmarks.md says what each column means.

Standard library only, so that the processes it starts are measured right (see `measure`).
"""

import argparse
import json
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.lib.machine import describe_machine
from benchmarks.lib.measure import Outcome, call
from benchmarks.lib.report import markdown, seconds
from benchmarks.lib.rows import ROWS, Row

_ROOT = Path(__file__).resolve().parents[2]
_DATA = Path(os.environ.get("LONGWALL_DATA", _ROOT.parent / "shared" / "data"))
_EDGE_FACTOR = 16
_REAL = ("ca-AstroPh", "wiki-Vote", "socfb-JohnsHopkins55")
# igraph lists every house of the checked R-MAT graph: with 16 edges per vertex that takes minutes.
_CHECK_SCALE, _CHECK_EDGE_FACTOR = 8, 4
_CHECK_REAL = "ca-GrQc"
_CHECK_LIMIT = 300.0
_RIVALS = {"igraph": tuple(row.name for row in ROWS), "networkx": ("triangles",)}


class Suite:
    """One run of the suite: the settings, what is found, what went wrong."""

    def __init__(self, settings: argparse.Namespace):
        self.settings = settings
        self.work = Path(settings.work).resolve()
        self.work.mkdir(parents=True, exist_ok=True)
        self.engine: str = settings.engine
        self.failures: list[str] = []
        self.rivals: list[str] = []
        self.too_slow: set[tuple[str, str]] = set()
        """(rival, row) pairs that did not end on an R-MAT graph: hopeless on the larger ones."""
        truth = _DATA / "truth" / "counts.json"
        self.truth: dict[str, Any] = json.loads(truth.read_text()) if truth.exists() else {}
        self.record: dict[str, Any] = {}

    def run(self) -> int:
        """Check, measure, write; gives the exit status."""
        self.record = self._describe()
        for name, store in self._check_stores().items():
            for row in ROWS:
                self._check(name, store, row)
        if self.failures:
            return self._finish()
        rate = call("benchmarks.lib.floor:steps_per_second", kind=self.engine)
        self.record["steps_per_second"] = self._need(rate, "measuring the step rate")
        for scale in self.settings.scales:
            self._measure_graph(f"rmat-{scale}", self._rmat(scale, _EDGE_FACTOR))
        for name in _REAL:
            if self._edges(name).exists():
                self._measure_graph(name, self._real(name))
        return self._finish()

    def _describe(self) -> dict[str, Any]:
        ours = self._need(call("benchmarks.lib.ours:describe", engine=self.engine), f'engine "{self.engine}"')
        versions, missing = ours["versions"], {}
        for rival in self.settings.rivals:
            found = call("benchmarks.rivals.tools:rival_version", name=rival)
            if found.status == "done":
                versions[rival] = found.value
                self.rivals.append(rival)
            else:
                missing[rival] = f"left out, {found.reason}"
                _say(f"{rival}: {missing[rival]}")
        return {
            "finished": False,
            "date": datetime.now(UTC).strftime("%Y-%m-%d"),
            "settings": {
                "engine": self.engine,
                "scales": self.settings.scales,
                "rivals": self.rivals,
                "repeats": self.settings.repeats,
                "limit": self.settings.limit,
                "rival_limit": self.settings.rival_limit,
            },
            "machine": describe_machine(),
            "device": ours["device"],
            "versions": versions,
            "rivals_missing": missing,
            "steps_per_second": 0.0,
            "failures": self.failures,
            "checks": [],
            "graphs": {},
        }

    def _check_stores(self) -> dict[str, dict[str, Any]]:
        name = f"rmat-{_CHECK_SCALE} (edge factor {_CHECK_EDGE_FACTOR})"
        stores = {name: self._rmat(_CHECK_SCALE, _CHECK_EDGE_FACTOR)}
        if self._edges(_CHECK_REAL).exists():
            stores[_CHECK_REAL] = self._real(_CHECK_REAL)
        return stores

    def _check(self, name: str, facts: dict[str, Any], row: Row) -> None:
        """Compare a row's counts on a small graph with every reference there is."""
        found = self._mine(facts, row, self.engine, _CHECK_LIMIT)
        if found.status != "done":
            self._fail(f"{row.name} on {name}: {found.reason}")
            return
        references: dict[str, Outcome] = {}
        if "igraph" in self.rivals:
            references["igraph"] = self._rival("igraph", facts, row, _CHECK_LIMIT)
            if name != _CHECK_REAL and not row.induced:
                references["igraph (vf2)"] = self._rival("igraph_vf2", facts, row, _CHECK_LIMIT)
        if self.engine != "cpu":
            references["the cpu engine"] = self._mine(facts, row, "cpu", _CHECK_LIMIT)
        for reference, outcome in references.items():
            if outcome.status != "done":
                self._fail(f"{row.name} on {name}: {reference} gave no count to compare with, {outcome.reason}")
        wanted = {who: one.value["counts"] for who, one in references.items() if one.status == "done"}
        counts = found.value["counts"]
        self._compare(name, row, counts, wanted | self._known(name, row))
        equal = list(wanted | self._known(name, row))
        self.record["checks"].append({"graph": name, "row": row.name, "counts": counts, "equal_to": equal})
        _say(f"checked {row.name} on {name}: {', '.join(equal) or 'nothing to compare with'}")

    def _known(self, name: str, row: Row) -> dict[str, list[int]]:
        known = row.known_counts(self.truth[name]) if name in self.truth else None
        return {} if known is None else {"known counts": known}

    def _compare(self, graph: str, row: Row, counts: list[int], wanted: dict[str, list[int]]) -> None:
        for reference, others in wanted.items():
            if others != counts:
                self._fail(f"{row.name} on {graph}: Longwall counts {counts}, {reference} {others}")

    def _measure_graph(self, name: str, facts: dict[str, Any]) -> None:
        rows = {row.name: self._measure(name, facts, row) for row in ROWS}
        self.record["graphs"][name] = {"facts": facts, "rows": rows}
        done = {row: found for row, found in rows.items() if found["status"] == "done"}
        sizes = {"3": "triangles", "4": "4-clique"}
        floor = call(
            "benchmarks.lib.floor:steps",
            store=facts["store"],
            plans={row: found["plans"] for row, found in done.items()},
            cliques={size: done[row]["counts"][0] for size, row in sizes.items() if row in done},
        )
        for row, steps in self._need(floor, f"the floor on {name}").items():
            if steps is not None:
                rows[row]["floor_seconds"] = steps / self.record["steps_per_second"]
        self._write()

    def _measure(self, name: str, facts: dict[str, Any], row: Row) -> dict[str, Any]:
        limit = self.settings.limit
        outcomes, spent = [], 0.0
        for _ in range(self.settings.repeats):
            outcomes.append(self._mine(facts, row, self.engine, limit))
            spent += outcomes[-1].wall_seconds
            if outcomes[-1].status != "done" or spent > limit:
                break
        found = _summary(outcomes)
        _say(f"{name} {row.name}: {_shown(found, 'mine_seconds')}")
        if found["status"] == "failed":
            self._fail(f"{row.name} on {name}: {found['reason']}")
        found["rivals"] = {}
        for rival in self.rivals:
            if row.name in _RIVALS[rival]:
                found["rivals"][rival] = self._measure_rival(rival, name, facts, row, found)
        if found["status"] == "done":
            self._compare(name, row, found["counts"], self._known(name, row))
        return found

    def _measure_rival(
        self, rival: str, name: str, facts: dict[str, Any], row: Row, ours: dict[str, Any]
    ) -> dict[str, Any]:
        generated = name.startswith("rmat-")
        if generated and (rival, row.name) in self.too_slow:
            return {"status": "skipped", "reason": "not tried"}
        outcome = self._rival(rival, facts, row, self.settings.rival_limit)
        found = {"status": outcome.status, "reason": outcome.reason, "wall_seconds": outcome.wall_seconds}
        found["peak_bytes"] = outcome.peak_bytes
        if outcome.status == "done":
            found |= outcome.value
            if ours["status"] == "done":
                self._compare(name, row, ours["counts"], {rival: outcome.value["counts"]})
        elif generated:
            self.too_slow.add((rival, row.name))
        _say(f"    {rival}: {_shown(found, 'seconds')}")
        return found

    def _mine(self, facts: dict[str, Any], row: Row, engine: str, limit: float) -> Outcome:
        return call(
            "benchmarks.lib.ours:mine",
            limit,
            store=facts["store"],
            row=row.name,
            engine=engine,
            work=str(self.work),
            started=time.monotonic(),
        )

    def _rival(self, rival: str, facts: dict[str, Any], row: Row, limit: float) -> Outcome:
        return call(f"benchmarks.rivals.tools:{rival}_counts", limit, store=facts["store"], row=row.name)

    def _rmat(self, scale: int, edge_factor: int) -> dict[str, Any]:
        _say(f"graph rmat-{scale}")
        store = str(self.work / f"rmat-{scale}-{edge_factor}.zarr")
        made = call("benchmarks.lib.graphs:make_rmat", store=store, scale=scale, edge_factor=edge_factor)
        facts: dict[str, Any] = self._need(made, f"making rmat-{scale}")
        return facts

    def _real(self, name: str) -> dict[str, Any]:
        made = call(
            "benchmarks.lib.graphs:make_real", store=str(self.work / f"{name}.zarr"), edges=str(self._edges(name))
        )
        facts: dict[str, Any] = self._need(made, f"reading {name}")
        return facts

    def _edges(self, name: str) -> Path:
        return _DATA / "graphs" / f"{name}.edges.gz"

    def _need(self, outcome: Outcome, what: str) -> Any:
        if outcome.status != "done":
            raise SystemExit(f"{what}: {outcome.reason}")
        return outcome.value

    def _fail(self, text: str) -> None:
        self.failures.append(text)
        _say(f"FAILED {text}")

    def _finish(self) -> int:
        self.record["finished"] = True
        self._write()
        print(markdown(self.record), end="")
        return 1 if self.failures else 0

    def _write(self) -> None:
        """Write the table and the record as they are by now: a suite that is cut short keeps what it has."""
        out = Path(self.settings.out or self.work / "counts.md")
        _replace(out.with_suffix(".md"), markdown(self.record))
        _replace(out.with_suffix(".json"), json.dumps(self.record, indent=1) + "\n")


def _summary(outcomes: list[Outcome]) -> dict[str, Any]:
    """The medians of a row's runs, or why it has none."""
    peak = max(one.peak_bytes for one in outcomes)
    values = [one.value for one in outcomes if one.status == "done"]
    if not values:
        return {"status": outcomes[-1].status, "reason": outcomes[-1].reason, "peak_bytes": peak}
    if any(value["counts"] != values[0]["counts"] for value in values):
        return {"status": "failed", "reason": "two runs counted differently", "peak_bytes": peak}
    return {
        "status": "done",
        "counts": values[0]["counts"],
        "plans": values[0]["plans"],
        "peak_bytes": peak,
        "runs": len(values),
        **{
            key: median(value[key] for value in values)
            for key in ("mine_seconds", "first_mine_seconds", "total_seconds")
        },
    }


def _shown(found: dict[str, Any], key: str) -> str:
    return f"{seconds(found[key])} s" if found["status"] == "done" else str(found["reason"])


def _replace(path: Path, text: str) -> None:
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text)
    partial.rename(path)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part]


def _rival_names(text: str) -> list[str]:
    names = [part for part in text.split(",") if part]
    if unknown := set(names) - set(_RIVALS):
        raise argparse.ArgumentTypeError(f"unknown rival {min(unknown)!r}, known are {', '.join(_RIVALS)}")
    return names


def _out(text: str) -> Path:
    path = Path(text)
    if path.suffix not in (".md", ".json") or not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"{text}: give FILE.md or FILE.json in a folder that exists")
    return path


def main() -> int:
    """Read the command line and run the suite."""
    parser = argparse.ArgumentParser(
        description="Measure Longwall's counting against rivals; print a table in Markdown."
    )
    parser.add_argument("--scales", type=_numbers, default=[14, 18], help="R-MAT scales (default: 14,18)")
    parser.add_argument("--engine", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument(
        "--rivals", type=_rival_names, default=list(_RIVALS), help="default: igraph,networkx; '' for none"
    )
    parser.add_argument("--repeats", type=int, default=3, help="runs per row; the median counts (default: 3)")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds per row (default: 120)")
    parser.add_argument("--rival-limit", type=float, default=60.0, help="seconds per rival (default: 60)")
    parser.add_argument("--work", default=_ROOT / "build" / "benchmarks", help="keeps the graphs made")
    parser.add_argument("--out", type=_out, help="FILE.md or FILE.json: both are written (default: in --work)")
    settings = parser.parse_args()
    settings.scales.sort()
    if settings.repeats < 1 or not all(1 <= scale <= 31 for scale in settings.scales):
        parser.error("--repeats is at least 1, --scales lie between 1 and 31")
    return Suite(settings).run()


if __name__ == "__main__":
    raise SystemExit(main())
