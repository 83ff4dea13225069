"""The wheel, in an environment that has nothing else: whole, and working away from the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from source_tree import ROOT, SETUPTOOLS, folder_of

PARTS = ("configs", "kernels", "pipeline", "stages", "storage")
NO_INDEX = ("No matching distribution", "Could not find a version", "Temporary failure", "Connection", "Retrying")


def environment() -> dict[str, str]:
    """Variables without those that lead to the checkout."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}


def pip(python: Path | str, *words: str) -> None:
    """Run pip; where it reaches no index, skip."""
    command = [str(python), "-m", "pip", *words, "--disable-pip-version-check", "--retries", "1", "--timeout", "20"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment(), timeout=550)
    if done.returncode and any(sign in done.stderr for sign in NO_INDEX):
        pytest.skip(f"pip reaches no package index: {done.stderr.strip().splitlines()[-1]:.200}")
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of a copy of the sources: setuptools leaves files beside them."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in PARTS:
        shutil.copytree(ROOT / name, folder / "source" / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "source")
    pip(sys.executable, "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(folder / "source"))
    (built,) = folder.glob("*.whl")
    return built


@pytest.mark.slow
def test_the_wheel_has_every_file_of_the_packages(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    data = SETUPTOOLS["package-data"]
    wanted = set()
    for package in SETUPTOOLS["packages"]:
        home = folder_of(package)
        files = [*home.glob("*.py"), *(path for glob in data.get(package, ()) for path in home.glob(glob))]
        wanted |= {f"{package.replace('.', '/')}/{path.relative_to(home).as_posix()}" for path in files}
    assert names == wanted
    for ending in (".cu", ".cuh", "/py.typed", "/demo.toml", "/karate.txt"):
        assert any(name.endswith(ending) for name in names), ending
    assert any(name.startswith("longwall/pipeline/report/templates/") for name in names)


@pytest.mark.slow
def test_the_installed_wheel_works_away_from_the_checkout(wheel: Path, tmp_path: Path) -> None:
    venv, work = tmp_path / "venv", tmp_path / "work"
    work.mkdir()
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True, env=environment(), timeout=120)
    pip(venv / "bin" / "python", "install", "--quiet", str(wheel))

    def longwall(*words: str) -> str:
        command = [venv / "bin" / "longwall", *words]
        done = subprocess.run(
            command, cwd=work, capture_output=True, text=True, check=False, env=environment(), timeout=200
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert longwall("--version").startswith("longwall ")
    assert "CPU: yes" in longwall("doctor")
    code = "import importlib.resources as r; print(r.files('longwall.configs') / 'demo.toml')"
    demo = subprocess.run(
        [venv / "bin" / "python", "-c", code], cwd=work, capture_output=True, text=True, check=True, env=environment()
    ).stdout.strip()
    assert str(venv) in demo
    assert "count" in longwall("run", demo, "--set", "graph.generator.scale=8")
    assert (work / "runs" / "demo" / "report.html").is_file()
    assert "pattern" in longwall("show", "runs/demo")
    assert '"status": "done"' in longwall("runs", "--json")
