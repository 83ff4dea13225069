"""The version stands in pyproject.toml alone; everything else asks the installed package. The commit is Git's."""

from __future__ import annotations

import shutil
import subprocess
from importlib import metadata
from pathlib import Path

import pytest

import longwall
from longwall.storage.system.version import longwall_version, source_commit


def test_the_version_is_that_of_the_installed_package() -> None:
    assert longwall_version() == longwall.__version__ == metadata.version("longwall")


def test_the_version_is_unknown_where_longwall_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", missing)
    assert longwall_version.__wrapped__() == "unknown"


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_commit_of_a_checkout_is_that_of_git(tmp_path: Path) -> None:
    def git(*words: str, folder: Path = tmp_path / "first") -> str:
        names = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        return subprocess.run(["git", *names, *words], cwd=folder, check=True, capture_output=True, text=True).stdout

    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    first.mkdir()
    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "One")
    git("worktree", "add", "-q", "-b", "other", str(second))
    git("commit", "-q", "--allow-empty", "-m", "Two", folder=second)
    for folder in (first, second):
        assert source_commit(folder) == git("rev-parse", "HEAD", folder=folder).strip()
    source_commit.cache_clear()
    git("pack-refs", "--all")
    assert source_commit(second) == git("rev-parse", "HEAD", folder=second).strip()
    git("worktree", "add", "-q", "--detach", str(third))
    assert source_commit(third) == git("rev-parse", "HEAD").strip()


def test_a_folder_without_git_has_none(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    assert source_commit(tmp_path / "package") is None
