"""A folder at a URL: files go there and come back whole or not at all, and no name leads out of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from longwall.pipeline.run_store.commit_log import JournalLines, PartialResult, Phase
from longwall.pipeline.run_store.url_journal import UrlJournal
from longwall.storage.errors import FinalError, InputError, RunError
from longwall.storage.memory.reservations import BudgetExceeded, MemoryBudget
from longwall.storage.remote import remote_folder as mirrors
from longwall.storage.remote.remote_folder import RemoteFolder

fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'longwall[cluster]'")


@pytest.fixture(params=["file", "memory"])
def remote(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RemoteFolder]:
    monkeypatch.setattr(mirrors, "_PAUSES", (0.0, 0.0))
    system = fsspec.filesystem("memory")
    yield RemoteFolder(f"file://{tmp_path}/there/run/" if request.param == "file" else "memory://there/run")
    system.store.clear()
    system.pseudo_dirs[:] = [""]


@pytest.fixture
def buckets(monkeypatch: pytest.MonkeyPatch) -> RemoteFolder:
    """A folder where there are only objects, as fsspec shows them: paths begin with a bucket."""

    class Objects(fsspec.get_filesystem_class("memory")):  # type: ignore[misc]
        protocol = "bucket"
        store: dict[str, Any] = {}  # noqa: RUF012 - of the class, as its parent's
        pseudo_dirs = [""]  # noqa: RUF012

        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            return path.removeprefix("bucket://").rstrip("/")

        def makedirs(self, path: str, exist_ok: bool = False) -> None:
            pass

    fsspec.register_implementation("bucket", Objects, clobber=True)
    monkeypatch.setattr(mirrors, "_PAUSES", (0.0, 0.0))
    return RemoteFolder("bucket://mine/runs/one")


def test_what_is_sent_comes_back(remote: RemoteFolder, tmp_path: Path) -> None:
    assert remote.sizes() == {}
    (tmp_path / "here").write_bytes(bytes(range(256)) * 10)
    remote.send(tmp_path / "here", "a/b/c")
    remote.write("d", b"x")
    remote.write("d", b"xyz")
    assert remote.sizes() == {"a/b/c": 2560, "d": 3}
    assert remote.sizes("a") == {"a/b/c": 2560}
    remote.fetch("a/b/c", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == (tmp_path / "here").read_bytes()
    assert remote.read("a/b/c", 250, 260) == bytes([*range(250, 256), *range(4)])
    assert remote.read_all(["d", "a/b/c"]) == [b"xyz", (tmp_path / "here").read_bytes()]
    remote.copy([("d", "e/d")])
    remote.remove(["d", "d"])
    assert remote.sizes() == {"a/b/c": 2560, "e/d": 3}
    remote.remove_folder("a")
    remote.remove_folder("a")
    assert remote.sizes() == {"e/d": 3}
    remote.remove_folder()
    assert remote.sizes() == {}


def test_a_file_is_created_once(remote: RemoteFolder, buckets: RemoteFolder) -> None:
    for one in (remote, buckets):
        assert one.create("a", b"mine")
        assert not one.create("a", b"yours")
        assert one.create("a", b"mine")  # as after an answer that was lost
        assert one.read("a") == b"mine"


def test_what_could_not_be_written_leaves_nothing(remote: RemoteFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    remote.write("a", b"x")
    put = type(remote._system).pipe_file

    def cut(system: Any, path: str, content: bytes, **options: Any) -> None:
        put(system, path, content[:1], **options)
        raise ConnectionResetError

    monkeypatch.setattr(type(remote._system), "pipe_file", cut)
    for write in (remote.write, remote.create):
        with pytest.raises(RunError, match="cannot be written"):
            write("b", b"yz")
    assert remote.sizes() == {"a": 1}


def test_objects_need_no_folders(buckets: RemoteFolder, tmp_path: Path) -> None:
    (tmp_path / "here").write_bytes(b"x")
    buckets.send(tmp_path / "here", "a/b")
    buckets.copy([("a/b", "c/d")])
    assert buckets.sizes() == {"a/b": 1, "c/d": 1}
    buckets.remove_folder()
    assert buckets.sizes() == {}


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/x", "", "a*"])
def test_no_name_leads_out_of_the_folder(remote: RemoteFolder, tmp_path: Path, name: str) -> None:
    (tmp_path / "here").write_bytes(b"x")
    for act in (
        lambda: remote.read(name),
        lambda: remote.write(name, b"x"),
        lambda: remote.send(tmp_path / "here", name),
        lambda: remote.fetch(name, tmp_path / "back"),
        lambda: remote.remove(["a", name]),
    ):
        with pytest.raises(RunError, match="no name of a file of a run"):
            act()


def test_a_listing_that_leads_out_of_the_folder_is_refused(
    remote: RemoteFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote.write("a", b"x")
    for wrong in ("/elsewhere/a", f"{remote._root}/../a"):
        monkeypatch.setattr(remote._system, "find", lambda *_, wrong=wrong, **__: {wrong: {"size": 1}})
        with pytest.raises(InputError, match="outside of the folder"):
            remote.sizes()


def test_a_connection_that_is_lost_is_tried_again(remote: RemoteFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    remote.write("a", b"x")
    left, read = [2], type(remote._system).cat_file

    def lossy(system: Any, *arguments: Any, **options: Any) -> Any:
        if left[0]:
            left[0] -= 1
            raise ConnectionResetError("gone\nfor good")
        return read(system, *arguments, **options)

    monkeypatch.setattr(type(remote._system), "cat_file", lossy)
    assert remote.read("a") == b"x"
    left[0] = 3
    with pytest.raises(RunError, match=r"run/a: cannot be read \(ConnectionResetError: gone for good\)"):
        remote.read("a")


def test_a_copy_is_whole_or_not_there_and_in_the_budget(
    remote: RemoteFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, disk = tmp_path / "copies", MemoryBudget("memory.disk", 1000)
    folder.mkdir()
    remote.write("a", bytes(600))
    with remote.fetched("a", 600, folder, disk) as copy:
        assert copy.read_bytes() == bytes(600)
        assert disk.free == 400
        with pytest.raises(BudgetExceeded), remote.fetched("a", 600, folder, disk):
            pass
    with (
        pytest.raises(RunError, match=r"^\S+//\S*there/run/a is torn$"),
        remote.fetched("a", 600, folder, disk) as copy,
    ):
        raise RunError(f"{copy} is torn")
    assert disk.free == 1000

    def cut(system: Any, path: str, target: str, **options: Any) -> None:
        Path(target).write_bytes(b"half")
        raise ConnectionResetError

    monkeypatch.setattr(type(remote._system), "get_file", cut)
    with pytest.raises(RunError, match="cannot be read"), remote.fetched("a", 600, folder, disk):
        pass
    assert list(folder.iterdir()) == []
    assert disk.free == 1000


@pytest.mark.parametrize(
    ("url", "said"),
    [("nonsense://x/y", "nonsense"), ("memory://a*/b", "none of the characters"), ("memory://a[1]/b", "[ ]")],
)
def test_urls_that_cannot_be_are_refused(url: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        RemoteFolder(url)
    assert said in str(caught.value)


class Lines:
    """A process that writes a journal, or reads it."""

    def __init__(self, remote: RemoteFolder):
        self.remote, self.journal, self.phases = remote, UrlJournal(remote), dict[str, Phase]()
        self.lines = JournalLines(self.phases, self)

    def own(self) -> None:
        self.remote.write("manifest.json", json.dumps({"owner": self.journal.owner}).encode())

    def read(self) -> list[Any]:
        self.journal.read(self.lines)
        return [partial.value for phase in self.phases.values() for partial in phase.partials]

    def write(self, first: int, value: Any) -> None:
        text, checksum = self.lines.text(Phase("0 count", 100, self), [([(first, first + 1)], PartialResult(value))])
        self.journal.append(text)
        self.lines.checksum = checksum

    def append(self, phase: Phase, commits: Any) -> None:
        raise AssertionError


def going_on(remote: RemoteFolder) -> list[Any]:
    """What a process finds that goes on with a run."""
    process = Lines(remote)
    process.journal.take_over()
    return process.read()


def test_readers_see_every_commit_once(remote: RemoteFolder) -> None:
    writer, reader = Lines(remote), Lines(remote)
    writer.own()
    assert reader.read() == []
    writer.write(0, "a")
    writer.write(1, "b")
    assert reader.read() == ["a", "b"]
    writer.write(2, "c")
    assert reader.read() == reader.read() == ["a", "b", "c"]


def test_who_goes_on_with_a_run_stops_who_had_it(remote: RemoteFolder) -> None:
    first, second = Lines(remote), Lines(remote)
    first.own()
    first.write(0, "a")
    second.journal.take_over()
    second.own()
    assert second.read() == ["a"]
    with pytest.raises(FinalError, match="another process goes on"):
        first.write(1, "b")
    assert first.journal.lost
    second.write(1, "c")
    second.journal.confirm()
    with pytest.raises(FinalError):
        first.journal.confirm()
    assert Lines(remote).read() == ["a", "c"]
    remote.remove_folder("checkpoint")  # the run is done
    with pytest.raises(FinalError):
        first.write(1, "b")


def test_two_cannot_take_a_run_over_at_once(remote: RemoteFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = Lines(remote), Lines(remote)
    monkeypatch.setattr(second.journal, "_numbers", set)  # it has looked before the first one wrote
    first.journal.take_over()
    with pytest.raises(InputError, match="another process is busy with this run"):
        second.journal.take_over()


def test_an_interrupt_behind_a_commit_is_no_other_process(
    mirror: RemoteFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Lines(mirror)
    writer.own()
    create = RemoteFolder.create

    def interrupted(self: RemoteFolder, name: str, content: bytes) -> bool:
        create(self, name, content)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(RemoteFolder, "create", interrupted)
        with pytest.raises(KeyboardInterrupt):
            writer.write(0, "a")
    writer.journal.confirm()
    assert Lines(mirror).read() == ["a"]


@pytest.mark.parametrize("damage", ["gone", "cut", "changed", "half a line"])
def test_a_damaged_journal_is_refused(remote: RemoteFolder, damage: str) -> None:
    writer = Lines(remote)
    writer.own()
    for number in range(3):
        writer.write(number, number)
    name = "checkpoint/journal/00000001.jsonl"
    text = remote.read(name)
    if damage == "gone":
        remote.remove([name])
    else:
        lines = text.splitlines(keepends=True)
        changed = {"cut": text[:-1], "changed": text.replace(b'"total": 100', b'"total": 101')}
        remote.write(name, changed.get(damage) or lines[0][:-9] + b"\n" + lines[1])
    with pytest.raises(FinalError, match="damaged"):
        going_on(remote)


def test_what_a_listing_missed_is_read_the_next_time(remote: RemoteFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    writer, reader = Lines(remote), Lines(remote)
    writer.own()
    for number in range(3):
        writer.write(number, number)
    with monkeypatch.context() as patch:
        patch.setattr(reader.journal, "_numbers", lambda: {0, 2})
        assert reader.read() == [0]
    assert reader.read() == [0, 1, 2]
