"""Predict the cost of a config: sample its phases on this machine, and compute what that takes on others."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longwall.pipeline.config import RunSpec
from longwall.pipeline.execution.device_graph import release_graph
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.prediction.costs import COMPUTING, Cost, Demand, predict_cost
from longwall.pipeline.prediction.phase_sample import PhaseSample, sample_phase
from longwall.pipeline.prediction.rates import own_rates, read_rates
from longwall.pipeline.quoting import round_number
from longwall.pipeline.run_store.local_store import LocalStore
from longwall.pipeline.run_store.run_files import RunFiles
from longwall.pipeline.run_store.run_names import RESULTS
from longwall.storage.graph.graph import Graph
from longwall.storage.memory.resources import Resources
from longwall.storage.memory.sizes import round_size
from longwall.storage.observer import NullObserver
from longwall.storage.remote.urls import is_url

SECONDS, LEAST_SECONDS = 1.5, 0.05
"""That a phase is sampled for, and that one still is when `MOST_SECONDS` are over."""
MOST_SECONDS = 15.0


@dataclass(frozen=True)
class Where:
    """The machines that a run is predicted for.

    Attributes
    ----------
    workers
        How many; None: this one.
    rates
        A file with their rates; None: they are as this one.
    """

    workers: int | None = None
    rates: Path | None = None


def sample_plan(plan: Any, spec: RunSpec, graph: Graph, resources: Resources) -> tuple[PhaseSample, ...]:
    """Sample every phase of a plan.

    Raises
    ------
    Unpredictable
        If its phases are not known.
    DoesNotFit, InputError, RunError
        As of the phases.
    """
    from longwall.pipeline.prediction.phases import phases_of

    samples: list[PhaseSample] = []
    began = time.monotonic()
    with _environment(spec, graph, resources) as env:
        phases = phases_of(plan, env)
        phase = next(phases, None)
        while phase is not None:
            left = MOST_SECONDS - (time.monotonic() - began)
            samples.append(sample_phase(phase, env, min(SECONDS, max(left, LEAST_SECONDS)), seed=len(samples)))
            try:
                phase = phases.send(samples[-1])
            except StopIteration:
                phase = None
    return tuple(samples)


def demand_of(
    samples: tuple[PhaseSample, ...], spec: RunSpec, graph: Graph, resources: Resources, read_seconds: float
) -> Demand:
    """Return what a run asks for, once its phases are sampled."""
    path = spec.graph.path
    paths = path if isinstance(path, tuple) else () if path is None else (path,)
    return Demand(
        samples=samples,
        own=own_rates(resources.engine, _folder(spec)),
        read_bytes=sum(map(_size, paths)),
        read_seconds=read_seconds if paths or spec.graph.generator else 0.0,
        graph_bytes=graph.nbytes,
        host_bytes=resources.host.peak,
        device_bytes=resources.work.peak if resources.on_device else 0,
        over_network=any(is_url(str(one)) for one in paths),
    )


def cost_of(demand: Demand, where: Where) -> Cost:
    """Return the prediction for some machines.

    Raises
    ------
    InputError
        If the file of rates is wrong.
    """
    rates = demand.own if where.rates is None else read_rates(where.rates, demand.own)
    return predict_cost(demand, rates, where.workers or 1)


def describe_cost(cost: Cost, samples: tuple[PhaseSample, ...], *, limited: bool) -> list[str]:
    """Return the prediction as lines of ``longwall explain``; `limited`: the run may end before all is done."""
    rates = cost.rates
    each = f"{rates.devices} devices" if rates.devices else f"{rates.threads} threads"
    machines = "this machine" if cost.workers == 1 else f"{cost.workers} machines"
    most = cost.bottleneck
    lines = [
        f"cost         about {_seconds(cost.seconds)} on {machines} of {each}; most of it is {most.name}, "
        f"{most.seconds / max(cost.seconds, 1e-9):.0%}"
    ]
    lines += [
        f"{part.name:<13}{_seconds(part.seconds):>10}   {part.text}"
        for part in cost.parts
        if part.seconds >= 0.001 or part.name == COMPUTING
    ]
    seen = min((one.share for one in samples), default=1.0)
    how = "all phases were done for it" if seen == 1.0 else f"by samples of the phases, {seen:.2%} of one at least"
    lines.append(f"sampled      {how}{'; a run that ends at its limit takes less' if limited else ''}")
    moved = [f"disk {round_size(cost.disk)}", f"network {round_size(cost.network)}"]
    held = [f"each host {round_size(int(cost.host))}"]
    held += [f"each device {round_size(cost.device)}"] if cost.device else []
    lines.append(f"bytes        moved: {', '.join(moved)}; held at most: {', '.join(held)}")
    return lines


def _seconds(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds < 1000 else f"{round_number(seconds)} s"


@contextmanager
def _environment(spec: RunSpec, graph: Graph, resources: Resources) -> Iterator[Environment]:
    """Yield what phases work with; what they write is in the spill folder, which is removed."""
    folder = resources.spill.path / "prediction"
    results = folder / RESULTS.rstrip("/")
    results.mkdir(parents=True)
    numbers: dict[str, int] = {}

    def next_number(prefix: str) -> int:
        numbers[prefix] = numbers.get(prefix, -1) + 1
        return numbers[prefix]

    env = Environment(
        spec=spec,
        graph=graph,
        resources=resources,
        files=RunFiles(LocalStore(folder), resources.disk, next_number),
        results=results,
        observer=NullObserver(),
        cancel=threading.Event(),
    )
    try:
        yield env
    finally:
        env.close()
        release_graph(env)
        shutil.rmtree(folder, ignore_errors=True)


def _folder(spec: RunSpec) -> Path:
    """Return the folder that exists where the run would write, for its disk."""
    folder = Path() if isinstance(spec.run.directory, str) else spec.run.directory.absolute()
    return next(path for path in (folder, *folder.parents) if path.is_dir())


def _size(path: Path | str) -> int:
    """Return the bytes of a file, or of the files of a store; 0 at a URL."""
    if is_url(str(path)):
        return 0
    place = Path(path)
    if place.is_dir():
        return sum(one.stat().st_size for one in place.rglob("*") if one.is_file())
    return place.stat().st_size if place.is_file() else 0
