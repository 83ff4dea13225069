"""Recipes of docs/extending.md are followed to the letter: a workload is a file and a config, a method a file."""

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
    planner = folder / "longwall" / "pipeline" / "planning" / "planner.py"
    text, head = planner.read_text(), "METHODS: tuple[Method, ...] = (\n"
    first = "from longwall.pipeline.planning.plan import"
    assert head in text
    text = text.replace(first, f"from longwall.pipeline.planning.methods.wedges import Wedges\n{first}", 1)
    planner.write_text(text.replace(head, f"{head}    Wedges(),\n"))
    return folder


def call(extended: Path, folder: Path, name: str, *words: str, command: str = "run") -> Any:
    """Call a command of the extended package with the config of the recipe, and more words."""
    config = extended / "longwall" / "configs" / "paths.toml"
    whole = [sys.executable, "-m", "longwall", command, str(config), *words]
    for override in ("engine.kind=cpu", f"run.directory={folder}", f"run.name={name}"):
        whole += ["--set", override]
    environment = os.environ | {"PYTHONPATH": str(extended)}
    done = subprocess.run(whole, cwd=extended, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done


def test_the_config_runs_and_its_count_is_that_of_brute_force(extended: Path, tmp_path: Path) -> None:
    done = call(extended, tmp_path, "paths", "--json")
    graph = tomllib.loads((extended / "longwall" / "configs" / "paths.toml").read_text())["graph"]
    assert json.loads(done.stdout)["count"] == paths_of_four(edges_of(graph, tmp_path))


@pytest.mark.slow
def test_a_method_is_listed_verified_named_and_switched_off(extended: Path, tmp_path: Path) -> None:
    short = ("--set", "workload.k=3")
    listed = call(extended, tmp_path, "none", "--all", *short, command="explain").stdout.splitlines()
    (line,) = (one for one in listed if one.split()[0] == "wedges")
    assert line.endswith("taken")
    verified = call(extended, tmp_path, "verified", "--json", *short, "--set", "run.verify=true")
    assert "verified: " in verified.stderr
    assert "wedges" in verified.stderr
    without = call(extended, tmp_path, "without", "--json", *short, "--set", "engine.without=['wedges']")
    (first,), (second,) = (json.loads(done.stdout)["patterns"] for done in (verified, without))
    assert (first["method"], first["count"]) == ("wedges", second["count"])
    assert second["method"] != "wedges"


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
