"""The Dockerfiles, read: what they copy is there, what they install exists, and no image works as root."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

from cases import each_case
from source_tree import PROJECT, ROOT, SETUPTOOLS

FILES = sorted((ROOT / "docker").glob("*.Dockerfile"))


def instructions(path: Path) -> list[tuple[str, str]]:
    """The instructions of a Dockerfile, with their arguments; lines that go on are joined."""
    text = re.sub(r"^\s*#.*\n", "", path.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return [(line.partition(" ")[0], line.partition(" ")[2].strip()) for line in lines]


def copied(path: Path) -> list[str]:
    """What is copied from the checkout."""
    found = [text.split() for word, text in instructions(path) if word == "COPY" and not text.startswith("--from")]
    return [source for *sources, _ in found for source in sources]


def test_there_is_one_for_the_cpu_and_one_for_gpus() -> None:
    assert [path.name for path in FILES] == ["cpu.Dockerfile", "cuda.Dockerfile"]


@each_case("path", FILES, ids=lambda path: path.name)
def test_an_image_is_small_pinned_and_not_of_root(path: Path) -> None:
    steps = instructions(path)
    bases = [text.split() for word, text in steps if word == "FROM"]
    assert len(bases) == 2, "one stage builds, one is shipped"
    assert all(re.fullmatch(r"[\w./-]+:\d[\w.-]+", base[0]) for base in bases), "a version, not latest"
    last = max(at for at, (word, _) in enumerate(steps) if word == "FROM")
    shipped = dict(steps[last:])
    assert shipped["USER"] not in ("root", "0")
    assert f" {shipped['USER']}" in next(text for word, text in steps[last:] if word == "RUN" and "useradd" in text)
    assert shipped["ENTRYPOINT"] == '["longwall"]'
    stages = {base[2] for base in bases if len(base) == 3}
    assert set(re.findall(r"--from=(\w+)", path.read_text())) <= stages
    version = re.search(r"python:(\d+\.\d+)", bases[0][0])
    assert version
    assert f"Programming Language :: Python :: {version[1]}" in PROJECT["project"]["classifiers"]


@each_case("path", FILES, ids=lambda path: path.name)
def test_what_is_copied_and_installed_exists(path: Path) -> None:
    sources = copied(path)
    assert all((ROOT / source).exists() for source in sources)
    folders = {folder.split("/")[0] for folder in SETUPTOOLS["package-dir"].values()}
    assert folders | {"pyproject.toml", PROJECT["project"]["readme"]} <= set(sources)
    assert set(PROJECT["project"]["license-files"]) <= set(sources)
    extras = {one for text in re.findall(r"'\.\[([\w,]+)\]'", path.read_text()) for one in text.split(",")}
    assert extras
    assert extras <= PROJECT["project"]["optional-dependencies"].keys()


@each_case("path", FILES, ids=lambda path: path.name)
def test_nothing_that_is_copied_is_ignored(path: Path) -> None:
    """The last line of .dockerignore that fits decides; the first one ignores all."""
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert lines[0] == "*"
    for source in copied(path):
        fitting = [line for line in lines if fnmatch(source, line.lstrip("!"))]
        assert fitting[-1].startswith("!"), source
