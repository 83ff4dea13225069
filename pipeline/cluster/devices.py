"""The worker processes of a run: whether it has any, their packages, and the GPU that each works with."""

from __future__ import annotations

from importlib.util import find_spec

from longwall.kernels import prepare_engine
from longwall.kernels.interface.engine import EngineUnavailable
from longwall.pipeline.config import RunSpec, SchedulerSection
from longwall.storage.errors import InputError


def devices_of(spec: RunSpec) -> list[str]:
    """Return the devices for the workers that are started for a run.

    Parameters
    ----------
    spec
        The run.

    Returns
    -------
    list of str
        As ``CUDA_VISIBLE_DEVICES`` names them. Empty where there are no such workers (one device, that this process
        would use anyway, or a cluster that is there already), or none of them gets a device.

    Raises
    ------
    InputError
        If the config names a device that is not there.
    """
    engine, scheduler = spec.engine, spec.scheduler
    embedded = scheduler.kind == "dask" and scheduler.address is None
    if engine.devices is None and not (embedded and engine.kind != "cpu"):
        return []
    from longwall.kernels.cuda.runtime.open_device import visible_devices

    try:
        there = visible_devices()
    except EngineUnavailable as reason:
        if engine.devices is None and engine.kind == "auto":
            return []
        key = "engine.kind" if engine.devices is None else "engine.devices"
        raise InputError(f"{key}: {reason}") from None
    numbers = engine.devices if isinstance(engine.devices, tuple) else range(len(there))
    for number in numbers:
        if number >= len(there):
            raise InputError(f"engine.devices: there is no device {number}, they are numbered 0 to {len(there) - 1}")
    here = scheduler.kind == "local" and list(numbers) == [0]
    return [] if here else [there[number] for number in numbers]


def require_dask(section: SchedulerSection) -> None:
    """Refuse a cluster if Dask, or a package that starting one here takes, is not installed (InputError)."""
    if find_spec("distributed") is None:
        key = 'scheduler.kind = "dask"' if section.kind == "dask" else "engine.devices"
        raise InputError(f"{key}: a cluster needs Dask: pip install 'longwall[cluster]'")
    if section.address is None and find_spec("cryptography") is None:
        raise InputError(
            "a cluster on this machine needs a certificate, and the package cryptography is missing: "
            "pip install 'longwall[cluster]'"
        )


def in_processes(spec: RunSpec) -> bool:
    """Return whether other processes do the work of a run."""
    return spec.scheduler.kind == "dask" or spec.engine.devices is not None


def prepare_for(spec: RunSpec) -> None:
    """Begin to open the device of a run, if this process will need it: the coordinator of a cluster does not."""
    if not in_processes(spec):
        prepare_engine(spec.engine.kind)
