"""Compare the two ways to count a pattern, a search and a sum of homomorphisms, with the one that the planner chooses.

    python -m benchmarks.suites.plan_choice --data DATA --graphs ca-GrQc,p2p-Gnutella04,socfb-Reed98 --seconds 3

All connected patterns of `--sizes` vertices that have both are counted both ways, one after the other on one thread, on
graphs DATA/graphs/NAME.edges.gz; the shorter time is the better choice. Times are those of the processor, since others
may keep the machine busy; a count that takes longer than `--seconds` is stopped, and counts as so long. Both numbers
must be equal where both end. The exit status is 1 if they are not, or if fewer than 90 % of the choices on a graph take
at most `--tolerance` times the better one's time.
"""

import argparse
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks.lib.suite import Suite

_RIGHT = 0.9
_TWICE_BELOW = 1.0  # seconds: the second of two runs counts, as kernels are loaded then


def patterns_of(size: int) -> list[Any]:
    """Return all connected patterns of so many vertices but the clique, which has kernels of its own."""
    import networkx as nx

    from longwall.pipeline.patterns.pattern import Pattern

    graphs = [one for one in nx.graph_atlas_g() if len(one) == size and nx.is_connected(one)]
    found = [Pattern(size, tuple(sorted((min(edge), max(edge)) for edge in one.edges))) for one in graphs]
    return [pattern for pattern in found if not pattern.is_clique]


def timed(plan: Any, graph: Any, seconds: float, folder: Path) -> tuple[int | None, float]:
    """Count once in an environment of its own; return the number, None where it was stopped, and the time."""
    from longwall.pipeline.config import load_config
    from longwall.pipeline.execution.coordinator import Coordinator
    from longwall.pipeline.execution.environment import Metrics
    from longwall.pipeline.execution.thread_executor import ThreadExecutor
    from longwall.pipeline.run_store.commit_log import CommitLog
    from longwall.pipeline.run_store.local_store import LocalStore
    from longwall.pipeline.run_store.run_files import RunFiles
    from longwall.storage.memory.resources import EngineChoice, open_resources
    from longwall.storage.observer import NullObserver

    own = Path(tempfile.mkdtemp(dir=folder))
    engine = EngineChoice("cpu", 1)
    with open_resources(host=2 << 30, disk=1 << 30, device=None, spill=own / "spill", engine=engine) as resources:
        log = CommitLog(LocalStore(own))
        log.restore(resources.disk)
        env = Coordinator(
            spec=load_config({"graph": {"path": "unused"}, "workload": {"kind": "triangles"}}),
            graph=graph,
            resources=resources,
            files=RunFiles(log.store, resources.disk, log.next_number),
            observer=NullObserver(),
            cancel=threading.Event(),
            log=log,
            metrics=Metrics(),
            executor=ThreadExecutor(),
        )

        def stop() -> None:
            env.cancel.set()
            env.engine.interrupt()

        timer = threading.Timer(seconds, stop)
        timer.start()
        began = time.process_time()
        try:
            found: int | None = plan.count(env)
        except KeyboardInterrupt:
            found = None
        took = time.process_time() - began
        timer.cancel()
        env.close()
    return found, took


class PlanChoice(Suite):
    """One run of the benchmark."""

    def measure(self) -> None:
        """See `Suite`."""
        given = self.settings
        self.head(f"Plans of patterns: chosen and best, at most {given.seconds:g} s each")
        columns = ("graph", "patterns", "both ways", "best chosen", f"within {given.tolerance:g}", "worst", "pattern")
        self.say("", f"| {' | '.join(columns)} |", "|" + "---|" * len(columns))
        with tempfile.TemporaryDirectory(dir=self.work) as folder:
            for name in given.graphs.split(","):
                self._graph(name, Path(folder))

    def _graph(self, name: str, folder: Path) -> None:
        import longwall

        graph = longwall.open_graph(str(self.settings.data / "graphs" / f"{name}.edges.gz"))
        patterns = [one for size in self.settings.sizes.split(",") for one in patterns_of(int(size))]
        ratios = []
        for pattern in patterns:
            ratio = self._compare(name, pattern, graph, folder)
            if ratio is not None:
                ratios.append((ratio, pattern.edge_text))
        within = sum(ratio <= self.settings.tolerance for ratio, _ in ratios)
        worst, where = max(ratios)
        best = sum(ratio == 1.0 for ratio, _ in ratios)
        self.say(f"| {name} | {len(patterns)} | {len(ratios)} | {best} | {within} | {worst:.2f} | {where} |")
        if within < _RIGHT * len(ratios):
            self.failures.append(f"{name}: {within} of {len(ratios)} choices are good")

    def _compare(self, name: str, pattern: Any, graph: Any, folder: Path) -> float | None:
        """Return how much longer the chosen plan takes than the better one; None: there is one, or none ended."""
        from longwall.pipeline.phases.homomorphisms.count import HomomorphismCount
        from longwall.pipeline.planning.homomorphisms.pattern_core import pass_costs
        from longwall.pipeline.planning.homomorphisms.sums import plan_homomorphisms
        from longwall.pipeline.planning.methods.homomorphisms import HomomorphismsPlan
        from longwall.pipeline.planning.methods.search import SearchPlan
        from longwall.pipeline.planning.search.search_planner import plan_match

        sums = plan_homomorphisms((pattern,), pass_costs(graph.stats))
        if sums is None:
            return None
        search = plan_match(pattern, graph.stats)
        plans = (
            SearchPlan(pattern, search.cost, search),
            HomomorphismsPlan(pattern, sums.cost, HomomorphismCount(sums), (1,)),
        )
        counts, times = [], []
        for plan in plans:
            count, took = timed(plan, graph, self.settings.seconds, folder)
            if count is not None and took < _TWICE_BELOW:
                took = min(took, timed(plan, graph, self.settings.seconds, folder)[1])
            counts.append(count)
            times.append(took if count is not None else max(took, self.settings.seconds))
        if None not in counts and counts[0] != counts[1]:
            self.failures.append(f"{pattern.edge_text} on {name}: {counts[0]} by a search, {counts[1]} by a sum")
        if counts == [None, None]:
            return None
        return times[sums.cost < search.cost] / min(times)


def main() -> int:
    """Parse arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--graphs", default="ca-GrQc,p2p-Gnutella04,socfb-Reed98")
    parser.add_argument("--sizes", default="5,6", help="vertices of the patterns, 3 to 7")
    parser.add_argument("--seconds", type=float, default=3.0, help="after which a count is stopped")
    parser.add_argument("--tolerance", type=float, default=1.25, help="how much longer a good choice may take")
    parser.add_argument("--work", default="work", help="folder for the files of runs")
    parser.add_argument("--out", type=Path)
    return PlanChoice(parser.parse_args()).run()


if __name__ == "__main__":
    sys.exit(main())
