"""Compile the kernels of the host that a run will call, while it reads its graph, where they are not on disk yet."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from longwall.pipeline.ahead.device_sources import sources_of
from longwall.pipeline.ahead.names import graph_name, plan_name, work_name

if TYPE_CHECKING:
    from longwall.kernels.compile_ahead import CompilingAhead, Wanted
    from longwall.pipeline.config import RunSpec
    from longwall.storage.memory.resources import Resources

Plan = TypeVar("Plan")

_MOST_HELPERS = 4  # the longest kernel of a run takes a quarter of all its compilation
_SHARE = 8  # helpers take at most this part of the memory that is free


class HostKernels:
    """The kernels that a run will call, of a table that was recorded.

    Parameters
    ----------
    spec
        The config of the run.
    on_host
        Whether the host does the work; else only graphs are read there.
    """

    def __init__(self, spec: RunSpec, *, on_host: bool):
        self._spec, self._on_host = spec, on_host
        self._table: dict[str, dict[str, Any]] = json.loads(
            files(__package__).joinpath("host_kernels.json").read_text()
        )
        self._compiling: CompilingAhead | None = None

    def missing(self) -> list[Wanted]:
        """Return those that are not on disk, in the order in which they will be called."""
        return self._missing({**self._listed("graph", graph_name(self._spec)), **self._expected})

    @cached_property
    def _expected(self) -> dict[str, int]:
        """What the work calls, as far as it is known before there is a plan."""
        return self._listed("work", work_name(self._spec)) if self._on_host else {}

    def _listed(self, part: str, name: str) -> dict[str, int]:
        """Return the keys of kernels, and the size of each."""
        return {key: self._table["kernels"][key][1] for key in self._table[part].get(name, ())}

    def _missing(self, sizes: dict[str, int]) -> list[Wanted]:
        from longwall.kernels.compile_ahead import Wanted
        from longwall.kernels.kernel_cache import missing

        kernels = []
        for key, size in sizes.items():
            module, _, function = key.split(" ")[0].rpartition(".")
            kernels.append(Wanted(module, function, self._table["kernels"][key][0], size))
        return [kernels[position] for position in missing(kernel[:3] for kernel in kernels)]

    def start(self, compiling: CompilingAhead) -> None:
        """Let the run say to these processes what its plan is."""
        self._compiling = compiling

    def planned(self, plan: Plan) -> Plan:
        """Compile what the plan of the run needs, instead of what was expected; return the plan."""
        if self._compiling is None:
            return plan
        listed = self._listed("plan", plan_name(self._spec, plan)) if self._on_host else {}
        first = {key: size for key, size in self._expected.items() if key in listed}
        # Plans of one kind differ: what was not expected comes last.
        self._compiling.instead(self._missing(first | {key: 0 for key in listed if key not in first}))
        return plan


@contextmanager
def compiling_ahead(spec: RunSpec, resources: Resources, *, here: bool = True) -> Iterator[HostKernels]:
    """Compile kernels beside a run while the context is open: those of the host in processes, a device's in a thread.

    There are no such processes where all kernels are on disk, no core is idle, or memory is short.

    Parameters
    ----------
    spec
        The config of the run.
    resources
        Have the engine, and the memory that the processes take.
    here
        Whether this process does the work.
    """
    on_host = resources.free_device_bytes() is None
    kernels = HostKernels(spec, on_host=on_host)
    sources = sources_of(spec) if here and not on_host else []
    with resources.engine.device.compiling(sources), _processes(kernels, resources, here=here):
        yield kernels


@contextmanager
def _processes(kernels: HostKernels, resources: Resources, *, here: bool) -> Iterator[None]:
    wanted = kernels.missing() if here else []
    host = resources.host
    helpers = min(len(wanted), _MOST_HELPERS, idle_cores()) if wanted else 0
    if helpers > 0:
        from longwall.kernels.compile_ahead import HELPER_BYTES, CompilingAhead
        from longwall.kernels.jit import waiting_for

        helpers = min(helpers, (host.limit - host.used) // _SHARE // HELPER_BYTES)
    if helpers < 1:
        yield
        return
    held = host.reserve(helpers * HELPER_BYTES, "processes that compile kernels")
    with held, CompilingAhead(wanted, helpers, held.release) as compiling, waiting_for(compiling.wait):
        kernels.start(compiling)
        yield


def idle_cores() -> int:
    """Return how many cores that this process may use have nothing to do at the moment."""
    try:
        running = int(Path("/proc/loadavg").read_text().split()[3].partition("/")[0]) - 1  # this thread is one
    except (OSError, ValueError, IndexError):
        return 0
    return min(len(os.sched_getaffinity(0)), (os.cpu_count() or 1) - running)
