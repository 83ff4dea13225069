"""How much memory and disk a run may use where the user does not say: a share of what this machine has free."""

import os
import re
from functools import lru_cache
from pathlib import Path, PurePosixPath

from longwall.storage.errors import InputError
from longwall.storage.memory.sizes import round_size

_SHARE_OF_FREE_MEMORY = 0.7
_SHARE_OF_FREE_DISK = 0.8
_MOST_BYTES = 2**16  # of a file of the kernel; the longest has some thousands
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
    capacities = (_capacity(*level) for level in _levels(root, "memory"))
    return min((one for one in capacities if one is not None), default=float("inf"))


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
    for folder, is_new in _levels(root, old[0]):
        limit = _content(f"{folder}/{name if is_new else old[1]}").strip()
        none = limit.startswith(("max", "-")) or (limit.isdigit() and int(limit) >= _NO_LIMIT)
        if limit and not none:
            return limit
    return ""


def _levels(root: Path, controller: str) -> list[tuple[str, bool]]:
    """Return the folder of each cgroup up to the mount, which may not be there, and whether it is of version 2."""
    return _folders(str(root), _content(f"{root}/proc/self/cgroup"), controller)


@lru_cache(maxsize=4)
def _folders(root: str, groups: str, controller: str) -> list[tuple[str, bool]]:
    """List the folders once for each text of /proc: every run asks, and a process rarely changes its cgroup."""
    mount, found = f"{root}/sys/fs/cgroup", dict[str, bool]()
    # The mounts themselves are looked at in any case: in a container, paths may be those of the host.
    for line in [*groups.splitlines(), "0::/", f"0:{controller}:/"]:
        _, controllers, path = line.split(":", 2)
        if not controllers or controller in controllers.split(","):
            place, group = f"{mount}/{controller}" if controllers else mount, PurePosixPath(path.lstrip("/"))
            found |= {f"{place}/{level}": not controllers for level in (group, *group.parents)}
    return list(found.items())


def _capacity(folder: str, is_new: bool) -> int | None:
    """Return what is left of the limit of a cgroup; None if there is no such group here, or no limit."""
    limit, used = ("max", "current") if is_new else ("limit_in_bytes", "usage_in_bytes")
    try:
        if (most := int(_content(f"{folder}/memory.{limit}"))) >= _NO_LIMIT:
            return None
        return most - int(_content(f"{folder}/memory.{used}")) + _droppable(_content(f"{folder}/memory.stat"))
    except ValueError:  # "max", or nothing
        return None


def _droppable(stat: str) -> int:
    """Return the bytes of cached files that a cgroup is charged with, but that go when memory is needed."""
    # Version 1 counts the groups below in a number of its own.
    found = re.search(r"^total_inactive_file (\d+)", stat, re.M) or re.search(r"^inactive_file (\d+)", stat, re.M)
    return int(found[1]) if found else 0


def _content(name: str) -> str:
    """Return what a file of the kernel says; nothing where it cannot be read."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.read(descriptor, _MOST_BYTES).decode(errors="replace")
    except OSError:
        return ""
    finally:
        os.close(descriptor)


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
