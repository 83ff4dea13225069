"""What is known of the configs of a command before they are run."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from longwall.pipeline.config import load_config
from longwall.storage.errors import InputError
from longwall.storage.system.plain_text import harmless


def _prepare_first(configs: list[Path], overrides: list[str]) -> None:
    """Begin to open the device of the first config while other modules are imported; errors come when it is run."""
    with suppress(InputError):
        spec = load_config(configs[0], overrides)
        from longwall.pipeline.cluster.devices import prepare_for

        prepare_for(spec)


def require_different_names(configs: list[Path], overrides: list[str]) -> None:
    """Check, before anything runs, that no two configs have the same folder of a run; begin to open a device for it.

    Raises
    ------
    InputError
        If two have; a config that cannot be read is not looked at.
    """
    _prepare_first(configs, overrides)
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
