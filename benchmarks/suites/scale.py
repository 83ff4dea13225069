"""From nothing to an answer on R-MAT graphs: generate, write, open, load, mine, and the peaks of all budgets.

    python -m benchmarks.suites.scale [--scales 18 20] [--engine cpu] [--limit 280] [--folder FOLDER] [--works NAMES]
    python -m benchmarks.suites.scale --engine cuda --scales 24        # on a machine with a GPU, in five minutes

Every step is a process of its own, and has its row as soon as it is done; after `--limit` seconds none begins, and one
that still runs then, or for `--step-limit` seconds, is ended. On a GPU every work is run with all of its memory, and
with a quarter and a tenth of the bytes of the graph as `memory.device`; all must count the same. The graph (16 edges
drawn for each vertex, seed 1) is removed in the end, unless `--keep` leaves it in the folder.

"floor" is the time of the bytes at the rates of this machine that are printed first: a step of the store writes or
reads its files once; loading copies the arrays that the work reads over the link once; mining out of core adds that to
what mining takes with all of the graph. On the CPU, mining has the floor of its steps (`benchmarks.lib.floor`). Peaks
are the largest resident set of the process, the most that was reserved of `memory.host`, that arrays took of
the device, and what the driver counts of the device. The exit status is 1 if a step fails or counts differ.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.lib.machine import describe_machine
from benchmarks.lib.measure import Outcome, call

_TINY = 10  # the scale of a graph that is mined first, so that kernels are loaded
_EDGE_FACTOR = 16
_HEAD = (
    "| graph | step | budget | access | result | s | processors s | load s | floor s | / floor "
    "| RSS MB | host MB | device MB | driver MB | budget MB |"
)
_COLUMNS = 15


def rates(engine: str, folder: str) -> dict[str, Any]:
    """Measure this machine; with the budgets' shares of a graph, and the part of the arcs that each work reads."""
    from benchmarks.gpu.out_of_core import SHARES, WORKS
    from longwall.kernels import select_engine
    from longwall.pipeline.prediction.rates import own_rates

    made = select_engine(engine)
    parts = {name: work.part for name, work in WORKS.items()}
    shares = SHARES if engine == "cuda" else SHARES[:1]
    found = own_rates(made, Path(folder), again=True)
    return asdict(found) | {"device": made.device.name, "shares": shares, "parts": parts}


def make(store: str, scale: int) -> dict[str, Any]:
    """Generate a store; seconds, and those of processors, of drawing and sorting, and of writing."""
    from longwall.storage.generators.kinds import generate_store
    from longwall.storage.observer import NullObserver

    marks: list[tuple[str, float, float]] = []

    def mark(name: str) -> None:
        marks.append((name, time.perf_counter(), time.process_time()))

    class Steps(NullObserver):
        def phase(self, name: str, total: int | None, unit: str) -> None:
            mark(name)

    with tempfile.TemporaryDirectory() as folder:  # loads the kernels
        generate_store("rmat", Path(folder, "tiny.zarr"), seed=1, scale=_TINY)
    mark("start")
    generate_store("rmat", Path(store), seed=1, scale=scale, edge_factor=_EDGE_FACTOR, observer=Steps())
    mark("")
    found = {"generate": [0.0, 0.0], "write": [0.0, 0.0]}
    for (name, *before), (_, *after) in pairwise(marks):
        part = found["write" if "writ" in name else "generate"]
        for clock in range(2):
            part[clock] += after[clock] - before[clock]
    return found


def look(store: str, tiny: str) -> dict[str, Any]:
    """Open a store, after a small one."""
    import longwall
    from benchmarks.gpu.out_of_core import read_bytes

    longwall.open_graph(tiny)
    began, used = time.perf_counter(), time.process_time()
    graph = longwall.open_graph(store)
    seconds, used = time.perf_counter() - began, time.process_time() - used
    files = sum(one.stat().st_size for one in Path(store).rglob("*") if one.is_file())
    return {
        "seconds": seconds,
        "used": used,
        "vertices": graph.num_vertices,
        "edges": graph.num_edges,
        "arrays": graph.nbytes,
        "read": read_bytes(graph),
        "indices": graph.indices.nbytes,
        "files": files,
    }


def mine(store: str, tiny: str, size: int, name: str, share: float | None, engine: str, work: str) -> dict[str, Any]:
    """Run a work, after a small graph has loaded its kernels."""
    from benchmarks.gpu.out_of_core import WORKS, Bench

    with tempfile.TemporaryDirectory(dir=work) as folder:
        Bench(Path(tiny), 0, Path(folder, "tiny"), engine).run(WORKS[name].workload, None, 600)
        budget = None if share is None else int(share * size)
        found = Bench(Path(store), size, Path(folder), engine).run(WORKS[name].workload, budget, 600)
    assert found is not None
    return asdict(found)


def mining_steps(store: str, name: str) -> float | None:
    """Count the steps of a work's method; see `benchmarks.lib.floor`."""
    import longwall
    from benchmarks.gpu.out_of_core import WORKS
    from benchmarks.lib.floor import steps
    from longwall.pipeline.config import load_config

    spec = load_config({"graph": {"path": store}, "workload": WORKS[name].workload})
    plan = spec.workload.plan(longwall.open_graph(store)).to_dict()
    return steps(store, {name: [plan]}, {})[name]


class Table:
    """Runs steps and prints their rows.

    Parameters
    ----------
    settings
        The command line's.
    folder
        For graphs and runs.
    rates
        Of this machine.

    Attributes
    ----------
    good
        Whether all steps are done, or out of time, and all counts agree.
    """

    def __init__(self, settings: argparse.Namespace, folder: Path, rates: dict[str, Any]) -> None:
        self._settings, self._folder, self._rates = settings, folder, rates
        self._ends = time.monotonic() + settings.limit
        self.good = True

    def step(self, graph: str, what: str, function: str, **arguments: Any) -> Outcome | None:
        """Call a function of this module in a process; None, and a row that says why, where it does not end well."""
        left = min(self._ends - time.monotonic(), self._settings.step_limit)
        outcome = Outcome("over the limit") if left < 1 else call(f"{__spec__.name}:{function}", left, **arguments)
        if outcome.status == "done":
            return outcome
        self.good &= outcome.status == "over the limit"
        self.row(graph, what, result=f"{outcome.status} {outcome.reason}".strip())
        return None

    def row(self, graph: str, step: str, **cells: Any) -> None:
        """Print a row: `budget`, `access`, `result`, seconds, and bytes, as far as they are known."""
        seconds, floor = cells.get("seconds"), cells.get("floor")
        texts = [graph, step, cells.get("budget", ""), cells.get("access", ""), cells.get("result", "")]
        texts += ["" if one is None else f"{one:.3f}" for one in (seconds, cells.get("used"), cells.get("load"), floor)]
        texts.append("" if not seconds or not floor else f"{seconds / floor:.1f}")
        sizes = (cells.get(name) for name in ("rss", "host", "device", "driver", "limit"))
        texts += ["" if not size else f"{size / 1e6:,.0f}" for size in sizes]
        assert len(texts) == _COLUMNS
        print(f"| {' | '.join(texts)} |", flush=True)

    def scale(self, scale: int, tiny: Path) -> None:
        """Do everything for one graph."""
        title, store = f"R-MAT {scale}", self._folder / f"rmat-{scale}.zarr"
        if not store.exists():
            made = self.step(title, "generate", "make", store=str(store), scale=scale)
            if made is None:
                return
            drawn = _EDGE_FACTOR << scale
            seconds, used = made.value["generate"]
            speed = f"{drawn / seconds / 1e6:.1f} M edges/s"
            # Each edge is drawn, sorted, and sorted again in both directions: 8 bytes, and twice as many, written once.
            floor = 24 * drawn / self._rates["memory"]
            sizes = {"rss": made.peak_bytes}
            self.row(title, "generate", result=speed, seconds=seconds, used=used, floor=floor, **sizes)
        else:
            made = None
        looked = self.step(title, "open", "look", store=str(store), tiny=str(tiny))
        if looked is None:
            return
        facts = looked.value
        files = f"{facts['files'] / 1e6:,.0f} MB"
        if made is not None:
            floor = facts["files"] / self._rates["disk_write"]
            seconds, used = made.value["write"]
            self.row(title, "write", result=files, seconds=seconds, used=used, floor=floor)
        result = f"{facts['vertices']:,} vertices, {facts['edges']:,} edges, {facts['arrays'] / 1e6:,.0f} MB"
        floor = max(facts["files"] / self._rates["disk_read"], facts["arrays"] / self._rates["memory"])
        self.row(
            title,
            "open",
            result=result,
            seconds=facts["seconds"],
            used=facts["used"],
            floor=floor,
            rss=looked.peak_bytes,
        )
        for name in self._settings.works.split(","):
            self._mine(title, name, store, tiny, facts)
        if not self._settings.keep:
            shutil.rmtree(store)

    def _mine(self, title: str, name: str, store: Path, tiny: Path, facts: dict[str, Any]) -> None:
        whole: dict[str, Any] | None = None
        part = self._rates["parts"][name]
        for share in self._rates["shares"]:
            budget = "all" if share is None else f"{share:.0%}"
            arguments = {"store": str(store), "tiny": str(tiny), "size": facts["read"], "work": str(self._folder)}
            done = self.step(title, name, "mine", name=name, share=share, engine=self._settings.engine, **arguments)
            if done is None:
                continue
            run = done.value
            whole = whole or run
            if self._settings.engine == "cpu":
                floor = self._steps_floor(store, name)
            else:
                link = part * facts["indices"] / self._rates["link"]
                floor = link + (0.0 if share is None else whole["seconds"] - whole["bring"])
            self.row(
                title,
                f"mine {name}",
                budget=budget,
                access=run["access"],
                result=f"{run['found']:,}",
                seconds=run["seconds"],
                used=run["processors"],
                load=run["bring"],
                floor=floor,
                rss=done.peak_bytes,
                host=run["host"],
                device=run["peak"],
                driver=run["driver"],
                limit=0 if share is None else share * facts["read"],
            )
            self.row(title, f"whole run, {name}", budget=budget, seconds=run["whole"])
            if run["found"] != whole["found"]:
                print(f"{title}, {name}, {budget}: {run['found']:,}, with all of it {whole['found']:,}", flush=True)
                self.good = False

    def _steps_floor(self, store: Path, name: str) -> float | None:
        counted = call(f"{__spec__.name}:mining_steps", None, store=str(store), name=name).value
        return None if counted is None else float(counted) / (self._rates["steps"] * self._rates["threads"])


def main() -> None:
    """Print a row for every step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scales", type=int, nargs="*", default=[18, 20])
    parser.add_argument("--engine", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--limit", type=float, default=280, help="seconds for everything")
    parser.add_argument("--step-limit", type=float, default=90, help="seconds for one step")
    parser.add_argument("--works", default="triangles,4-cliques")
    parser.add_argument("--folder", type=Path, help="for graphs and runs; one that is removed, if not given")
    parser.add_argument("--keep", action="store_true", help="leave the graphs in the folder")
    settings = parser.parse_args()
    machine = describe_machine()
    if settings.folder is not None:
        settings.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=settings.folder) as temporary:
        folder = Path(settings.folder or temporary).absolute()
        measured = call(f"{__spec__.name}:rates", None, engine=settings.engine, folder=str(folder))
        if measured.status != "done":
            raise SystemExit(f"{settings.engine}: {measured.status} {measured.reason}")
        found = measured.value
        print(f"- {machine['cpu']}, {machine['cores']} cores, load {machine['load_at_start']}; {found['device']}")
        link = f", link {found['link'] / 1e9:.1f}" if settings.engine == "cuda" else ""
        print(
            f"- {time.strftime('%Y-%m-%d')}, commit {machine['commit']}; GB/s: memory {found['memory'] / 1e9:.1f}, "
            f"disk {found['disk_read'] / 1e9:.2f} read and {found['disk_write'] / 1e9:.2f} written{link}\n"
        )
        print(_HEAD)
        print("|---|---|---|---|---|" + "---:|" * (_COLUMNS - 5), flush=True)
        table, tiny = Table(settings, folder, found), Path(temporary, "tiny.zarr")
        if table.step("R-MAT 10", "generate", "make", store=str(tiny), scale=_TINY) is not None:
            for scale in settings.scales:
                table.scale(scale, tiny)
    sys.exit(0 if table.good else 1)


if __name__ == "__main__":
    main()
