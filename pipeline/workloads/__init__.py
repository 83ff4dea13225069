"""The workloads, one module or one package with a module `workload` each: config section, plan and execution.

Other packages add theirs through the entry point group ``longwall.workloads``.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import ModuleInfo, iter_modules
from typing import TYPE_CHECKING, get_args

from longwall.storage.errors import InputError

if TYPE_CHECKING:
    from longwall.pipeline.workloads.base import Workload


GROUP = "longwall.workloads"
"""The group of entry points by which an installed package adds workloads; each names a class."""


@cache
def workload_kinds() -> dict[str, type[Workload]]:
    """Return the workload of every kind that ``workload.kind`` may name.

    They are those that the modules of this folder define, and those of installed packages.

    Raises
    ------
    InputError
        If a workload of an installed package cannot be loaded, is none, or has the kind of another one.
    """
    from importlib.metadata import entry_points

    from longwall.pipeline.workloads.base import Workload

    found: dict[str, type[Workload]] = {}
    for file in iter_modules(__path__):
        found |= _kinds_of(file)
    for entry in entry_points(group=GROUP):
        what = f"the workload {entry.name} ({entry.value}) of an installed package"
        try:
            item = entry.load()
        except Exception as error:
            raise InputError(f"{what} cannot be loaded ({type(error).__name__}: {error}): uninstall it") from error
        if not (isinstance(item, type) and issubclass(item, Workload)):
            raise InputError(f"{what} is no class that is derived from longwall.Workload: uninstall it")
        kinds = get_args(item.model_fields["kind"].annotation)
        if taken := [kind for kind in kinds if kind in found]:
            raise InputError(f"{what} has the kind {taken[0]!r}, which another workload has: uninstall it")
        found |= dict.fromkeys(kinds, item)
    return found


def workload_named(kind: object) -> type[Workload] | None:
    """Return the workload of a kind whose module in this folder has that name; no other one is imported.

    None where there is no such module: `workload_kinds` knows all of them.
    """
    name = kind.replace("-", "_") if isinstance(kind, str) else None
    return next((_kinds_of(file).get(str(kind)) for file in iter_modules(__path__) if file.name == name), None)


def _kinds_of(file: ModuleInfo) -> dict[str, type[Workload]]:
    """Return the workloads that a module, or a package, of this folder defines."""
    from longwall.pipeline.workloads.base import Workload

    found: dict[str, type[Workload]] = {}
    module = import_module(f"{__name__}.{file.name}" + (".workload" if file.ispkg else ""))
    for item in vars(module).values():
        if isinstance(item, type) and issubclass(item, Workload) and item.__module__ == module.__name__:
            found |= dict.fromkeys(get_args(item.model_fields["kind"].annotation), item)
    return found
