"""A folder and a URL keep the files of a run alike: whole or not at all, and nothing that no run writes is touched."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from longwall.pipeline.run_store import store as run_store
from longwall.pipeline.run_store.local_store import LocalStore
from longwall.pipeline.run_store.object_store import ObjectStore
from longwall.pipeline.run_store.store import RunStore, fetched, require_unchanged
from longwall.storage.errors import FinalError, InputError, RunError
from longwall.storage.memory.reservations import BudgetExceeded, MemoryBudget
from longwall.storage.remote import remote_folder

COMMIT, CHUNK, TABLE = "checkpoint/commits/00000000.json", "checkpoint/level-2/00000000", "embeddings-0.parquet"
LEVEL = "checkpoint/level-2/"


class RunStoreTests:
    """What every store must do; a subclass has a fixture `process`, which opens the store as another process does."""

    alone: bool

    @pytest.fixture
    def store(self, process: Any) -> RunStore:
        """A run that has begun."""
        made: RunStore = process()
        (made.folder / "results.partial").mkdir(parents=True)
        assert made.create("config.toml", b"")
        return made

    def put(self, store: RunStore, name: str, content: bytes) -> None:
        path = store.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        store.put_files([name])

    def test_its_name_and_its_locks_are_known(self, store: RunStore) -> None:
        assert str(store.where).endswith("runs/one")
        assert store.alone is self.alone

    def test_a_file_is_created_once(self, store: RunStore) -> None:
        assert store.create(COMMIT, b"mine")
        assert not store.create(COMMIT, b"yours")
        assert store.read(COMMIT) == b"mine"

    def test_a_file_that_is_written_replaces_the_one_before(self, store: RunStore) -> None:
        store.write("manifest.json", b"the first", spare=100)
        store.write("manifest.json", b"last")
        assert store.read("manifest.json") == b"last"

    def test_a_file_that_need_not_last_is_not_waited_for(
        self, store: RunStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        synced: list[int] = []
        monkeypatch.setattr(os, "fsync", synced.append)
        store.write("report.html", b"a page", lasting=False)
        assert synced == []
        assert store.read("report.html") == b"a page"
        assert store.list()["report.html"] == 6

    def test_what_is_put_is_listed_and_read(self, store: RunStore) -> None:
        content = bytes(range(256))
        self.put(store, CHUNK, content)
        self.put(store, f"results.partial/{TABLE}", b"rows")
        store.create(COMMIT, b"x")
        store.create("thesis.txt", b"beside")
        files = {"config.toml": 0, CHUNK: 256, COMMIT: 1, f"results.partial/{TABLE}": 4, "thesis.txt": 6}
        assert store.list() == files
        assert store.list("checkpoint/commits/") == {COMMIT: 1}
        assert store.list("checkpoint/nothing/") == {}
        assert store.read(CHUNK) == content
        assert store.read(CHUNK, 250) == content[250:]
        assert store.read(CHUNK, 3, 5) == content[3:5]
        assert store.read(CHUNK, 5, 5) == b""
        assert store.local(f"results.partial/{TABLE}").read_bytes() == b"rows"

    def test_files_that_were_changed_are_noticed(self, store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(run_store, "_BLOCK_BYTES", 100)
        content = bytes(range(256))
        self.put(store, CHUNK, content)
        self.put(store, "checkpoint/a-0.npy", b"x")
        right = {"name": CHUNK, "bytes": 256, "sha256": hashlib.sha256(content).hexdigest()}
        gone = {"name": "checkpoint/a-1.npy"}
        require_unchanged(store, [right, gone, gone | {"sha256": "0"}, {"name": "checkpoint/a-0.npy"}], store.list())
        for wrong in (right | {"bytes": 255}, right | {"sha256": "0" * 64}, gone | {"bytes": 1}):
            with pytest.raises(FinalError, match=rf"{wrong['name']}: the run had finished this file"):
                require_unchanged(store, [right, wrong], store.list())

    def test_a_file_is_fetched_within_the_budget(self, store: RunStore, process: Any) -> None:
        self.put(store, CHUNK, bytes(600))
        disk = MemoryBudget("memory.disk", 1000)
        for one in (store, process()):  # the second one has not written the file
            (one.folder / "checkpoint").mkdir(parents=True, exist_ok=True)
            with fetched(one, CHUNK, 600, disk) as path:
                assert path.read_bytes() == bytes(600)
                assert disk.free == (1000 if path == one.folder / CHUNK else 400)
            with pytest.raises(RunError) as caught, fetched(one, CHUNK, 600, disk) as path:
                raise RunError(f"{path} is torn")
            place = one.folder if path == one.folder / CHUNK else one.where
            assert str(caught.value) == f"{place}/{CHUNK} is torn"
        assert disk.free == 1000

    def test_what_is_deleted_is_gone(self, store: RunStore) -> None:
        for name in (CHUNK, f"{LEVEL}00000001", "checkpoint/a-0.npy"):
            self.put(store, name, b"x")
        store.delete(["checkpoint/a-0.npy", "checkpoint/a-1.npy"])
        assert set(store.list("checkpoint/")) == {CHUNK, f"{LEVEL}00000001"}
        store.delete([LEVEL])
        store.delete([LEVEL, "results/"])
        assert store.list("checkpoint/") == {}
        assert not (store.folder / LEVEL).exists()
        self.put(store, CHUNK, b"x")
        self.put(store, f"results.partial/{TABLE}", b"x")
        store.delete(["checkpoint/", "results.partial/", "config.toml"])
        assert store.list() == {}

    def test_what_no_run_writes_is_not_deleted(self, store: RunStore) -> None:
        self.put(store, CHUNK, b"x")
        store.create(f"{LEVEL}notes.txt", b"precious")
        store.delete([LEVEL])
        assert store.read(f"{LEVEL}notes.txt") == b"precious"
        with pytest.raises(FileNotFoundError if self.alone else RunError):
            store.read(CHUNK)

    def test_results_are_published_and_taken_back(self, store: RunStore) -> None:
        self.put(store, f"results.partial/{TABLE}", b"rows")
        (store.folder / "results.partial/counts.parquet").write_bytes(b"2")  # no commit names it
        store.publish([TABLE, "counts.parquet"])
        assert store.list("results/") == {f"results/{TABLE}": 4, "results/counts.parquet": 1}
        store.unpublish()
        store.unpublish()
        assert store.list("results/") == {}
        assert store.read(f"results.partial/{TABLE}") == b"rows"

    def test_strange_files_are_refused(self, store: RunStore) -> None:
        store.create("results.partial/notes.txt", b"precious")
        with pytest.raises(InputError, match="this is no file of the run"):
            store.list()
        assert store.read("results.partial/notes.txt") == b"precious"


class TestLocalStore(RunStoreTests):
    """A folder."""

    alone = True

    @pytest.fixture
    def process(self, tmp_path: Path) -> Any:
        return lambda: LocalStore(tmp_path / "runs" / "one")

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

    def test_no_link_is_read_or_followed(self, store: RunStore, tmp_path: Path) -> None:
        mine = tmp_path / "mine"
        mine.mkdir()
        (mine / "00000000").write_text("precious")
        (store.folder / "manifest.json").symlink_to(mine / "00000000")
        with pytest.raises(OSError, match="symbolic links"):
            store.read("manifest.json")
        with pytest.raises(InputError, match=r"manifest\.json: this is a link"):
            store.list()
        store.delete(["manifest.json"])
        (store.folder / "checkpoint").mkdir()
        (store.folder / LEVEL.rstrip("/")).symlink_to(mine)
        for names in ([CHUNK], [LEVEL]):
            with pytest.raises(NotADirectoryError):
                store.delete(names)
        assert (mine / "00000000").read_text() == "precious"

    def test_what_lies_beside_the_run_is_listed_by_its_first_name(self, store: RunStore, tmp_path: Path) -> None:
        (store.folder / "src").mkdir()
        (store.folder / "src" / "a.py").touch()
        (store.folder / "link").symlink_to(tmp_path)
        assert store.list().keys() == {"config.toml", "link", "src"}

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
        store.delete([LEVEL])
        assert not folder.exists()


class ObjectStoreTests(RunStoreTests):
    """A URL."""

    alone = False

    def test_files_that_others_sent_are_copied(self, store: RunStore, process: Any) -> None:
        self.put(store, CHUNK, b"x")
        self.put(store, f"results.partial/{TABLE}", b"rows")
        assert not (store.folder / "results.partial" / TABLE).exists()
        other = process()
        (other.folder / LEVEL).mkdir(parents=True)
        other.put_files([CHUNK])  # a commit names it, and a worker has sent it
        assert other.read(CHUNK) == b"x"
        assert not (other.folder / CHUNK).exists()
        assert other.local(CHUNK, other.folder / "copy").read_bytes() == b"x"
        assert not (other.folder / CHUNK).exists()
        assert other.local(CHUNK) == other.folder / CHUNK
        assert other.local(CHUNK, other.folder / "copy").read_bytes() == b"x"

    def test_a_copy_is_whole_or_not_there(self, store: RunStore, process: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.put(store, CHUNK, bytes(600))
        other, disk = process(), MemoryBudget("memory.disk", 1000)
        (other.folder / "checkpoint").mkdir(parents=True)
        with (
            fetched(other, CHUNK, 600, disk),
            pytest.raises(BudgetExceeded, match="a copy of"),
            fetched(other, CHUNK, 600, disk),
        ):
            pass

        def cut(system: Any, path: str, target: str, **options: Any) -> None:
            Path(target).write_bytes(b"half")
            raise ConnectionResetError

        monkeypatch.setattr(type(other.remote._system), "get_file", cut)
        with pytest.raises(RunError, match="cannot be read"), fetched(other, CHUNK, 600, disk):
            pass
        assert list((other.folder / "checkpoint").iterdir()) == []
        assert disk.free == 1000

    def test_a_lost_answer_is_no_other_file(self, store: RunStore) -> None:
        assert store.create(COMMIT, b"mine")
        assert store.create(COMMIT, b"mine")


class TestObjectStoreInMemory(ObjectStoreTests):
    """Objects."""

    @pytest.fixture
    def process(self, tmp_path: Path, memory: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
        monkeypatch.setattr(remote_folder, "_PAUSES", ())
        numbers = iter(range(100))
        return lambda: ObjectStore("memory://runs/one", tmp_path / "spill" / str(next(numbers)))


class TestObjectStoreOfFiles(ObjectStoreTests):
    """Files and folders, as fsspec shows them."""

    @pytest.fixture
    def process(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
        pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'longwall[cluster]'")
        monkeypatch.setattr(remote_folder, "_PAUSES", ())
        numbers = iter(range(100))
        return lambda: ObjectStore(f"file://{tmp_path}/runs/one", tmp_path / "spill" / str(next(numbers)))
