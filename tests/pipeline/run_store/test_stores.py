"""A folder and a URL keep the files of a run alike: whole or not at all, and nothing that no run writes is touched."""

from __future__ import annotations

import errno
import hashlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from longwall.pipeline.run_store.local_store import LocalStore
from longwall.pipeline.run_store.manifest import MARK, status_of
from longwall.pipeline.run_store.object_store import ObjectStore
from longwall.pipeline.run_store.store import RunStore, describe
from longwall.storage.errors import FinalError, InputError, RunError
from longwall.storage.memory.reservations import MemoryBudget
from longwall.storage.remote import remote_folder

COMMIT, CHUNK, TABLE = "checkpoint/commits/00000000.json", "checkpoint/level-2/00000000", "embeddings-0.parquet"
RUNNING = b'{"status": "running", "config_sha256": ""}'


class RunStoreTests:
    """What every store must do; a subclass has a fixture `place`, which makes the store of a run by its name."""

    alone: bool

    @pytest.fixture
    def store(self, place: Any) -> RunStore:
        """A run that has begun."""
        made: RunStore = place("one")
        assert not made.exists()
        assert made.begin()
        assert made.create("config.toml", b"")
        (made.folder / "results.partial").mkdir(parents=True, exist_ok=True)
        return made

    def put(self, store: RunStore, name: str, content: bytes) -> None:
        path = store.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        store.put_files([name])

    def test_only_one_run_of_a_name_begins(self, store: RunStore) -> None:
        assert (store.name, str(store.where).rpartition("/")[2]) == ("one", "one")
        assert store.alone is self.alone
        assert store.exists()
        assert not store.sibling("one").begin()
        assert not store.sibling("two").exists()
        assert store.sibling("two").begin()

    def test_a_file_is_created_once(self, store: RunStore) -> None:
        assert store.create(COMMIT, b"mine")
        assert not store.create(COMMIT, b"yours")
        assert store.read(COMMIT) == b"mine"

    def test_a_file_that_is_written_replaces_the_one_before(self, store: RunStore) -> None:
        store.write("manifest.json", b"the first", spare=100)
        store.write("manifest.json", b"last")
        assert store.read("manifest.json") == b"last"

    def test_what_is_put_is_listed_and_read(self, store: RunStore) -> None:
        content = bytes(range(256))
        self.put(store, CHUNK, content)
        self.put(store, f"results.partial/{TABLE}", b"rows")
        store.create(COMMIT, b"x")
        assert store.list() == {"config.toml": 0, CHUNK: 256, COMMIT: 1, f"results.partial/{TABLE}": 4}
        assert store.list("checkpoint/commits/") == {COMMIT: 1}
        assert store.list("checkpoint/nothing/") == {}
        assert store.read(CHUNK) == content
        assert store.read(CHUNK, 250) == content[250:]
        assert store.read(CHUNK, 3, 5) == content[3:5]
        assert store.read(CHUNK, 5, 5) == b""
        assert store.digest(CHUNK, 256) == hashlib.sha256(content).hexdigest()
        assert store.local(f"results.partial/{TABLE}").read_bytes() == b"rows"

    def test_a_file_is_opened_within_the_budget(self, store: RunStore, place: Any) -> None:
        self.put(store, CHUNK, bytes(600))
        disk = MemoryBudget("memory.disk", 1000)
        for one in (store, place("one")):  # the second one has not written the file
            (one.folder / "checkpoint").mkdir(parents=True, exist_ok=True)
            with one.opened(CHUNK, 600, disk) as path:
                assert path.read_bytes() == bytes(600)
                assert disk.free == (1000 if path == one.folder / CHUNK else 400)
        assert disk.free == 1000

    def test_what_is_deleted_is_gone(self, store: RunStore) -> None:
        for name in (CHUNK, "checkpoint/level-2/00000001", "checkpoint/a-0.npy"):
            self.put(store, name, b"x")
        store.delete(["checkpoint/a-0.npy", "checkpoint/a-1.npy"])
        assert set(store.list("checkpoint/")) == {CHUNK, "checkpoint/level-2/00000001"}
        store.delete_folder("checkpoint/level-2")
        store.delete_folder("checkpoint/level-2")
        assert store.list("checkpoint/") == {}
        assert not (store.folder / CHUNK).exists()

    def recorded(self, store: RunStore) -> dict[str, dict[str, Any]]:
        """Write two tables, one of which a commit names."""
        for name in (TABLE, "counts.parquet"):
            pq.write_table(pa.table({"v0": [1, 2, 3]}), store.folder / "results.partial" / name)
        file = {"name": f"results.partial/{TABLE}"} | describe(store.folder / "results.partial" / TABLE)
        store.put_files([file["name"]])
        return {TABLE: file}

    def test_results_are_published_and_taken_back(self, store: RunStore) -> None:
        recorded = self.recorded(store)
        found = store.publish(recorded)
        assert list(found) == ["counts.parquet", TABLE]
        assert all(facts["rows"] == 3 for facts in found.values())
        assert {name: found[TABLE][name] for name in ("bytes", "sha256")}.items() <= recorded[TABLE].items()
        assert set(store.list("results/")) == {f"results/{TABLE}", "results/counts.parquet"}
        store.unpublish()
        store.unpublish()
        assert store.list("results/") == {}
        assert f"results.partial/{TABLE}" in store.list()

    @pytest.mark.parametrize("damage", [b"", None])
    def test_results_that_were_changed_are_not_published(self, store: RunStore, damage: bytes | None) -> None:
        recorded, name = self.recorded(store), f"results.partial/{TABLE}"
        content = bytearray(store.read(name))
        content[5] ^= 1
        store.delete([name])
        if damage is None:
            store.create(name, bytes(content))
        with pytest.raises((FinalError, RunError), match=TABLE):
            store.publish(recorded)

    def test_a_run_is_cleared(self, store: RunStore) -> None:
        store.write("manifest.json", RUNNING)
        self.put(store, CHUNK, b"x")
        self.put(store, f"results.partial/{TABLE}", b"x")
        assert status_of(store) == "running"
        store.clear("checkpoint/")
        assert set(store.list()) == {"config.toml", "manifest.json", f"results.partial/{TABLE}"}
        store.clear()
        assert status_of(store) is None
        assert not store.exists()

    def test_a_run_moves_to_the_place_of_another(self, store: RunStore) -> None:
        store.write("manifest.json", RUNNING.replace(b"running", b"done"))
        self.put(store, "results/counts.parquet", b"x")
        before = {name: size for name, size in store.list().items() if not name.startswith("results.partial")}
        target = store.sibling("two")
        with store.exchange():
            store.move_to(target)
        assert target.list() == before
        assert not store.exists()

    def test_only_a_run_is_replaceable(self, store: RunStore) -> None:
        store.write("config.toml", MARK.encode() + b"[run]")  # of a run that was killed as it began
        store.require_replaceable()
        store.write("config.toml", b"precious = 1")
        with pytest.raises(InputError, match=r"holds no manifest\.json of a run: move it away"):
            store.require_replaceable()
        store.require_replaceable(whole=False)
        store.write("manifest.json", b'{"status": "done", "config_sha256": ""}')
        store.require_replaceable()
        store.write("thesis.txt", b"precious")
        with pytest.raises(InputError, match=r"thesis\.txt: no run writes this"):
            store.require_replaceable()
        store.close()

    def test_strange_files_are_refused(self, store: RunStore) -> None:
        store.create("results.partial/notes.txt", b"precious")
        for act in (store.list, store.require_replaceable):
            with pytest.raises(InputError, match="this is no file of the run"):
                act()
        assert store.read("results.partial/notes.txt") == b"precious"
        store.close()


class TestLocalStore(RunStoreTests):
    """A folder."""

    alone = True

    @pytest.fixture
    def place(self, tmp_path: Path) -> Any:
        return lambda name: LocalStore(tmp_path / "runs" / name)

    def test_a_lock_keeps_others_away(self, store: RunStore, place: Any) -> None:
        store.hold()
        store.hold()
        with pytest.raises(InputError, match="another process is busy with this run"):
            place("one").hold()
        store.close()
        store.close()
        place("one").hold()

    def test_others_wait_while_names_change(self, store: RunStore, place: Any) -> None:
        entered = threading.Event()

        def enter() -> None:
            with place("two").exchange():
                entered.set()

        with store.exchange():
            thread = threading.Thread(target=enter)
            thread.start()
            assert not entered.wait(0.1)
        thread.join(10)
        assert entered.is_set()

    def test_what_could_not_be_written_leaves_nothing(self, store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(descriptor: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        store.write("manifest.json", b"before")
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", refuse)
            with pytest.raises(OSError, match=r"No space left on device.*00000000\.json"):
                store.create(COMMIT, b"x")
            with pytest.raises(OSError, match=r"No space left on device.*manifest\.json"):
                store.write("manifest.json", b"after")
        assert store.list("checkpoint/") == {}
        assert store.read("manifest.json") == b"before"

    def test_the_next_manifest_has_its_space(self, store: RunStore) -> None:
        store.write("manifest.json", b"x", spare=10_000)
        assert (store.folder / "manifest.json.tmp").stat().st_blocks * 512 >= 10_000
        store.write("manifest.json", b"y")
        assert (store.folder / "manifest.json").stat().st_size == 1

    def test_no_link_is_read_or_replaced(self, store: RunStore, place: Any, tmp_path: Path) -> None:
        (tmp_path / "mine").write_text("precious")
        (store.folder / "manifest.json").symlink_to(tmp_path / "mine")
        with pytest.raises(OSError, match="symbolic links"):
            store.read("manifest.json")
        with pytest.raises(InputError, match=r"manifest\.json: this is a link"):
            store.list()
        place("two").folder.symlink_to(store.folder)
        with pytest.raises(InputError, match="this is not the folder of a run"):
            place("two").require_replaceable()

    def test_a_folder_to_which_others_still_write_is_removed(
        self, store: RunStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.put(store, CHUNK, b"x")
        folder, late, rmdir = store.folder / "checkpoint" / "level-2", [1], os.rmdir

        def interrupted(path: Any, *arguments: Any, **options: Any) -> None:
            if late:
                (folder / str(late.pop())).touch()
            rmdir(path, *arguments, **options)

        monkeypatch.setattr(os, "rmdir", interrupted)
        store.delete_folder("checkpoint/level-2")
        assert not folder.exists()


class ObjectStoreTests(RunStoreTests):
    """A URL."""

    alone = False

    def test_files_that_others_sent_are_fetched(self, store: RunStore, place: Any) -> None:
        self.put(store, CHUNK, b"x")
        self.put(store, f"results.partial/{TABLE}", b"rows")
        assert not (store.folder / "results.partial" / TABLE).exists()
        other = place("one")
        (other.folder / "checkpoint" / "level-2").mkdir(parents=True)
        other.put_files([CHUNK])  # a commit names it, and a worker has sent it
        assert other.read(CHUNK) == b"x"
        assert not (other.folder / CHUNK).exists()
        assert other.local(CHUNK).read_bytes() == b"x"

    def test_a_run_that_is_going_on_is_not_replaced(self, store: RunStore) -> None:
        store.write("manifest.json", RUNNING)
        with pytest.raises(InputError, match=r"another process is busy with this run.*resume it, or remove"):
            store.require_replaceable()

    def test_a_lost_answer_is_no_other_file(self, store: RunStore) -> None:
        assert store.create(COMMIT, b"mine")
        assert store.create(COMMIT, b"mine")


class TestObjectStoreInMemory(ObjectStoreTests):
    """Objects."""

    @pytest.fixture
    def place(self, tmp_path: Path, memory: Any) -> Iterator[Any]:
        numbers = iter(range(100))
        return lambda name: ObjectStore(f"memory://runs/{name}", tmp_path / "spill" / str(next(numbers)))


class TestObjectStoreOfFiles(ObjectStoreTests):
    """Files and folders, as fsspec shows them."""

    @pytest.fixture
    def place(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
        pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'longwall[cluster]'")
        monkeypatch.setattr(remote_folder, "_PAUSES", ())
        numbers = iter(range(100))
        return lambda name: ObjectStore(f"file://{tmp_path}/runs/{name}", tmp_path / "spill" / str(next(numbers)))
