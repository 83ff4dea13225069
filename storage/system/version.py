"""The version of Longwall that is installed, which pyproject.toml has, and the commit that it was made from."""

import json
from contextlib import suppress
from functools import cache
from pathlib import Path

_SOURCES = Path(__file__).parents[2]


@cache
def longwall_version() -> str:
    """Return the version of the installed package, ``"unknown"`` where Longwall is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("longwall")
    except PackageNotFoundError:
        return "unknown"


@cache
def source_commit(sources: Path = _SOURCES) -> str | None:
    """Return the commit of the checkout that runs, or that pip installed from Git; None if neither is known."""
    from importlib.metadata import PackageNotFoundError, distribution

    with suppress(OSError, ValueError):
        return _checked_out(sources / ".git")
    with suppress(PackageNotFoundError, KeyError, ValueError):
        installed = json.loads(distribution("longwall").read_text("direct_url.json") or "{}")
        return str(installed["vcs_info"]["commit_id"])
    return None


def _checked_out(git: Path) -> str:
    """Return the commit of a checkout, as Git's files have it: no program is started."""
    if git.is_file():  # of a second working tree
        git = git.parent / git.read_text().removeprefix("gitdir:").strip()
    head = (git / "HEAD").read_text().strip()
    if not head.startswith("ref: "):
        return head
    name, shared = head.removeprefix("ref: "), git
    if (git / "commondir").is_file():
        shared = git / (git / "commondir").read_text().strip()
    if (shared / name).is_file():
        return (shared / name).read_text().strip()
    packed = (line.split() for line in (shared / "packed-refs").read_text().splitlines())
    found = next((line[0] for line in packed if line[1:] == [name]), None)
    if found is None:
        raise ValueError(f"{name} has no commit")
    return found
