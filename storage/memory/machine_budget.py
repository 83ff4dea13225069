"""How much memory and disk a run may use where the user does not say: a share of what this machine has free."""

import os
from pathlib import Path, PurePosixPath

from longwall.storage.errors import InputError
from longwall.storage.memory.sizes import round_size

_SHARE_OF_FREE_MEMORY = 0.7
_SHARE_OF_FREE_DISK = 0.8
_NO_LIMIT = 1 << 60  # version 1 of cgroups has a number for it, close to 2^63


def default_host_bytes() -> int:
    """Return a share of the free memory; the cgroup's limit counts."""
    import psutil

    return int(min(psutil.virtual_memory().available, cgroup_free()) * _SHARE_OF_FREE_MEMORY)


def default_disk_bytes(spill: Path) -> int:
    """Return a share of the free space of the file system that a spill folder is on.

    Parameters
    ----------
    spill
        The folder. It may not exist yet: its nearest existing parent says where it will be.
    """
    import psutil

    folder = spill.absolute()
    folder = next(above for above in (folder, *folder.parents) if os.access(above, os.F_OK))
    return int(psutil.disk_usage(str(folder)).free * _SHARE_OF_FREE_DISK)


def cgroup_free(root: Path = Path("/")) -> float:
    """Return the bytes left under the memory limits of this process's cgroup and of all above it; may be infinite.

    Parameters
    ----------
    root
        Where `proc` and `sys` are.
    """
    try:
        groups = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        groups = []
    mount = root / "sys/fs/cgroup"
    capacities = [float("inf")]
    # The mounts themselves are looked at in any case: in a container, paths may be those of the host.
    for line in [*groups, "0::/", "0:memory:/"]:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            capacities += _capacities(mount, path, "memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            capacities += _capacities(mount / "memory", path, "memory.limit_in_bytes", "memory.usage_in_bytes")
    return min(capacities)


def cgroup_limit(name: str, old: tuple[str, str], root: Path = Path("/")) -> str:
    """Return a limit of the innermost cgroup of this process that has one; "" where there is none.

    Parameters
    ----------
    name
        The limit's file in version 2 of cgroups, such as "cpu.max".
    old
        The controller and the file in version 1.
    root
        Where `proc` and `sys` are.
    """
    try:
        groups = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        groups = []
    mount = root / "sys/fs/cgroup"
    for line in [*groups, "0::/", f"0:{old[0]}:/"]:
        _, controllers, path = line.split(":", 2)
        version_2 = controllers == ""
        if not version_2 and old[0] not in controllers.split(","):
            continue
        group = PurePosixPath(path.lstrip("/"))
        for level in (group, *group.parents):
            file = mount / level / name if version_2 else mount / old[0] / level / old[1]
            try:
                limit = file.read_text(encoding="ascii").strip()
            except (OSError, ValueError):
                continue
            none = limit.startswith(("max", "-")) or (limit.isdigit() and int(limit) >= _NO_LIMIT)
            if limit and not none:
                return limit
    return ""


def _capacities(mount: Path, path: str, limit: str, used: str) -> list[int]:
    """Return what is left of each limit from a cgroup up to the mount."""
    found = []
    group = PurePosixPath(path.lstrip("/"))
    for level in (group, *group.parents):
        try:
            capacity = int((mount / level / limit).read_text()) - int((mount / level / used).read_text())
        except (OSError, ValueError):
            continue  # no such group here, or "max": no limit
        found.append(capacity + _droppable(mount / level / "memory.stat"))
    return found


def _droppable(stat: Path) -> int:
    """Return the bytes of cached files that a cgroup is charged with, but that go when memory is needed."""
    try:
        numbers = dict(line.split() for line in stat.read_text().splitlines())
    except (OSError, ValueError):
        return 0
    # Version 1 counts the groups below in a number of its own.
    return int(numbers.get("total_inactive_file", numbers.get("inactive_file", 0)))


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
