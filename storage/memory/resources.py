"""The one opener of what a run works with: budgets of memory and disk, a spill folder, and an engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from longwall.kernels import select_engine
from longwall.kernels.interface.engine import Ablation, Engine, EngineUnavailable
from longwall.storage.errors import InputError
from longwall.storage.memory.machine_budget import default_disk_bytes, default_host_bytes
from longwall.storage.memory.reservations import MemoryBudget
from longwall.storage.memory.sizes import round_size
from longwall.storage.memory.spill_folder import SpillFolder

_DEVICE_SHARE = 0.9  # of what is free on a device for arrays: the rest is left to the driver
_ROUNDED = 64  # the part of a device's budget that is lost because the driver allocates in units of 2 MiB
_SPILL = Path("spill")


@dataclass(frozen=True)
class OptionNames:
    """What users call the options that set resources, for messages; advice that is None names an option.

    Attributes
    ----------
    host, disk, device, spill, access, engine
        The options.
    host_advice, disk_advice, spill_advice
        What the user can do where the host's memory or the disk is too small, or nothing can be spilled.
    """

    host: str
    disk: str
    device: str
    spill: str
    access: str
    engine: str
    host_advice: str | None = None
    disk_advice: str | None = None
    spill_advice: str | None = None


CONFIG_OPTIONS = OptionNames(
    "memory.host", "memory.disk", "memory.device", "memory.spill", "memory.access", "engine.kind"
)
CALL_OPTIONS = OptionNames("memory", "disk", "device", "spill", "access", "engine")
COMMAND_OPTIONS = OptionNames("--memory", "--disk", "--device", "--spill", "--access", "--engine")
# Where no option sets them, messages say what else helps.
_NO_OPTIONS = OptionNames(
    *("the share of free memory", "the share of free disk space", "the share of the device's memory"),
    *("the working folder", "the access", "the engine"),
    host_advice="free memory, or use a machine with more",
    disk_advice="free space there, or work in another folder",
    spill_advice="work in another folder, or free memory",
)


class EngineChoice(NamedTuple):
    """The engine that the user asks for; see :func:`longwall.kernels.select_engine`."""

    kind: str
    threads: int = 0
    ablation: Ablation | None = None


class Resources:
    """Budgets of memory and disk, a spill folder and an engine; a context manager that removes the spill folder.

    Attributes
    ----------
    host
        Host memory: the graph, tables, workspaces and buffers. The interpreter and the libraries are not in it.
    disk
        Spill files and the tables of checkpoints.
    spill
        The folder of the spill files.
    device
        Bytes of the device that the user allows; None for what is free there.
    options
        What messages call the options.

    Parameters
    ----------
    host, disk, spill, device, options
        See above.
    engine
        The engine; None opens the one of the host when it is first used.
    note
        Why the engine is not that of a device, if the user should know.
    """

    def __init__(
        self,
        host: MemoryBudget,
        disk: MemoryBudget,
        spill: SpillFolder,
        *,
        engine: Engine | None = None,
        device: int | None = None,
        options: OptionNames = CONFIG_OPTIONS,
        note: str = "",
    ) -> None:
        self.host, self.disk, self.spill = host, disk, spill
        self.device, self.options = device, options
        self._given, self._note = engine, note

    @cached_property
    def engine(self) -> Engine:
        """The engine that computes."""
        return select_engine("cpu") if self._given is None else self._given

    @cached_property
    def work(self) -> MemoryBudget:
        """The memory that the engine computes in: `host`, or what it may take of its device.

        A device is measured when this is first used, which is when a graph or other arrays are brought to it.
        """
        available = self.device_bytes()
        return self.host if available is None else MemoryBudget(self.options.device, available)

    @property
    def on_device(self) -> bool:
        """Whether the engine computes in a memory of its own, not in the host's."""
        return self.work is not self.host

    def device_bytes(self, used: int = 0) -> int | None:
        """Return the bytes of the device that the run may use now, `used` ones included; None: there is no device."""
        free = self.free_device_bytes(used)
        if free is None or self.device is None:
            return free
        return min(self.device - self.device // _ROUNDED, free)

    def free_device_bytes(self, used: int = 0) -> int | None:
        """Return the usable bytes of what is free on the device, `used` ones included, whatever the budget; or None."""
        free = self.engine.memory.free()
        return None if free is None else int((free + used) * _DEVICE_SHARE)

    def measure_again(self, host: int | None, disk: int | None) -> bool:
        """Set the limits anew, as `open_resources` does; return False if less is free than is in use.

        Parameters
        ----------
        host, disk
            Bytes; None for a share of what is free.
        """
        self.host.limit = default_host_bytes() if host is None else host
        self.disk.limit = default_disk_bytes(self.spill.parent) if disk is None else disk
        if self.on_device:
            self.work.limit = self.device_bytes(self.work.used) or 0
            self.engine.memory.limit(self.work.limit)
        return all(used <= limit for used, limit in self.usage().values())

    def device_note(self) -> str:
        """Return what the user should know of the device before a run: that less is free than allowed; or nothing.

        Where the device has no memory for a run at all, that is why the CPU does the work.
        """
        if self._note:
            return self._note
        used, _ = self.usage().get("device", (0, 0))  # by a graph that came there before
        free = self.free_device_bytes(used)
        if free is None or self.device is None or free >= self.device:
            return ""
        return (
            f"the device has {round_size(free)} free for arrays, less than {self.options.device} = "
            f"{round_size(self.device)}: the run works with that"
        )

    def limits(self) -> dict[str, int | None]:
        """Return the bytes of each budget, None for what is free on the device."""
        return {"device": self.device, "host": self.host.limit, "disk": self.disk.limit}

    def in_use(self) -> dict[str, int]:
        """Return the bytes in use of each budget now; a device counts from when its budget is known."""
        return {name: used for name, (used, _) in self.usage().items()}

    def usage(self) -> dict[str, tuple[int, int]]:
        """Return the bytes in use and the limit of each budget now; a device counts from when its budget is known."""
        budgets = {"host": self.host, "disk": self.disk}
        work: MemoryBudget | None = vars(self).get("work")  # reading the property would measure the device
        if work is not None and work is not self.host:
            budgets["device"] = work
        return {name: (budget.used, budget.limit) for name, budget in budgets.items()}

    def with_host(self, host: MemoryBudget) -> Resources:
        """Return the same resources with another budget of the host's memory, such as a part that is reserved."""
        return Resources(host, self.disk, self.spill, engine=self._given, device=self.device, options=self.options)

    def __enter__(self) -> Resources:
        return self

    def __exit__(self, *exc: object) -> None:
        self.spill.close()


def open_resources(
    *,
    host: int | None = None,
    disk: int | None = None,
    device: int | None = None,
    spill: Path = _SPILL,
    engine: EngineChoice | None = None,
    options: OptionNames = CONFIG_OPTIONS,
    processes: int = 1,
    per_device: int = 1,
) -> Resources:
    """Open budgets, spill folder and engine.

    Parameters
    ----------
    host, disk, device
        Bytes; None for a share of what is free.
    spill
        The folder in which the spill folder is made.
    engine
        The engine; None opens the one of the host when it is first used.
    options
        What messages call the options.
    processes
        How many processes share `host` and `disk` evenly.
    per_device
        How many processes share `device` evenly.

    Raises
    ------
    InputError
        If this machine does not have the engine.
    """
    notes: list[str] = []
    chosen = None if engine is None else _choose_engine(engine, options, notes)
    host = default_host_bytes() if host is None else host
    disk = default_disk_bytes(spill) if disk is None else disk
    if chosen is not None and per_device > 1 and (free := chosen.memory.free()) is not None:
        device = (device or free) // per_device
    return Resources(
        MemoryBudget(options.host, host // processes, options.host_advice),
        MemoryBudget(options.disk, disk // processes, options.disk_advice),
        SpillFolder(spill, advice=options.spill_advice or f"choose another {options.spill}, or raise {options.host}"),
        engine=chosen,
        device=device,
        options=options,
        note=" ".join(notes),
    )


@contextmanager
def given_or_default(resources: Resources | None) -> Iterator[Resources]:
    """Use the given resources, or this machine's defaults and a spill folder that is removed afterwards."""
    if resources is not None:
        yield resources
        return
    with open_resources(options=_NO_OPTIONS) as own:
        yield own


def _choose_engine(choice: EngineChoice, options: OptionNames, notes: list[str]) -> Engine:
    try:
        return select_engine(*choice, notes.append)
    except EngineUnavailable as error:
        raise InputError(f'{options.engine} = "{choice.kind:.40}": {error}') from None
