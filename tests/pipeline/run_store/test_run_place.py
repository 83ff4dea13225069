"""A run is made, locked, moved and removed alike in a folder and at a URL, and nothing else goes with it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from longwall.pipeline.run_store.manifest import MARK, status_of
from longwall.pipeline.run_store.replacement import place_for_replacement
from longwall.pipeline.run_store.run_place import RunPlace, place_at
from longwall.storage.errors import InputError
from longwall.storage.remote import remote_folder

RUNNING = b'{"status": "running", "config_sha256": ""}'
DONE = RUNNING.replace(b"running", b"done")
CHUNK, TABLE = "checkpoint/level-2/00000000", "results/counts.parquet"


class RunPlaceTests:
    """What every kind of place must do; a subclass has a fixture `runs`, the path or the URL of all runs."""

    @pytest.fixture
    def place(self, runs: str) -> RunPlace:
        """A run that has begun."""
        made = place_at(f"{runs}/one")
        assert not made.exists()
        assert made.make()
        assert made.store.create("config.toml", b"")
        return made

    def test_only_one_run_of_a_name_begins(self, place: RunPlace) -> None:
        assert place.name == "one"
        assert place.exists()
        assert not place.sibling("one").make()
        assert not place.sibling("two").exists()
        assert place.sibling("two").make()

    def test_free_names(self, place: RunPlace) -> None:
        assert place.free_name() == "one-2"
        place.sibling("one-2").store.create("config.toml", b"")
        assert place.free_name() == "one-3"

    def test_a_process_works_in_a_folder_until_it_closes_the_place(self, place: RunPlace, tmp_path: Path) -> None:
        place.hold()
        place.work_in(tmp_path / "spill")
        assert (place.store.folder / "results.partial").is_dir()
        place.close()
        place.close()
        assert not (tmp_path / "spill").exists()

    def test_a_run_is_removed(self, place: RunPlace) -> None:
        for name in (CHUNK, TABLE, "manifest.json", "heat.parquet"):
            place.store.create(name, RUNNING)
        assert status_of(place.store) == "running"
        place.remove()
        assert status_of(place.store) is None
        assert not place.exists()

    def test_nothing_of_a_run_is_removed_where_strange_files_are_among_its_own(self, place: RunPlace) -> None:
        place.store.create(CHUNK, b"x")
        place.store.create("results/notes.txt", b"precious")
        with pytest.raises(InputError, match="this is no file of the run"):
            place.remove()
        assert place.store.read(CHUNK) == b"x"

    def test_a_run_moves_to_the_place_of_another(self, place: RunPlace) -> None:
        place.store.create("manifest.json", DONE)
        place.store.create(TABLE, b"x")
        before, target = place.store.list(), place.sibling("two")
        place.with_names_locked(lambda: place.move_to(target))
        assert target.store.list() == before
        assert not place.exists()

    def replace(self, place: RunPlace) -> None:
        try:
            new = place_for_replacement(place)
            assert new.name == "one+new"
            new.close()
        finally:
            place.close()

    def test_only_a_run_is_replaced(self, place: RunPlace) -> None:
        store = place.store
        store.write("config.toml", MARK.encode() + b"[run]")  # of a run that was killed as it began
        self.replace(place)
        store.write("config.toml", b"precious = 1")
        with pytest.raises(InputError, match=r"holds no manifest\.json of a run: move it away"):
            self.replace(place)
        store.write("manifest.json", DONE)
        self.replace(place)
        store.write("thesis.txt", b"precious")
        with pytest.raises(InputError, match=r"thesis\.txt: no run writes this"):
            self.replace(place)
        store.create("results/notes.txt", b"precious")
        with pytest.raises(InputError, match=r"notes\.txt: this is no file of the run"):
            self.replace(place)

    def test_what_was_left_of_a_new_run_is_replaced(self, place: RunPlace) -> None:
        place.store.write("manifest.json", DONE)
        left = place.sibling("one+new")
        left.store.create("config.toml", b"x")  # its manifest is gone
        left.store.create(CHUNK, b"x")
        self.replace(place)
        assert left.store.list() == {}


class TestLocalPlace(RunPlaceTests):
    """A folder."""

    @pytest.fixture
    def runs(self, tmp_path: Path) -> str:
        return str(tmp_path / "runs")

    def test_a_lock_keeps_others_away(self, place: RunPlace) -> None:
        other = place.sibling("one")
        place.hold()
        place.hold()
        for act in (other.hold, other.require_idle):
            with pytest.raises(InputError, match="another process is busy with this run"):
                act()
        place.close()
        place.close()
        other.hold()
        other.close()

    def test_others_wait_while_names_change(self, place: RunPlace) -> None:
        entered = threading.Event()

        def enter() -> None:
            place.sibling("two").with_names_locked(entered.set)

        thread = threading.Thread(target=enter)

        def change() -> None:
            thread.start()
            assert not entered.wait(0.1)

        place.with_names_locked(change)
        thread.join(10)
        assert entered.is_set()

    def test_a_link_or_a_file_is_no_run(self, place: RunPlace) -> None:
        link, file = place.sibling("link"), place.sibling("file")
        link.store.folder.symlink_to(place.store.folder)
        file.store.folder.touch()
        for wrong in (link, file):
            with pytest.raises(InputError, match="this is not the folder of a run"):
                wrong.require_idle()

    def test_only_the_parent_that_was_made_is_removed(self, place: RunPlace, tmp_path: Path) -> None:
        other = place.sibling("two")
        other.make()
        other.remove()
        assert (tmp_path / "runs").exists()
        place.remove()
        assert not (tmp_path / "runs").exists()


class ObjectPlaceTests(RunPlaceTests):
    """A URL."""

    def test_a_run_that_may_be_going_on_is_not_replaced(self, place: RunPlace) -> None:
        place.store.write("manifest.json", RUNNING)
        with pytest.raises(InputError, match=r"another process is busy with this run.*resume it, or remove"):
            self.replace(place)


class TestObjectPlaceInMemory(ObjectPlaceTests):
    """Objects."""

    @pytest.fixture
    def runs(self, memory: Any) -> str:
        return "memory://runs"


class TestObjectPlaceOnDisk(ObjectPlaceTests):
    """Files and folders, as fsspec shows them."""

    @pytest.fixture
    def runs(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
        pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'longwall[cluster]'")
        monkeypatch.setattr(remote_folder, "_PAUSES", ())
        return f"file://{tmp_path}/runs"


def test_no_run_is_made_where_files_do_not_last() -> None:
    pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'longwall[cluster]'")
    with pytest.raises(InputError, match=r"memory://runs/one: what is written there is gone when this process ends"):
        place_at("memory://runs/one")
