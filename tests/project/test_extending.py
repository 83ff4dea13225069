"""The recipe for a workload in docs/extending.md is followed to the letter: a Python file, a config, nothing else."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

import longwall

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "extending.md").read_text()


def block(name: str) -> str:
    """The block of code that follows the name of a file."""
    found = re.search(rf"^`{re.escape(name)}`\n\n```\w+\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert found, f"docs/extending.md has no block for {name}"
    return found[1]


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the package, to which the files of the recipe are added."""
    folder = tmp_path_factory.mktemp("extended")
    mapping = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-dir"]
    skip = shutil.ignore_patterns("__pycache__", "longwall")
    for package, source in sorted(mapping.items(), key=lambda item: item[0].count(".")):
        shutil.copytree(ROOT / source, folder / package.replace(".", "/"), ignore=skip, dirs_exist_ok=True)
    for name in re.findall(r"^`((?:pipeline|configs)/\S+)`\n\n```", PAGE, re.MULTILINE):
        target = folder / "longwall" / name
        assert not target.exists(), f"{name} is not new"
        target.write_text(block(name))
    return folder


def test_the_config_runs_and_its_count_is_that_of_brute_force(extended: Path, tmp_path: Path) -> None:
    config = extended / "longwall" / "configs" / "paths.toml"
    overrides = ["engine.kind=cpu", f"run.directory={tmp_path}", "run.name=paths"]
    command = [sys.executable, "-m", "longwall", "run", str(config), "--json"]
    for override in overrides:
        command += ["--set", override]
    environment = os.environ | {"PYTHONPATH": str(extended)}
    done = subprocess.run(command, cwd=extended, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    graph = tomllib.loads(config.read_text())["graph"]
    assert json.loads(done.stdout)["count"] == paths_of_four(edges_of(graph, tmp_path))


def edges_of(graph: dict[str, Any], folder: Path) -> list[tuple[int, int]]:
    """The edges of a config's graph."""
    found = longwall.run(
        {
            "graph": graph,
            "workload": {"kind": "match", "pattern": "0-1", "output": "embeddings"},
            "engine": {"kind": "cpu"},
            "run": {"directory": folder, "name": "edges"},
        }
    )
    return [(row["v0"], row["v1"]) for row in found.table().to_pylist()]


def paths_of_four(edges: list[tuple[int, int]]) -> int:
    """The number of paths of four vertices, by their middle edges."""
    graph = nx.Graph(edges)
    return sum(sum(len(set(graph[c]) - {a, b}) for a in set(graph[b]) - {c}) for b, c in graph.edges)
