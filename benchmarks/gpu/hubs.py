"""Count patterns around hubs, whose numbers have closed forms, and time them.

    python -m benchmarks.gpu.hubs [--engine cuda] [--leaves 1000000] [--limit 20] [--time 300] [--only star K200]

Graphs are a star, a star whose leaves are a ring, two adjacent hubs with leaves of their own, a clique one of whose
vertices has leaves, and complete (bipartite) graphs. Every count is compared with its closed form; a difference ends
the program with status 1. Each is taken twice: kernels are loaded, or compiled, by the first run. Seconds are those of
mining (`Result.timings["mine"]`). A line is printed as soon as it is known. A count that takes longer than the limit is
interrupted, and the next one begins; the status is 3 then, as where the time was up.
"""

import argparse
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from math import comb, perm
from typing import Any

import numpy as np

import longwall
from longwall.storage.graph.graph import Graph
from longwall.storage.ingest.build import build_graph

Counts = dict[str, int]
"""By pattern, which may have "induced" before it; ``motifs-5`` stands for all connected patterns of 5 vertices, of
which only stars may occur."""


def star(leaves: int) -> np.ndarray:
    """Return the edges of a star around vertex 0."""
    return np.stack([np.zeros(leaves, np.int64), np.arange(1, leaves + 1)])


def complete(vertices: int) -> np.ndarray:
    """Return the edges of a clique."""
    return np.stack(np.triu_indices(vertices, 1)).astype(np.int64)


def cases(leaves: int) -> Iterator[tuple[str, np.ndarray, Counts]]:
    """Yield graphs with the counts of patterns."""
    ring = np.arange(1, leaves + 1)
    none = dict.fromkeys(("cycle-4", "cycle-5", "cycle-6", "cycle-8", "house", "path-5", "path-8"), 0)
    stars = {f"{how}star-{k}": comb(leaves, k) for how in ("", "induced ") for k in (4, 8, 15)}
    yield "star", star(leaves), stars | none | {"motifs-5": comb(leaves, 4)}
    wheel = np.concatenate([star(leaves), np.stack([ring, np.roll(ring, -1)])], axis=1)
    cycles = dict.fromkeys(("triangle", "cycle-4", "cycle-5", "cycle-6", "cycle-8", "induced cycle-6"), leaves)
    cycles["induced cycle-6"] = 0
    paths = {f"path-{size}": ring_paths(leaves, size) for size in (6, 8)}
    sets = {f"induced star-{k}": comb(leaves - k, k) + comb(leaves - k - 1, k - 1) for k in (5, 8)}
    yield "star with a ring", wheel, cycles | paths | sets
    other = np.stack([np.full(leaves, -1), -np.arange(2, leaves + 2)])
    both = np.concatenate([star(leaves), other, [[0], [-1]]], axis=1)
    pairs = ",".join(["0-1", *(f"0-{v},1-{v + 3}" for v in (2, 3, 4))])
    yield "two hubs", both, {"path-4": leaves**2, "path-5": 0, pairs: comb(leaves, 3) ** 2}
    clique = np.concatenate([star(leaves), -complete(12)], axis=1)
    yield "clique with leaves", clique, {"cycle-6": comb(12, 6) * 60, "cycle-8": comb(12, 8) * 2520}
    yield "K200", complete(200), {"path-8": perm(200, 8) // 2, "cycle-8": perm(200, 8) // 16}
    sides = np.stack(np.divmod(np.arange(300 * 300), 300)) + np.array([[0], [300]])
    yield "K300,300", sides, {"path-8": perm(300, 4) ** 2, "cycle-8": perm(300, 4) ** 2 // 8}


def ring_paths(leaves: int, size: int) -> int:
    """Return the number of paths of a star with a ring: in the ring, and through the hub with a path on either side."""
    ends = 0
    for left in range(size):
        right = size - 1 - left
        if left and right:  # the second path lies where the first is not
            ends += leaves * min(2, left) * (leaves - left - right + 1) * min(2, right)
        else:
            ends += leaves * min(2, left + right)
    return leaves + ends // 2


def mined(graph: Graph, pattern: str, engine: str) -> tuple[int, float]:
    """Count; return the number and the seconds of mining."""
    induced, name = pattern.startswith("induced "), pattern.removeprefix("induced ")
    workload: dict[str, Any] = {"kind": "match", "pattern": name, "induced": induced}
    if pattern == "motifs-5":
        workload = {"kind": "motifs", "k": 5}
    with tempfile.TemporaryDirectory() as folder:
        run = {"directory": folder, "name": "run", "report": False}
        result = longwall.run({"graph": graph, "workload": workload, "engine": {"kind": engine}, "run": run})
    return sum(one.count or 0 for one in result.patterns), result.timings["mine"]


class TooLong(Exception):
    """A count passed its limit."""


def within(seconds: float, graph: Graph, pattern: str, engine: str) -> tuple[int, float]:
    """Count as `mined` does; raise `TooLong` after so many seconds, when its kernels have stopped."""
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.01))
    try:
        return mined(graph, pattern, engine)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def stop(*_: object) -> None:
    """End the count that is running; the process, where that takes as long again."""
    signal.signal(signal.SIGALRM, lambda *_: (print("a count cannot be interrupted", flush=True), os._exit(3)))
    signal.setitimer(signal.ITIMER_REAL, 20)
    raise TooLong


def main() -> None:
    """Count everything, twice."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--leaves", type=int, default=1_000_000)
    parser.add_argument("--limit", type=float, default=20, help="seconds for one count")
    parser.add_argument("--time", type=float, default=300, help="seconds for everything")
    parser.add_argument("--only", nargs="*", default=[], help="graphs that are counted; else all")
    options = parser.parse_args()
    end, late = time.monotonic() + options.time, False
    print("| graph | pattern | count | s, first run | s, second run |\n|---|---|---|---|---|", flush=True)
    for name, edges, counts in cases(options.leaves):
        if options.only and name not in options.only:
            continue
        graph = build_graph(*edges)
        for pattern, expected in counts.items():
            signal.signal(signal.SIGALRM, stop)
            left = [min(options.limit, end - time.monotonic())]
            try:
                first = within(left[0], graph, pattern, options.engine)
                left.append(min(options.limit, end - time.monotonic()))
                again = within(left[1], graph, pattern, options.engine)
            except TooLong:
                print(f"| {name} | {pattern} | | run {len(left)}: > {left[-1]:.0f} | |", flush=True)
                late = True
                continue
            if not first[0] == again[0] == expected:
                sys.exit(f"{name}, {pattern}: {first[0]} and {again[0]}, not {expected}")
            print(f"| {name} | {pattern} | {expected} | {first[1]:.3f} | {again[1]:.3f} |", flush=True)
    sys.exit(3 if late else 0)


if __name__ == "__main__":
    main()
