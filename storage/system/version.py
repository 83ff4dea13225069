"""The version of Longwall that is installed; pyproject.toml has it."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache
def longwall_version() -> str:
    """Return the version of the installed package, ``"unknown"`` where Longwall is not installed."""
    try:
        return version("longwall")
    except PackageNotFoundError:
        return "unknown"
