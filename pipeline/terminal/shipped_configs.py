"""The commented configs that come with Longwall: what ``longwall configs`` lists, prints and writes."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from longwall.pipeline.quoting import suggestion
from longwall.storage.errors import InputError, not_written
from longwall.storage.system.arguments import brief


def shipped_configs() -> dict[str, str]:
    """Return the name of each config, without ``.toml``, and its text."""
    found = (one for one in files("longwall.configs").iterdir() if one.name.endswith(".toml"))
    return {one.name.removesuffix(".toml"): one.read_text("utf-8") for one in sorted(found, key=lambda one: one.name)}


def config_list() -> str:
    """Return the names, each with the first line of its comment."""
    configs = shipped_configs()
    width = max(map(len, configs))
    return "\n".join(f"{name:{width}}  {text.partition(chr(10))[0].lstrip('# ')}" for name, text in configs.items())


def config_text(name: str) -> str:
    """Return the text of a config.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    configs = shipped_configs()
    wanted = name.removesuffix(".toml")
    if wanted not in configs:
        raise InputError(f"there is no config {brief(name)}{suggestion(wanted, configs)}")
    return configs[wanted].rstrip("\n")


def write_config(name: str | None, path: Path) -> None:
    """Write a config to a file, which must not exist.

    Raises
    ------
    InputError
        If no config is named, or the file cannot be made.
    """
    if name is None:
        raise InputError("--output: say which config to write, such as longwall configs demo --output demo.toml")
    text = config_text(name)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(f"{text}\n")
    except FileExistsError:
        raise InputError(f"{path} exists: choose another name or remove it") from None
    except OSError as error:
        raise not_written(f"{path}: the file cannot be written", error, "choose another place") from None
