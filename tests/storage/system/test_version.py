"""The version stands in pyproject.toml alone; everything else asks the installed package."""

from importlib import metadata

import pytest

import longwall
from longwall.storage.system.version import longwall_version


def test_the_version_is_that_of_the_installed_package() -> None:
    assert longwall_version() == longwall.__version__ == metadata.version("longwall")


def test_the_version_is_unknown_where_longwall_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr("longwall.storage.system.version.version", missing)
    assert longwall_version.__wrapped__() == "unknown"
