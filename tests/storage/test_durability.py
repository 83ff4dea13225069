"""Files that must outlive a power cut are synced to the disk; files that are removed with the run are not."""

from pathlib import Path

import pytest

import longwall
from longwall.storage.durability import sync_file, sync_folder
from longwall.storage.memory.spill_folder import SpillFolder


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files and folders that are brought to the disk."""
    paths: list[Path] = []
    monkeypatch.setattr("os.fsync", lambda number: paths.append(Path(f"/proc/self/fd/{number}").readlink()))
    return paths


def sync_both(folder: Path) -> None:
    path = folder / "file"
    with path.open("wb") as file:
        sync_file(file.fileno(), path)
    sync_folder(folder)


def test_spill_folders_wait_for_no_disk(tmp_path: Path, synced: list[Path]) -> None:
    sync_both(tmp_path)
    assert synced == [tmp_path / "file", tmp_path]
    with SpillFolder(tmp_path / "spill") as spill:
        place = spill.path
        sync_both(place)
        (place / "run").mkdir()
        sync_both(place / "run")
    assert synced == [tmp_path / "file", tmp_path]
    place.mkdir(parents=True)  # a folder of that name that is no spill folder any more
    sync_both(place)
    assert synced == [tmp_path / "file", tmp_path, place / "file", place]


def test_calls_wait_for_no_disk_and_runs_do(tmp_path: Path, synced: list[Path]) -> None:
    graph = longwall.graph([(0, 1), (1, 2), (0, 2)])
    assert longwall.count(graph, "triangle", spill=tmp_path) == 1
    assert len(longwall.triangles(graph, per="vertex", spill=tmp_path)) == 3  # a table is written
    assert not synced
    longwall.run(
        {"graph": graph, "workload": {"kind": "triangles"}, "run": {"directory": str(tmp_path), "name": "kept"}}
    )
    assert {tmp_path / "kept" / "manifest.json.tmp", tmp_path / "kept"} <= set(synced)
