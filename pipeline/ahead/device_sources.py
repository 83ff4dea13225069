"""The sources that a run will need on a device, as far as they are known before its graph is read."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from longwall.pipeline.ahead.names import work_name

if TYPE_CHECKING:
    from longwall.pipeline.config import RunSpec

OF_A_PART = ", a part of the graph"
"""And the name of work: what it needs where the device holds a part of the graph."""


def sources_of(spec: RunSpec) -> list[tuple[str, str]]:
    """Return the names of sources that the work of a config needs whatever its graph, and their generated headers.

    Where the config limits the device's memory, these are also those for a graph of which the device holds a part.
    """
    table: dict[str, dict[str, Any]] = json.loads(files(__package__).joinpath("device_sources.json").read_text())
    name = work_name(spec, alike=False)
    names = [name] if spec.memory.device is None else [name + OF_A_PART, name]
    listed = dict.fromkeys((source, header) for name in names for source, header in table["work"].get(name, ()))
    return [(source, table["headers"][str(header)]) for source, header in listed]
