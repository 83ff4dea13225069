"""The sources that a run will need on a device, as far as they are known before its graph is read."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from longwall.pipeline.ahead.names import work_name

if TYPE_CHECKING:
    from longwall.pipeline.config import RunSpec


def sources_of(spec: RunSpec) -> list[tuple[str, str]]:
    """Return the names of sources that the work of a config needs whatever its graph, and their generated headers."""
    table: dict[str, dict[str, Any]] = json.loads(files(__package__).joinpath("device_sources.json").read_text())
    listed = table["work"].get(work_name(spec, alike=False), ())
    return [(source, table["headers"][str(header)]) for source, header in listed]
