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
    for name, kind in re.findall(r"^`((?:pipeline|configs)/\S+)`\n\n```(\w+)$", PAGE, re.MULTILINE):
        target = folder / "longwall" / name
        if kind == "diff":
            target.write_text(patched(target.read_text(), block(name)))
            continue
        assert not target.exists(), f"{name} is not new"
        target.write_text(block(name))
    return folder


def patched(text: str, diff: str) -> str:
    """Apply a block of changes, each of which adds lines before or behind one line of a file."""
    for hunk in diff.split(" ...\n"):
        kept = "".join(line[1:] for line in hunk.splitlines(keepends=True) if line.startswith(" "))
        assert text.count(kept) == 1, kept
        text = text.replace(kept, "".join(line[1:] for line in hunk.splitlines(keepends=True)))
    return text


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


RANDOM_TEST = """
import json
import sys
from itertools import count
from types import SimpleNamespace

import longwall
from conftest import make_context, make_graph
from random_cases import draw_case
from test_random_cases import check

from longwall.pipeline.planning.methods.wedges import WedgesPlan

lab = SimpleNamespace(graph=make_graph, context=make_context)
cases = (draw_case(seed) for seed in count())
case = next(one for one in cases if one.query.edges == ((0, 1), (0, 2)) and not (one.query.labels or one.query.induced))
found = sorted(check(lab, case, "cpu"))
right = WedgesPlan.count
WedgesPlan.count = lambda plan, env: right(plan, env) + 1
try:
    check(lab, case, "cpu")
except AssertionError:
    print(json.dumps({"at": longwall.__file__, "found": found}))
"""


@pytest.mark.slow
def test_the_random_test_of_all_methods_has_the_method(extended: Path) -> None:
    """It finds a fault in it, too, else it prints nothing."""
    tests = [ROOT / "tests", ROOT / "tests" / "support", ROOT / "tests" / "pipeline" / "phases"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, [extended, *tests]))}
    done = subprocess.run(
        [sys.executable, "-c", RANDOM_TEST], cwd=extended, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert Path(answer["at"]).is_relative_to(extended)
    assert {"wedges", "search", "listing"} <= set(answer["found"])


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
