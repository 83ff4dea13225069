"""Predict the cost of a config: sample its phases on this machine, and compute what that takes on others."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longwall.pipeline.config import RunSpec
from longwall.pipeline.execution.coordinator import Coordinator, Executor
from longwall.pipeline.execution.device_graph import release_graph
from longwall.pipeline.execution.engine_errors import user_errors
from longwall.pipeline.execution.environment import Metrics
from longwall.pipeline.execution.phase import NotEnoughMemory, Phase, TooExpensive
from longwall.pipeline.planning.plan import CountPlan
from longwall.pipeline.prediction.costs import COMPUTING, Cost, Demand, predict_cost
from longwall.pipeline.prediction.phase_sample import PhaseSample, sample_phase
from longwall.pipeline.prediction.rates import own_rates, read_rates
from longwall.pipeline.prediction.schedule import CUTS, DEVICE_CUTS, simulate
from longwall.pipeline.quoting import round_number
from longwall.pipeline.run_store.commit_log import CommitLog, PartialResult, PhaseRecord
from longwall.pipeline.run_store.local_store import LocalStore
from longwall.pipeline.run_store.run_files import RunFiles
from longwall.pipeline.run_store.run_names import RESULTS
from longwall.pipeline.workloads.frequent.plan import FrequentPlan
from longwall.storage.errors import InputError, RunError
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


class Unpredictable(Exception):
    """What a run does next depends on results that samples do not have; the message says why."""


def sample_plan(plan: Any, spec: RunSpec, graph: Graph, resources: Resources) -> tuple[PhaseSample, ...]:
    """Execute a plan with samples in place of its phases, as far as it asks for nothing that a sample does not know.

    Raises
    ------
    Unpredictable
        If no phase is known.
    InputError, RunError
        As of the phases.
    """
    if isinstance(plan, FrequentPlan):
        raise Unpredictable("what its phases do is known only when those before are done")
    sampler, spec = _Sampler(), _of_all(spec)
    with (
        # In the whole graph: a part is less work or none, which only a run finds out.
        _coordinator(spec, graph, resources, sampler, whole=True) as env,
        user_errors(env.engine),
        suppress(Unpredictable),
    ):
        spec.workload.execute(plan, env)
    return tuple(sampler.samples)


@dataclass(frozen=True)
class CountSample:
    """What samples of the phases of a count say of it.

    Attributes
    ----------
    seconds
        Predicted for this machine.
    host, device
        The most bytes of each budget in use at once, beyond those of the graph.
    whole
        Whether all phases are known; False: those that follow depend on results of others, and take more.
    failure
        Why the count gives way to another method; empty: it does not.
    """

    seconds: float
    host: int
    device: int
    whole: bool
    failure: str


def sample_count(plan: CountPlan, spec: RunSpec, graph: Graph, resources: Resources, seconds: float) -> CountSample:
    """Count by one plan with samples in place of its phases, each for at most a given number of seconds.

    Graphs that the plan derives are made, and their seconds are those that it took.
    """
    sampler, spec, failure, whole = _Sampler(seconds), _of_all(spec), "", True
    work = resources.work.watched() if resources.on_device else nullcontext(lambda: 0)
    with resources.host.watched() as host, work as device:
        began = time.perf_counter()
        try:
            with (
                _coordinator(spec, graph, resources, sampler, whole=False) as env,
                user_errors(env.engine),
            ):
                plan.count(env)
                elapsed = time.perf_counter() - began
        except Unpredictable:
            whole = False
        except TooExpensive as error:
            failure = f"gives way: {str(error) or 'not much less work than the next one'}"
        except (InputError, RunError) as error:
            failure = f"{'no room' if isinstance(error, NotEnoughMemory) else 'fails'}: {error}"
        if failure or not whole:
            elapsed = time.perf_counter() - began
        slots = 1 if resources.on_device else resources.engine.workers
        cuts = DEVICE_CUTS if resources.on_device else CUTS
        predicted = sum(
            one.open_seconds + simulate([part.seconds for part in one.strata], slots, one.longest, 0.0, cuts).seconds
            for one in sampler.samples
        )
        rest = max(elapsed - sampler.seconds, 0.0)
        return CountSample(predicted + rest, host(), device(), whole, failure)


class _Sampler:
    """Samples phases in place of doing them, each for at most a given number of seconds; see `Executor`."""

    def __init__(self, most: float = SECONDS) -> None:
        self.samples: list[PhaseSample] = []
        self.engines: set[str] = set()
        self.seconds = 0.0
        self._most, self._left = most, MOST_SECONDS / SECONDS * most

    def run(self, phase: Phase, env: Coordinator) -> PhaseRecord:
        """Sample a phase."""
        began = time.monotonic()
        seconds = min(self._most, max(self._left - self.seconds, LEAST_SECONDS))
        sample = sample_phase(phase, env, seconds, seed=len(self.samples))
        self.samples.append(sample)
        self.seconds += time.monotonic() - began
        partials = [PartialResult(_estimated(value, sample.share)) for value in sample.values]
        return _SampledRecord(phase.name, 0, env.log, partials=partials)


class _SampledRecord(PhaseRecord):
    """What a sample knows of the results of a phase."""

    @property
    def values(self) -> list[Any]:
        """Estimates of the values."""
        if any(value is None for value in super().values):
            raise Unpredictable("what follows depends on what is found")
        return super().values

    def files(self) -> list[dict[str, Any]]:
        """Refuse: a sample has none."""
        raise Unpredictable("what follows depends on files that are not written")


def _estimated(value: Any, share: float) -> Any:
    """Estimate a value: magnitudes grow by the share that was done; exact numbers are 0, which no check refuses."""
    if isinstance(value, list | tuple):
        return [_estimated(one, share) for one in value]
    if isinstance(value, float):
        return value / share
    return 0 if isinstance(value, int) else None


def _of_all(spec: RunSpec) -> RunSpec:
    """Return a config without limits, depth-first: how much a limit leaves to do is not known."""
    workload, nothing = spec.workload, {"limit": None}
    if workload.most_embeddings is not None:
        workload = workload.model_copy(update=nothing)
    export, scheduler = spec.export.model_copy(update=nothing), spec.scheduler.model_copy(update={"order": "depth"})
    return spec.model_copy(update={"workload": workload, "export": export, "scheduler": scheduler})


def demand_of(
    samples: tuple[PhaseSample, ...], spec: RunSpec, graph: Graph, resources: Resources, read_seconds: float
) -> Demand:
    """Return what a run asks for, once its phases are sampled."""
    path = spec.graph.source
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


def cost_facts(cost: Cost, samples: tuple[PhaseSample, ...], *, limited: bool) -> dict[str, Any]:
    """Return the prediction as data; parameters as of `describe_cost`."""
    return {
        "seconds": cost.seconds,
        "machines": cost.workers,
        "threads": cost.rates.threads,
        "devices": cost.rates.devices,
        "longest": cost.bottleneck.name,
        "parts": [part._asdict() for part in cost.parts],
        "sampled_share": min((one.share for one in samples), default=1.0),
        "may_end_at_limit": limited,
        "bytes": {"disk": cost.disk, "network": cost.network, "host": cost.host, "device": cost.device},
    }


def _seconds(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds < 1000 else f"{round_number(seconds)} s"


@contextmanager
def _coordinator(
    spec: RunSpec, graph: Graph, resources: Resources, executor: Executor, *, whole: bool
) -> Iterator[Coordinator]:
    """Yield what the plan works with; what is written is in the spill folder, and is removed."""
    folder = resources.spill.path / "prediction"
    (folder / RESULTS).mkdir(parents=True)
    log = CommitLog(LocalStore(folder))
    env = Coordinator(
        spec=spec,
        graph=graph,
        resources=resources,
        files=RunFiles(log.store, resources.disk, log.next_number),
        observer=NullObserver(),
        cancel=threading.Event(),
        log=log,
        metrics=Metrics(),
        executor=executor,
        whole=whole,
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
