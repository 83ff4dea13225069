"""What a run takes on machines of given rates: bytes of every tier, seconds, and what most of them are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from longwall.pipeline.prediction.phase_sample import PhaseSample
from longwall.pipeline.prediction.rates import Rates
from longwall.pipeline.prediction.schedule import CUTS, DEVICE_CUTS, simulate
from longwall.storage.memory.sizes import round_size

COMPUTING = "computing"


@dataclass(frozen=True)
class Demand:
    """What a run asks for, whatever the machine.

    Attributes
    ----------
    samples
        The phases, as they were sampled.
    own
        The rates of the machine that sampled them.
    read_bytes
        Of the graph's file or store; 0 where the graph is made in memory.
    read_seconds
        What reading it took on that machine, with all of its threads.
    graph_bytes
        Of the graph's arrays in memory.
    host_bytes, device_bytes
        The most of a worker process' budgets that was in use.
    over_network
        Whether the graph's file is at a URL.
    result_bytes
        Of the results, where these are not known from the samples.
    """

    samples: tuple[PhaseSample, ...]
    own: Rates
    read_bytes: int
    read_seconds: float
    graph_bytes: int
    host_bytes: int
    device_bytes: int = 0
    over_network: bool = False
    result_bytes: float = 0.0

    @property
    def written(self) -> float:
        """Bytes of the results, and of the files that phases write."""
        return self.result_bytes + sum(one.file_bytes for one in self.samples)


class Part(NamedTuple):
    """A part of a run.

    Attributes
    ----------
    name
        The tier, or what is done.
    text
        What it is, and at which rate.
    seconds
        Predicted.
    """

    name: str
    text: str
    seconds: float


@dataclass(frozen=True)
class Cost:
    """The prediction.

    Attributes
    ----------
    parts
        One after the other.
    workers
        Machines.
    rates
        Of each.
    disk, host, device, network
        Bytes: read and written by each machine's disk, held in its memory, held on each of its devices, and sent over
        the network in all.
    """

    parts: tuple[Part, ...]
    workers: int
    rates: Rates
    disk: float
    host: float
    device: int
    network: float

    @property
    def seconds(self) -> float:
        """Predicted for the whole run."""
        return sum(part.seconds for part in self.parts)

    @property
    def bottleneck(self) -> Part:
        """The longest part."""
        return max(self.parts, key=lambda part: part.seconds)

    def of(self, name: str) -> float:
        """Return the predicted seconds of a part."""
        return sum(part.seconds for part in self.parts if part.name == name)


def predict_cost(demand: Demand, rates: Rates, workers: int = 1) -> Cost:
    """Predict a run on a given number of machines.

    Every machine reads the graph, which its processes share; every process makes for itself what a phase begins with.
    Ranges are shared out, and results go to the coordinator.

    Parameters
    ----------
    demand
        What the run asks for.
    rates
        Of each machine.
    workers
        Machines; 1: the run is in one process or, where the machine has devices, one for each of them.
    """
    own = demand.own
    faster = rates.steps / own.steps  # a thread (or device) than one of those that sampled
    # What is done by all threads of the host; devices say nothing of those.
    threads = 1.0 if rates.devices or own.devices else own.threads / rates.threads / faster
    processes = max(rates.devices, 1)
    clustered = workers * processes > 1
    read = _read(demand, rates, workers, demand.read_seconds * threads)
    link, over = _link(demand, rates)
    opened = sum(one.open_seconds for one in demand.samples) * threads
    loading = sum(one.load_seconds for one in demand.samples) / (1.0 if rates.devices else faster)
    mined, requests, dispatching = _mine(demand.samples, faster, rates, workers * rates.slots, clustered=clustered)
    sent = demand.written if clustered else 0.0
    written = demand.written / rates.disk_write / workers
    results = max(written, sent / rates.network if workers > 1 else 0.0)
    each = "device" if rates.devices else "thread"
    parts = [
        Part("start", "processes, libraries and kernels", rates.start_seconds + loading),
        read,
        *([Part("link", f"{round_size(over)} to each device", link)] if rates.devices else []),
        Part("tables", "what every process makes of the graph", opened),
        Part(COMPUTING, f"{sum(one.seconds for one in demand.samples) / faster:.3g} s of one {each}", mined),
        *([Part("dispatching", f"{requests:,} requests", dispatching)] if clustered else []),
        Part("results", "written, and sent to the coordinator" if clustered else "written", results),
    ]
    remote = workers > 1 or demand.over_network
    return Cost(
        tuple(parts),
        workers,
        rates,
        (0 if demand.over_network else demand.read_bytes) + demand.written / workers,
        _held(demand, rates, processes),
        demand.device_bytes or int(min(over, rates.device_memory or over)),
        (demand.read_bytes * workers if remote else 0) + (sent if workers > 1 else 0.0),
    )


def _held(demand: Demand, rates: Rates, processes: int) -> float:
    """Predict the bytes in a machine's memory.

    Its processes share one graph; where their devices do not hold it, each has the neighbours in managed memory, too.
    """
    own = max(demand.host_bytes - demand.graph_bytes, 0)
    return demand.graph_bytes * (1 + (processes if processes > 1 and _away(demand, rates) else 0)) + own * processes


def _away(demand: Demand, rates: Rates) -> bool:
    """Whether devices hold only a part of the graph."""
    return 0 < rates.device_memory < demand.graph_bytes and rates.devices > 0


def _read(demand: Demand, rates: Rates, workers: int, decoding: float) -> Part:
    """Predict the reading of the graph: the slowest of the disk or the network, and of decoding."""
    distant = demand.over_network or workers > 1
    ways = {
        "network" if distant else "disk": demand.read_bytes / (rates.network if distant else rates.disk_read),
        "decoding": decoding,
    }
    if workers == 1 and not distant and demand.own == rates:
        ways = {"decoding": decoding}  # as it was measured, the disk included
    slowest = max(ways, key=lambda way: ways[way])
    return Part("reading", f"the graph; its bottleneck is {slowest}", ways[slowest])


def _link(demand: Demand, rates: Rates) -> tuple[float, float]:
    """Predict the seconds and the bytes that cross the link of each device.

    A graph that a device does not hold crosses the link graph / device_memory times: with a quarter and a tenth of
    R-MAT 25, triangles took a third of these bytes, 4-cliques up to 1.25 times as many. Devices have links of their
    own, and share the host's memory.
    """
    if not rates.devices:
        return 0.0, 0.0
    over = demand.graph_bytes * (demand.graph_bytes / rates.device_memory if _away(demand, rates) else 1.0)
    return max(over / rates.link, rates.devices * over / rates.memory), over


def _mine(
    samples: Sequence[PhaseSample], faster: float, rates: Rates, slots: int, *, clustered: bool
) -> tuple[float, int, float]:
    """Predict the seconds of all phases, the requests, and how far these prolong it."""
    request, cuts = rates.request_seconds if clustered else 0.0, DEVICE_CUTS if rates.devices else CUTS
    total, alone, requests = 0.0, 0.0, 0
    for sample in samples:
        strata = [one.seconds / faster for one in sample.strata]
        with_requests = simulate(strata, slots, sample.longest / faster, request, cuts)
        even = simulate(strata, slots, sample.longest / faster, 0.0, cuts) if clustered else with_requests
        total, alone, requests = total + with_requests.seconds, alone + even.seconds, requests + with_requests.requests
    return alone, requests, max(total - alone, 0.0)
