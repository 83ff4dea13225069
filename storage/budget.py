"""How much memory and disk a run may use: the sizes of the config, or what the machine really has."""

from dataclasses import dataclass
from pathlib import Path

from longwall.storage.errors import InputError
from longwall.storage.sizes import round_size

_SHARE_OF_FREE_MEMORY = 0.7
_SHARE_OF_FREE_DISK = 0.8


@dataclass(frozen=True)
class Budget:
    """Bytes that a run may use.

    Attributes
    ----------
    device
        Device memory; None takes what is free on the device once it is opened.
    host
        Host memory.
    disk
        Spill files.
    """

    device: int | None
    host: int
    disk: int

    @classmethod
    def resolve(
        cls,
        *,
        device: int | None = None,
        host: int | None = None,
        disk: int | None = None,
        spill: Path | None = None,
    ) -> "Budget":
        """Fill in what the config leaves open.

        Parameters
        ----------
        device, host, disk
            Bytes, or None for a share of what is free (the cgroup's limit counts).
        spill
            Folder for spill files; its file system's free space is what `disk` defaults to.
        """
        import psutil

        if host is None:
            host = int(min(psutil.virtual_memory().available, _cgroup_room()) * _SHARE_OF_FREE_MEMORY)
        if disk is None:
            folder = spill if spill is not None and spill.exists() else Path.cwd()
            disk = int(psutil.disk_usage(str(folder)).free * _SHARE_OF_FREE_DISK)
        return cls(device, host, disk)


def _cgroup_room() -> float:
    """Bytes left under the memory limit of this process's cgroup; infinite where there is none."""
    root = Path("/sys/fs/cgroup")
    for limit, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        try:
            return int((root / limit).read_text()) - int((root / used).read_text())
        except (OSError, ValueError):
            continue
    return float("inf")


def require(what: str, needed: int, available: int, option: str) -> None:
    """Refuse what does not fit.

    Raises
    ------
    InputError
        Naming what is needed, the budget, and the option that raises it.
    """
    if needed > available:
        raise InputError(
            f"{what} needs {round_size(needed)}, {option} leaves {round_size(max(available, 0))}: raise {option}"
        )
