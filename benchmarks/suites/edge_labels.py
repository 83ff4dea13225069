"""Time patterns with labels of edges, after checking them.

    python -m benchmarks.suites.edge_labels [--engine cuda] [--scales 12,14] [--labels 3]

R-MAT graphs with a random label on every edge. Checked first: over all ways to label the edges of a triangle, and those
of a wedge, the counts add up to those of the pattern without labels, which kernels of their own count; and both
engines agree. Times are those of whole functions, the fastest of three, beside the same search without labels.
"""

import argparse
import time
from itertools import combinations_with_replacement

import numpy as np
import pyarrow as pa

import longwall
from longwall.storage.generators.kinds import generate

TIMED = {
    "wedge": "(a)-[:0]-(b)-[:1]-(c)",
    "triangle": "(a)-[:0]-(b)-[:0]-(c)-[:1]-(a)",
    "diamond": "(a)-[:0]-(b)-[:0]-(c)-[:0]-(a), (a)-[:1]-(d)-[:1]-(c)",
}


def labelled(scale: int, labels: int) -> longwall.Graph:
    """An R-MAT graph whose edges have random labels."""
    table = generate("rmat", seed=1, scale=scale).to_arrow()
    kinds = np.random.default_rng(1).integers(0, labels, table.num_rows)
    return longwall.graph(table.append_column("kind", pa.array(kinds)), edge_labels="kind")


def check(graph: longwall.Graph, labels: int, engine: str) -> None:
    """Stop where counts do not add up, or engines differ."""
    kinds = range(labels)
    triangles = [f"(a)-[:{x}]-(b)-[:{y}]-(c)-[:{z}]-(a)" for x, y, z in combinations_with_replacement(kinds, 3)]
    wedges = [f"(a)-[:{x}]-(b)-[:{y}]-(c)" for x, y in combinations_with_replacement(kinds, 2)]
    for whole, parts in (("triangle", triangles), ("wedge", wedges)):
        found = sum(longwall.count(graph, part, engine=engine) for part in parts)
        expected = longwall.count(graph, whole, engine="cpu")
        if found != expected:
            raise SystemExit(f"{whole}: {found} by labels, {expected} without")
    for name, text in TIMED.items():
        counts = {kind: longwall.count(graph, text, engine=kind) for kind in {"cpu", engine}}
        if len(set(counts.values())) > 1:
            raise SystemExit(f"{name}: {counts}")


def fastest(graph: longwall.Graph, text: str, engine: str) -> tuple[float, int]:
    """Seconds of the fastest of three counts, and the count."""
    seconds, count = [], 0
    for _ in range(3):
        began = time.perf_counter()
        count = longwall.count(graph, text, engine=engine)
        seconds.append(time.perf_counter() - began)
    return min(seconds), count


def main() -> None:
    """Check, then print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--scales", default="12", help="of the R-MAT graphs")
    parser.add_argument("--labels", type=int, default=3)
    options = parser.parse_args()
    for scale in map(int, options.scales.split(",")):
        graph = labelled(scale, options.labels)
        check(graph, options.labels, options.engine)
        print(f"R-MAT {scale}, {graph.num_edges:,} edges, {options.labels} labels, {options.engine}: checked")
        print("| pattern | count | seconds | as rows without labels |\n|---|---|---|---|")
        for name, text in TIMED.items():
            seconds, count = fastest(graph, text, options.engine)
            began = time.perf_counter()
            rows = longwall.match(graph, name, engine=options.engine).to_arrow().num_rows
            print(f"| {name} | {count:,} | {seconds:.3f} | {rows:,}: {time.perf_counter() - began:.3f} |", flush=True)


if __name__ == "__main__":
    main()
