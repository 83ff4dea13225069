"""The configs on the page about clusters can be read, and its Python and shell lines say what there is."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from cases import each_case

from longwall.pipeline.config import load_config

PAGE = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text()
BASE: dict[str, dict[str, Any]] = {"graph": {"path": "graph.zarr"}, "workload": {"kind": "triangles"}}


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@each_case("text", blocks("toml"))
def test_every_config_is_one(text: str) -> None:
    spec = load_config(BASE | tomllib.loads(text))
    assert load_config(tomllib.loads(spec.to_toml())) == spec


def test_there_is_a_config_for_every_kind_of_cluster() -> None:
    parts = re.split(r"^## ", PAGE, flags=re.MULTILINE)
    with_configs = {part.splitlines()[0] for part in parts if "```toml" in part}
    wanted = ["All GPUs", "Processes", "An existing cluster", "Certificates", "By SSH", "On SLURM", "On Kubernetes"]
    assert [name for name in wanted if not any(title.startswith(name) for title in with_configs)] == []


@each_case("text", blocks("python"))
def test_python_lines_are_python(text: str) -> None:
    ast.parse(text)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("command", ["scheduler", "worker", "ssh"])
def test_the_options_on_the_page_are_dask_s(command: str) -> None:
    pytest.importorskip("distributed", reason="Dask is not installed: pip install 'longwall[cluster]'")
    words = PAGE.replace(", ", " ")  # of lists in YAML
    lines = [line for line in words.splitlines() if re.search(rf"\bdask {command} .*--", line)]
    assert lines
    done = subprocess.run([sys.executable, "-m", "dask", command, "--help"], capture_output=True, text=True, check=True)
    known = set(re.findall(r"--[a-z][a-z-]+", done.stdout))
    assert {option for line in lines for option in re.findall(r"--[a-z][a-z-]+", line)} <= known


def test_the_manifest_fits_the_operator_and_the_config() -> None:
    yaml = pytest.importorskip("yaml", reason="Dask is not installed: pip install 'longwall[cluster]'")
    (text,) = blocks("yaml")
    cluster = yaml.safe_load(text)
    name, spec = cluster["metadata"]["name"], cluster["spec"]
    assert spec["scheduler"]["service"]["selector"]["dask.org/cluster-name"] == name
    assert f'address = "tcp://{name}-scheduler.default.svc.cluster.local:8786"' in PAGE
    (worker,) = spec["worker"]["spec"]["containers"]
    # The operator's schema takes no numbers for these, unlike Kubernetes' own.
    assert {type(word) for word in [*worker["args"], *worker["resources"]["limits"].values()]} == {str}
