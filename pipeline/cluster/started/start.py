"""Start the workers of this machine that a config asks for, or say why they cannot be."""

from __future__ import annotations

import signal
from collections.abc import Sequence

from longwall.pipeline.cluster.machine_share import worker_count
from longwall.pipeline.cluster.started.processes import Met, StartedWorkers
from longwall.pipeline.cluster.started.worker_main import WorkerStart
from longwall.pipeline.cluster.worker_process import RunHeader
from longwall.pipeline.config import SchedulerSection
from longwall.storage.errors import InputError, RunError
from longwall.storage.system.concurrency import core_count, most_threads

_MOST_WORKERS, _WORKERS_PER_CORE = 16, 4  # of this machine, whichever is more
_DEVICE_THREADS = 2  # of a worker with a device: its ranges overlap, or the next request is ready
_GUARD = 'a Python script has to call longwall.run below `if __name__ == "__main__":`, since they import it'


def start_workers(
    section: SchedulerSection, cores: int, devices: Sequence[str], header: RunHeader | None
) -> StartedWorkers:
    """Start the workers of this machine; see `connected` for the parameters."""
    workers = worker_count(section, cores, devices)
    threads = section.threads_per_worker or (_DEVICE_THREADS if devices else max(cores // workers, 1))
    _check_size(workers, threads)
    starts = []
    for number in range(workers):
        device = devices[number % len(devices)] if devices else None
        name = f"worker {number}" + ("" if device is None else f" (device {device})")
        starts.append(WorkerStart(name, threads, device, header))
    try:
        return StartedWorkers(starts)
    except RuntimeError as error:
        raise RunError(f"the workers could not be started ({error}): {_GUARD}") from error


def why_missing(met: Met, seconds: float) -> str:
    """Say why workers of this machine are missing after a given number of seconds."""
    text = f"only {met.there} of {met.wanted} workers could be started: "
    if met.codes == [1] * met.wanted:  # with which Python refuses to start processes while it imports a script
        return text + _GUARD
    if met.reasons:
        return text + met.reasons[0]
    for code in met.codes:
        if code is not None and code < 0:
            return text + f"{_signal_name(-code)} ended the process of one twice; is there memory for them all?"
        return text + f"the process of one ended{'' if code is None else f' with exit code {code}'}"
    return text + f"the others have not come in {seconds:.0f} s"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time one
        return f"signal {number}"


def _check_size(workers: int, threads: int) -> None:
    """Refuse far more processes, or threads of each, than this machine has cores."""
    cores = core_count()
    most = max(_MOST_WORKERS, _WORKERS_PER_CORE * cores)
    if workers > most:
        raise InputError(f"scheduler.workers: {workers} processes are too many for {cores} cores: use at most {most}")
    if workers * threads > most_threads():
        raise InputError(
            f"scheduler.threads_per_worker: {threads} threads of each of {workers} processes are too many for {cores} "
            f"cores: use at most {most_threads() // workers}"
        )
