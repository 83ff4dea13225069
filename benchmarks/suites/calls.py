"""Measure the fixed cost of a function in Python: calls in a loop on a graph of three vertices, in processor time.

    python -m benchmarks.suites.calls [--engine cpu] [--calls 50] [--repeat 5] [--steps]

The graph is in memory and kernels are loaded: 5 calls go ahead of those that count. Milliseconds of the process for one
call, all threads, the least of the repetitions; on a busy machine these say more than seconds on the clock. ``--steps``
says where those of a count go: a step is timed around its function, so the sum of the steps is a little more.
"""

import argparse
import json
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from importlib import import_module
from typing import Any

_AHEAD = 5
_RUN = "longwall.pipeline.run"
_STEPS = (
    ("config", "longwall.pipeline.functions.one_run", "Question.of"),
    ("run and its place", _RUN, "RunDirectory.transient"),
    ("budgets, engine", _RUN, "open_resources"),
    ("kept engine", _RUN, "take_engine"),
    ("graph", _RUN, "_graph"),
    ("plan", _RUN, "plan_for"),
    ("checkpoint", _RUN, "_coordinator"),
    ("phase: tasks, thread, kernel", "longwall.pipeline.workloads.match", "Match.execute"),
    ("results", _RUN, "_publish"),
)
"""What a step is called, and the function that does it."""


def questions(graph: Any, engine: str) -> dict[str, Callable[[], object]]:
    """Return calls of functions by their names."""
    import longwall

    patterns = ("triangle", "clique-5", "house", "cycle-7")
    counts = {one: lambda one=one: longwall.count(graph, one, engine=engine) for one in patterns}
    return counts | {
        "motifs of 3": lambda: longwall.motifs(graph, 3, engine=engine),
        "triangles per vertex": lambda: longwall.triangles(graph, per="vertex", engine=engine),
        "rows of wedges": lambda: longwall.match(graph, "wedge", engine=engine).to_arrow(),
        "frequent patterns": lambda: longwall.frequent(graph, support=1, max_edges=2, engine=engine),
    }


def milliseconds(call: Callable[[], object], calls: int, repeat: int) -> float:
    """Return what a call takes of the processors."""
    for _ in range(_AHEAD):
        call()
    least = float("inf")
    for _ in range(repeat):
        began = time.process_time()
        for _ in range(calls):
            call()
        least = min(least, time.process_time() - began)
    return least / calls * 1e3


def watch(spent: dict[str, float], label: str, module: str, name: str) -> None:
    """Let the seconds of processors in a function be added up, from now on."""
    owner = import_module(module)
    *above, last = name.split(".")
    for part in above:
        owner = getattr(owner, part)
    function = getattr(owner, last)

    @wraps(function)
    def timed(*given: Any, **named: Any) -> Any:
        given = given[1:] if isinstance(owner, type) and isinstance(given[0], type) else given  # it is bound already
        began = time.process_time()
        try:
            return function(*given, **named)
        finally:
            spent[label] += time.process_time() - began

    bound = isinstance(owner, type) and getattr(function, "__self__", None) is owner
    setattr(owner, last, classmethod(timed) if bound else timed)


def steps(call: Callable[[], object], calls: int, repeat: int) -> dict[str, float]:
    """Return milliseconds of each step of a call, the least of some repetitions, and of what is in none."""
    spent: dict[str, float] = defaultdict(float)
    for label, module, name in _STEPS:
        watch(spent, label, module, name)
    found: dict[str, float] = {}
    for _ in range(repeat):
        for _ in range(_AHEAD):
            call()
        spent.clear()
        began = time.process_time()
        for _ in range(calls):
            call()
        whole = time.process_time() - began
        spent["rest: threads' end, signals, garbage"] = whole - sum(spent.values())
        for label, seconds in spent.items():
            found[label] = min(found.get(label, float("inf")), seconds / calls * 1e3)
    return found


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", default="cpu", choices=("cpu", "cuda", "auto"))
    parser.add_argument("--calls", type=int, default=50)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--steps", action="store_true")
    arguments = parser.parse_args()
    began = time.process_time()
    import longwall

    imported = time.process_time()
    graph = longwall.graph([(0, 1), (1, 2), (0, 2)])
    made = time.process_time()
    working: AbstractContextManager[str] = tempfile.TemporaryDirectory()
    with working as folder:
        os.chdir(folder)
        assert longwall.count(graph, "triangle", engine=arguments.engine) == 1
        first = time.process_time()
        print(f"import {1e3 * (imported - began):.0f} ms, first graph {1e3 * (made - imported):.0f} ms, ", end="")
        print(f"first count {1e3 * (first - made):.0f} ms", flush=True)
        asked = questions(graph, arguments.engine)
        for name, call in asked.items():
            print(f"  {name:<32} {milliseconds(call, arguments.calls, arguments.repeat):7.2f} ms", flush=True)
        if arguments.steps:
            print("steps of a count of triangles")
            found = steps(asked["triangle"], arguments.calls, arguments.repeat)
            for label, took in sorted(found.items(), key=lambda one: -one[1]):
                print(f"  {label:<32} {took:7.2f} ms")
        os.chdir("/")
    from benchmarks.lib.machine import describe_machine

    print(json.dumps(describe_machine()))


if __name__ == "__main__":
    main()
