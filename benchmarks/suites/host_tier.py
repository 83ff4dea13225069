"""Mine a graph that `memory.host` has no room for, from its store, and compare with all of it in memory.

    python -m benchmarks.suites.host_tier --work FOLDER --scale 22 --budget 128MiB
    python -m benchmarks.suites.host_tier --work FOLDER --scale 24 --budget 512MiB --engine cuda --device 256MiB
    python -m benchmarks.suites.host_tier triangles 4-cliques --work FOLDER --scale 22 --budget 128MiB --workers 4

The folder keeps a store (R-MAT, seed 1) for the next time. Every run is in a process of its own, whose peak of resident
memory is measured from outside; that of the same run of a tiny graph is beside it: interpreter, libraries, kernels.
Both runs of a pair must find the same. Where lists are not streamed, the graph is in files that are mapped. The
store is in the page cache. The floor is the
run in memory plus what reading the lists takes alone: from a file, with checksums, on all cores.

With `--workers N` Dask clusters of one worker and of N workers, too, mine from the store; each worker has one thread,
and `--budget` for itself. Workers listen at addresses of their own, so each passes for a machine, opens the store and
keeps its own lists; all share the cores, the disk and the page cache of this machine. With `--mapped` the workers map
the graph, as workloads do that do not stream it. Processor seconds are of all threads, less those of the run of a tiny
graph: they change little if others use the machine.
"""

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.lib.measure import Outcome, call
from benchmarks.lib.small_machines import SmallMachines
from benchmarks.lib.suite import Suite

WORKLOADS: dict[str, dict[str, Any]] = {
    "triangles": {"kind": "triangles"},
    "triangles of vertices": {"kind": "triangles", "output": "vertices"},
    "4-cliques": {"kind": "cliques", "k": 4},
    "5-cliques": {"kind": "cliques", "k": 5},
    "diamonds": {"kind": "match", "pattern": "diamond"},
    "4-cycles": {"kind": "match", "pattern": "cycle-4"},
    "paths of 4": {"kind": "match", "pattern": "path-4"},
    "tailed triangles": {"kind": "match", "pattern": "tailed-triangle"},
    "3-motifs": {"kind": "motifs", "k": 3},
    "4-motifs": {"kind": "motifs", "k": 4},
    "triangles of edges": {"kind": "triangles", "output": "edges"},
    "maximal cliques": {"kind": "maximal-cliques"},
}
_LONG = {"4-motifs", "maximal cliques"}
_MOST_RATIO = 3.0
_TINY_SCALE = 8
_MIB, _PIECE = 1 << 20, 1 << 20
_MINE, _ON_WORKERS, _MAKE, _READ = (
    f"benchmarks.suites.host_tier:{name}" for name in ("mine", "mine_on_workers", "make", "read_rate")
)
_MAPPED = """from longwall.pipeline import inputs
inputs._streamed = lambda *_: None
"""


def make(store: str, scale: int, edge_factor: int, memory: int) -> dict[str, Any]:
    """Make the store of an R-MAT graph, unless it is there; return its sizes."""
    from longwall.storage.generators.kinds import generate_store
    from longwall.storage.graph.graph_store import describe_store
    from longwall.storage.graph.store_header import is_store
    from longwall.storage.memory.resources import open_resources

    if not is_store(store):
        with open_resources(host=memory, spill=Path(store).parent / "spill") as resources:
            generate_store("rmat", store, seed=1, scale=scale, edge_factor=edge_factor, resources=resources)
    return {name: describe_store(store)[name] for name in ("num_vertices", "num_edges", "bytes")}


def mine(store: str, workload: dict[str, Any], memory: dict[str, Any], engine: str, work: str) -> dict[str, Any]:
    """Run a workload; return what it found, how long that took, and what the manifest says of memory."""
    with tempfile.TemporaryDirectory(dir=work) as folder:
        return _mined(_config(store, workload, memory, engine, folder))


def mine_on_workers(
    store: str, workload: dict[str, Any], budget: str, work: str, workers: int, mapped: bool
) -> dict[str, Any]:
    """Run a workload on workers that pass for machines; return the facts of `mine`, and the memory of each worker."""
    from longwall.storage.memory.sizes import parse_size

    # The coordinator counts as a process of each machine, so a worker that is alone there has half of the memory.
    memory = {"host": 2 * parse_size(budget)}
    with tempfile.TemporaryDirectory(dir=work) as folder:
        config = _config(store, workload, memory, "cpu", folder)
        if mapped:
            preload = Path(folder, "mapped.py")
            preload.write_text(_MAPPED)
            os.environ["DASK_DISTRIBUTED__WORKER__PRELOAD"] = json.dumps([str(preload)])
            from longwall.pipeline import inputs

            inputs._streamed = lambda *_: None
        with SmallMachines(Path(folder), workers, 1) as machines:
            found = _mined(config | {"scheduler": {"kind": "dask", "address": machines.address}})
            workers_most = machines.most()
        ticks = sum(one["ticks"] for one in workers_most)
        return found | {"workers": workers_most, "processor": ticks / os.sysconf("SC_CLK_TCK")}


def _config(store: str, workload: dict[str, Any], memory: dict[str, Any], engine: str, folder: str) -> dict[str, Any]:
    return {
        "graph": {"path": store},
        "workload": workload,
        "engine": {"kind": engine},
        "memory": memory | {"spill": f"{folder}/spill"},
        "run": {"directory": folder, "name": "run", "report": False},
    }


def _mined(config: dict[str, Any]) -> dict[str, Any]:
    import longwall

    result = longwall.run(config)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "processor": usage.ru_utime + usage.ru_stime,
        "count": [result.count, *(one.count for one in result.patterns)],
        "seconds": result.timings["graph"] + result.timings["mine"],
        "memory": json.loads((result.path / "manifest.json").read_text())["memory"],
    }


def read_rate(work: str) -> float:
    """Return the bytes a second that all cores read from a file in the page cache, with checksums."""
    import numpy as np

    from longwall.storage.memory.resources import open_resources
    from longwall.storage.streaming.list_file import ListFile
    from longwall.storage.system.concurrency import core_count, map_ordered

    items, segments = _PIECE // 4, 128
    with open_resources(host=1 << 28, spill=Path(work) / "spill") as resources:
        lists = ListFile(resources, np.arange(segments + 1) * items)
        for segment in range(segments):
            lists.write(segment, np.arange(items, dtype=np.uint32))

        def read(segment: int) -> int:
            return len(lists.read(segment, np.empty(items, np.uint32)))

        best = 0.0
        for _ in range(3):
            began = time.perf_counter()
            read_items = sum(map_ordered(read, range(segments), core_count()))
            best = max(best, 4 * read_items / (time.perf_counter() - began))
        lists.close()
    return best


class HostTier(Suite):
    """Pairs of runs, in memory and from the store."""

    def measure(self) -> None:
        """See `Suite`."""
        asked = self.settings
        store = str(self.work / f"rmat-{asked.scale}-{asked.edge_factor}.zarr")
        tiny = str(self.work / f"rmat-{_TINY_SCALE}-{asked.edge_factor}.zarr")
        facts = self._value(call(_MAKE, store=store, scale=asked.scale, edge_factor=asked.edge_factor, memory=1 << 31))
        self._value(call(_MAKE, store=tiny, scale=_TINY_SCALE, edge_factor=asked.edge_factor, memory=1 << 28))
        rate = self._value(call(_READ, work=str(self.work)))
        self.head(f"A graph larger than memory.host: R-MAT {asked.scale}, {asked.budget}, {asked.engine}")
        self.say(
            f"- {facts['num_vertices']:,} vertices, {facts['num_edges']:,} edges, {facts['bytes'] / _MIB:,.0f} MiB in "
            f"memory; lists are read at {rate / 1e9:.2f} GB/s",
            "",
            "| workload | in memory, s | streamed, s | ratio | processor s in memory | streamed | floor, s "
            "| lists read, MiB | budget's peak, MiB | peak RSS, MiB | of a tiny graph |",
            "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
        )
        names = asked.workloads or [name for name in WORKLOADS if name not in _LONG]
        in_memory = {name: self._pair(name, store, tiny, rate) for name in names}
        if asked.workers:
            self._on_workers(in_memory, store, tiny)

    def _on_workers(self, in_memory: dict[str, Any], store: str, tiny: str) -> None:
        """Compare clusters of one worker and of several with the run in memory."""
        self.say(
            "",
            f"Workers of one thread, each with {self.settings.budget} and a loopback address of its own; processes are "
            "compared with those of the same run on a tiny graph:",
            "",
            "| workload | workers | s | processor s of the workers | read by a worker, MiB | peak RSS of a worker, MiB "
            "| of it its own | files | of a tiny graph |",
            "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
        )
        for name, fast in in_memory.items():
            for workers in sorted({1, self.settings.workers}):
                least, slow = (self._cluster(name, place, workers) for place in (tiny, store))
                if least is None or slow is None or fast is None:
                    continue
                if slow["count"] != fast["count"]:
                    self.failures.append(f"{name} on {workers} workers: {slow['count']}, not {fast['count']}")
                if not self.settings.mapped and "store" not in slow["memory"]:
                    self.failures.append(f"{name} on {workers} workers: the graph was not streamed")
                base = max(one["VmHWM"] for one in least["workers"])
                most = {key: max(one[key] for one in slow["workers"]) for key in ("VmHWM", "RssAnon", "RssFile")}
                read = sorted(one["read"] / _MIB for one in slow["workers"])
                span = f"{read[0]:,.0f}" + (f" to {read[-1]:,.0f}" if workers > 1 else "")
                sizes = " | ".join(f"{size / _MIB:,.0f}" for size in (*most.values(), base))
                took = f"{slow['seconds']:.2f} | {slow['processor'] - least['processor']:.1f}"
                self.say(f"| {name} | {workers} | {took} | {span} | {sizes} |")
                if not self.settings.mapped and most["VmHWM"] > base + slow["memory"]["host"]["limit"] // 2:
                    self.failures.append(f"{name} on {workers} workers: more memory than the budget")

    def _cluster(self, name: str, store: str, workers: int) -> Any:
        asked, work = self.settings, str(self.work)
        given = {"workers": workers, "mapped": asked.mapped, "budget": asked.budget}
        return self._value(call(_ON_WORKERS, store=store, workload=WORKLOADS[name], work=work, **given))

    def _pair(self, name: str, store: str, tiny: str, rate: float) -> Any:
        """Compare a run in memory and one from the store; return what the first found."""
        before, *resident = (self._run(name, place, self.settings.memory) for place in (tiny, *self._repeated(store)))
        streamed = [self._run(name, store, self.settings.budget) for _ in range(self.settings.repeat)]
        done = [one.value for one in (*resident, *streamed, before)]
        if not all(done):
            return None
        if any(one["count"] != done[0]["count"] for one in done[:-1]):
            self.failures.append(f"{name}: counts differ: {[one['count'] for one in done[:-1]]}")
        fast, slow = (min((one.value for one in runs), key=lambda one: one["seconds"]) for runs in (resident, streamed))
        if not {"store", "files"} & slow["memory"].keys():
            self.failures.append(f"{name}: the budget holds the graph; lower it")
            return fast
        streamed_lists = "store" in slow["memory"]
        read, peak = slow["memory"]["store"]["lists_read"] if streamed_lists else 0, slow["memory"]["host"]["peak"]
        ratio, resident_size = slow["seconds"] / fast["seconds"], max(one.peak_bytes for one in streamed)
        figures = (
            f"{fast['seconds']:.2f}",
            f"{slow['seconds']:.2f}",
            f"{ratio:.2f}",
            *(f"{one['processor'] - before.value['processor']:.1f}" for one in (fast, slow)),
            f"{fast['seconds'] + read / rate:.2f}",
            f"{read / _MIB:,.0f}" if streamed_lists else "mapped",
            f"{peak / _MIB:,.0f}",
            f"{resident_size / _MIB:,.0f}",
            f"{before.peak_bytes / _MIB:,.0f}",
        )
        self.say(f"| {name} | {' | '.join(figures)} |")
        if ratio > _MOST_RATIO:
            self.failures.append(
                f"{name}: {ratio:.2f} times the time with all memory, {_MOST_RATIO:g} at most is the aim"
            )
        if (
            peak > slow["memory"]["host"]["limit"]
            or resident_size > before.peak_bytes + slow["memory"]["host"]["limit"]
        ):
            self.failures.append(f"{name}: more memory than the budget")
        return fast

    def _repeated(self, store: str) -> list[str]:
        return [store] * self.settings.repeat

    def _run(self, name: str, store: str, host: str) -> Outcome:
        memory = {"host": host} | ({} if self.settings.device is None else {"device": self.settings.device})
        engine, work = self.settings.engine, str(self.work)
        done = call(_MINE, store=store, workload=WORKLOADS[name], memory=memory, engine=engine, work=work)
        self._value(done)
        return done

    def _value(self, done: Outcome) -> Any:
        if done.status != "done":
            self.failures.append(done.reason)
        return done.value


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "workloads", nargs="*", choices=[*WORKLOADS, []], metavar="workload", help="default: all but long ones"
    )
    parser.add_argument("--work", required=True, help="folder for graphs and runs")
    parser.add_argument("--out", type=Path, help="file for the section")
    parser.add_argument("--scale", type=int, default=20)
    parser.add_argument("--edge-factor", type=int, default=16)
    parser.add_argument("--budget", default="32MiB", help="memory.host of the streamed runs")
    parser.add_argument("--memory", default="8GiB", help="memory.host of the runs in memory")
    parser.add_argument("--device", help="memory.device of all runs")
    parser.add_argument("--engine", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--workers", type=int, default=0, help="mine also on clusters of one worker, and of this many")
    parser.add_argument("--mapped", action="store_true", help="the workers map the graph, and do not stream it")
    sys.exit(HostTier(parser.parse_args()).run())


if __name__ == "__main__":
    main()
