"""Several configs of one command."""

from __future__ import annotations

from pathlib import Path

from longwall.pipeline.config import load_config
from longwall.pipeline.terminal.tables import harmless
from longwall.storage.errors import InputError


def require_different_names(configs: list[Path], overrides: list[str]) -> None:
    """Check, before anything runs, that no two configs have the same folder of a run.

    Raises
    ------
    InputError
        If two have; a config that cannot be read is not looked at.
    """
    if len(configs) == 1:
        return
    seen: dict[str, Path] = {}
    for config in configs:
        try:
            spec = load_config(config, overrides)
        except InputError:
            continue  # it fails in its turn
        place = f"{spec.run.directory}/{spec.run.name}"
        if place in seen:
            both = f"{harmless(seen[place])} and {harmless(config)}"
            raise InputError(f"{both} have the same run.name, {spec.run.name}: change one of them")
        seen[place] = config
