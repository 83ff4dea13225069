"""Configs that tests load, and what is said about those that cannot be loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from longwall.pipeline.config import load_config
from longwall.storage.errors import InputError

GRAPH = {"path": "graph.txt"}
TRIANGLES = {"graph": GRAPH, "workload": {"kind": "triangles"}}


def write(folder: Path, text: str) -> Path:
    """Write a config file."""
    path = folder / "mine.toml"
    path.write_text(text)
    return path


def faults(config, overrides=()) -> list[str]:
    """The lines of the message with which a config is refused."""
    with pytest.raises(InputError) as caught:
        load_config(config, overrides)
    return str(caught.value).splitlines()


def workload(**keys) -> dict:
    """A config with these keys of a workload."""
    return {"graph": GRAPH, "workload": keys}
