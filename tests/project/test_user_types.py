"""A script that is type-checked strictly: functions have types, and wrong options are found."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

SCRIPT = """
from typing import assert_type

import longwall

graph = longwall.generate_graph("rmat", scale=4, edge_factor=2, seed=1)
assert_type(longwall.count(graph, "house", engine="cpu", threads=2), int)
assert_type(longwall.count(graph, ["house", "diamond"]), list[int])
assert_type(longwall.count(graph, "cycle-4", per="edge"), longwall.Table)
assert_type(longwall.triangles(graph, per="vertex", memory="1GiB"), longwall.Table)
table = longwall.motifs(graph, 3)
assert_type(table, longwall.Table)
assert_type(len(table), int)
assert_type(table[:2], longwall.Table)
assert_type(table.column_names, list[str])
assert_type(longwall.match(graph, "triangle").head(2), longwall.Table)
assert_type(longwall.pattern("house").svg(), str)
assert_type(longwall.explain(graph, "house"), longwall.Plan)
options: longwall.Options = {"engine": "cuda", "progress": True}
longwall.count(graph, "house", **options)
longwall.count(graph, "house", engine="gpu")  # type: ignore[call-overload]
longwall.orbits(graph, 3, thread=2)  # type: ignore[call-arg]
longwall.frequent(graph, support=2, measure="most")  # type: ignore[arg-type]
"""


@pytest.mark.slow
def test_a_script_that_uses_the_functions_is_checked(tmp_path: Path) -> None:
    links = ROOT / "build" / "typing"
    if not links.is_dir():
        pytest.skip("there are no links that give mypy the import name: run .ci/links")
    pytest.importorskip("mypy")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", "--strict", "--warn-unused-ignores"]
    done = subprocess.run([*command, str(script)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("Success"), done.stdout + done.stderr
