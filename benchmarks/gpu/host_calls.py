"""Count what the host asks of a device while a labelled pattern is mined, and time the host's code in between.

    PYTHONPATH=tests/emulator python -m benchmarks.gpu.host_calls [--scale 8] [--patterns P9 P11] [--calls]

Needs no GPU: calls go to the emulator, and the time that is spent in them is taken off. A line for each pattern:
launches, copies to and from the device, new arrays, other operations on arrays, waits, and microseconds of the host's
processors besides, the least of some counts. ``--calls`` prints where calls come from.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import longwall
from benchmarks.lib.seed_patterns import TDFS, TDFS_LABELLED, mod_labels
from benchmarks.lib.seed_runs import make_graph
from longwall.pipeline.planning.rewrites.label_partition import LabelPartitionPlan

KINDS = ("launch", "copy", "array", "operation", "wait")


class Tally:
    """Calls of each kind while it is open, by the line that they come from, and the seconds of processors in them."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()
        self.inside, self._depth, self.open = 0.0, 0, False

    def of(self, kind: str) -> int:
        """Return the calls of a kind."""
        return sum(number for (one, _), number in self.calls.items() if one == kind)

    def noted(self, kind: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function whose calls are counted, but for those inside others."""

        @wraps(function)
        def call(*given: Any, **named: Any) -> Any:
            if not self.open or self._depth:
                return function(*given, **named)
            frame = sys._getframe(1)
            self.calls[kind, f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_name}:{frame.f_lineno}"] += 1
            self._depth, began = 1, time.process_time()
            try:
                return function(*given, **named)
            finally:
                self._depth = 0
                self.inside += time.process_time() - began

        return call


def watch(tally: Tally) -> None:
    """Let all calls of the device be counted, from now on."""
    import cupy  # the emulator's

    cupy.RawKernel.__call__ = tally.noted("launch", cupy.RawKernel.__call__)
    for owner, names, kind in (
        (cupy.ndarray, ("get", "set"), "copy"),
        (cupy, ("asarray", "array", "asnumpy"), "copy"),
        (cupy, ("empty", "zeros", "full", "ones", "arange", "ascontiguousarray"), "array"),
        (cupy.ndarray, ("__getitem__", "__setitem__", "fill", "view", "reshape", "astype", "__int__"), "operation"),
        (cupy.cuda.Device, ("synchronize",), "wait"),
    ):
        for name in names:
            setattr(owner, name, tally.noted(kind, getattr(owner, name)))


@contextmanager
def counting(tally: Tally) -> Iterator[list[float]]:
    """Open a tally while patterns with labels are counted; the list gets the seconds of each count."""
    count, seconds = LabelPartitionPlan.count, []

    def counted(plan: LabelPartitionPlan, env: Any) -> int:
        tally.calls.clear()
        tally.inside, tally.open, began = 0.0, True, time.process_time()
        try:
            return count(plan, env)
        finally:
            tally.open = False
            seconds.append(time.process_time() - began - tally.inside)

    LabelPartitionPlan.count = counted  # type: ignore[method-assign]
    try:
        yield seconds
    finally:
        LabelPartitionPlan.count = count  # type: ignore[method-assign]


def main() -> int:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=int, default=8, help="of the R-MAT graph")
    parser.add_argument("--patterns", nargs="+", choices=TDFS_LABELLED, default=["P9", "P11"])
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--calls", action="store_true", help="print where calls come from")
    settings = parser.parse_args()
    tally = Tally()
    watch(tally)
    print(f"| pattern | {' | '.join(KINDS)} | host us |\n|---|" + "---:|" * (len(KINDS) + 1))
    with tempfile.TemporaryDirectory() as folder, counting(tally) as seconds:
        make_graph(f"{folder}/graph.zarr", scale=settings.scale, labelled=True)
        graph = longwall.open_graph(f"{folder}/graph.zarr")
        for number in settings.patterns:
            edges = TDFS[TDFS_LABELLED[number]]
            workload = {"kind": "match", "pattern": edges, "pattern_labels": mod_labels(edges)}
            seconds.clear()
            for _ in range(settings.runs):
                run = {"directory": folder, "report": False}
                longwall.run({"graph": graph, "workload": workload, "engine": {"kind": "cuda"}, "run": run})
            figures = " | ".join(str(tally.of(kind)) for kind in KINDS)
            print(f"| {number} | {figures} | {1e6 * min(seconds):.0f} |", flush=True)
            for (kind, place), times in sorted(tally.calls.items()) if settings.calls else ():
                print(f"    {times:3d} {kind} {place}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
