"""The graph that comes with Longwall, by its name in Python and in a config."""

from __future__ import annotations

from pathlib import Path

import networkx
import pytest

import longwall


def test_it_is_the_karate_club_numbered_from_one() -> None:
    ours = longwall.example("karate").to_networkx()
    theirs = networkx.relabel_nodes(networkx.karate_club_graph(), lambda vertex: vertex + 1)
    assert {frozenset(edge) for edge in ours.edges} == {frozenset(edge) for edge in theirs.edges}
    assert not longwall.example("karate").notes


def test_a_run_reads_it_and_resumes(tmp_path: Path) -> None:
    run = {"directory": str(tmp_path / "runs"), "name": "example"}
    longwall.run({"graph": {"example": "karate"}, "workload": {"kind": "triangles"}, "run": run})
    assert 'example = "karate"' in (tmp_path / "runs" / "example" / "config.toml").read_text()
    assert longwall.resume(tmp_path / "runs" / "example").count == 45


def test_others_are_refused() -> None:
    with pytest.raises(longwall.InputError, match="expected \"karate\", not 'zachary'"):
        longwall.example("zachary")  # type: ignore[arg-type]
