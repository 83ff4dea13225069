"""A folder of its own for each test, in which nothing may be left."""

from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import pytest

import longwall


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working folder; it is empty in the end."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="session")
def karate() -> nx.Graph:
    """A small graph of networkx."""
    return nx.karate_club_graph()


@pytest.fixture(scope="session")
def graph(karate: nx.Graph) -> longwall.Graph:
    """The same as a graph of ours."""
    return longwall.graph(karate)
