"""The workloads, one module or one package with a module `workload` each: config section, plan and execution."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, get_args

if TYPE_CHECKING:
    from longwall.pipeline.workloads.base import Workload


@cache
def workload_kinds() -> dict[str, type[Workload]]:
    """Return the workload of every kind that ``workload.kind`` may name: all that the modules of this folder define."""
    from longwall.pipeline.workloads.base import Workload

    found: dict[str, type[Workload]] = {}
    for file in iter_modules(__path__):
        module = import_module(f"{__name__}.{file.name}" + (".workload" if file.ispkg else ""))
        for item in vars(module).values():
            if isinstance(item, type) and issubclass(item, Workload) and item.__module__ == module.__name__:
                found |= dict.fromkeys(get_args(item.model_fields["kind"].annotation), item)
    return found
