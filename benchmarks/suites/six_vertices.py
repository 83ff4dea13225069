"""Count every connected pattern of some vertices as the planner chooses, and say how many end in time.

    python -m benchmarks.suites.six_vertices --data DATA --graphs ca-AstroPh --size 6 --seconds 20

Before that, every pattern's count in a small random graph is compared with the subgraphs that NetworkX finds. Times are
those of the processor, of one thread, on graphs DATA/graphs/NAME.edges.gz or, as R-MAT-12, on generated ones (16 edges
drawn for a vertex); kernels are loaded before. The exit status is 1 if a count is wrong.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.lib.suite import Suite
from benchmarks.suites.plan_choice import patterns_of, timed

_GENERATED = "R-MAT-"
_SMALL = 9  # vertices of the graph that is checked


class SixVertices(Suite):
    """One run of the benchmark."""

    def measure(self) -> None:
        """See `Suite`."""
        given = self.settings
        patterns = patterns_of(given.size)
        self.head(
            f"All {len(patterns)} patterns of {given.size} vertices but the clique, at most {given.seconds:g} s each"
        )
        with tempfile.TemporaryDirectory(dir=self.work) as folder:
            self._check(patterns, Path(folder))
            self.say("", "| graph | plan | patterns | ended | s, all | s, longest | longest |", "|" + "---|" * 7)
            for name in given.graphs.split(","):
                self._graph(name, patterns, Path(folder))

    def _check(self, patterns: list[Any], folder: Path) -> None:
        import networkx as nx

        import longwall
        from longwall.pipeline.patterns.symmetry import automorphism_count
        from longwall.pipeline.planning.facts import Facts
        from longwall.pipeline.planning.planner import PLANNER
        from longwall.pipeline.planning.query import Query

        drawn = nx.gnp_random_graph(_SMALL, 0.6, seed=1)
        path = folder / "small.edges"
        path.write_text("".join(f"{u} {v}\n" for u, v in drawn.edges))
        graph = longwall.open_graph(path)
        for pattern in patterns:
            matcher = nx.isomorphism.GraphMatcher(drawn, nx.Graph(pattern.edges))
            wanted = sum(1 for _ in matcher.subgraph_monomorphisms_iter()) // automorphism_count(pattern)
            found, _ = timed(PLANNER.plan(Query(pattern), Facts(graph.stats)), graph, 60.0, folder)
            if found != wanted:
                self.failures.append(f"{pattern.edge_text}: {found}, not {wanted}")

    def _graph(self, name: str, patterns: list[Any], folder: Path) -> None:
        import longwall
        from longwall.pipeline.planning.facts import Facts
        from longwall.pipeline.planning.planner import PLANNER
        from longwall.pipeline.planning.query import Query
        from longwall.storage.generators.kinds import generate

        if name.startswith(_GENERATED):
            graph = generate("rmat", seed=1, scale=int(name.removeprefix(_GENERATED)), edge_factor=16)
        else:
            graph = longwall.open_graph(str(self.settings.data / "graphs" / f"{name}.edges.gz"))
        rows: dict[str, list[tuple[float, bool, str]]] = {}
        for pattern in patterns:
            plan = PLANNER.plan(Query(pattern), Facts(graph.stats))
            count, took = timed(plan, graph, self.settings.seconds, folder)
            if self.settings.each:
                self.say(f"{name}: {pattern.edge_text}: {count} by {plan.to_dict()['kind']}, {took:.2f} s")
            rows.setdefault(plan.to_dict()["kind"], []).append((took, count is not None, pattern.edge_text))
        for kind, some in rows.items():
            longest, _, where = max(some)
            ended, total = sum(one[1] for one in some), sum(one[0] for one in some)
            self.say(f"| {name} | {kind} | {len(some)} | {ended} | {total:.1f} | {longest:.1f} | {where} |")


def main() -> int:
    """Parse arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--graphs", default="ca-AstroPh", help="names, or R-MAT-SCALE, with commas between them")
    parser.add_argument("--size", type=int, default=6, help="vertices of the patterns, 3 to 7")
    parser.add_argument("--seconds", type=float, default=20.0, help="after which a count is stopped")
    parser.add_argument("--each", action="store_true", help="print a line for every pattern")
    parser.add_argument("--work", type=Path, default=Path("build/six-vertices"))
    parser.add_argument("--out", type=Path)
    return SixVertices(parser.parse_args()).run()


if __name__ == "__main__":
    sys.exit(main())
