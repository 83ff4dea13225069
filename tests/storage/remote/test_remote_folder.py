"""A folder at a URL: files go there and come back whole or not at all, and no name leads out of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from longwall.storage.errors import InputError, RunError
from longwall.storage.remote import remote_folder as mirrors
from longwall.storage.remote.remote_folder import RemoteFolder

fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'longwall[cluster]'")


@pytest.fixture(params=["file", "memory"])
def there(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RemoteFolder]:
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


def test_what_is_sent_comes_back(there: RemoteFolder, tmp_path: Path) -> None:
    assert there.sizes() == {}
    (tmp_path / "here").write_bytes(bytes(range(256)) * 10)
    there.send(tmp_path / "here", "a/b/c")
    there.write("d", b"x")
    there.write("d", b"xyz")
    assert there.sizes() == {"a/b/c": 2560, "d": 3}
    assert there.sizes("a") == {"a/b/c": 2560}
    there.fetch("a/b/c", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == (tmp_path / "here").read_bytes()
    assert there.read("a/b/c", 250, 260) == bytes([*range(250, 256), *range(4)])
    there.copy([("d", "e/d")])
    there.remove(["d", "d"])
    assert there.sizes() == {"a/b/c": 2560, "e/d": 3}
    there.remove(["a/b/c"])
    there.remove_empty_folders("a")
    there.remove_empty_folders("a")
    assert there.sizes() == {"e/d": 3}
    there.write("a/b/c", b"x")
    there.remove(["e/d", "a/b/c"])
    there.remove_empty_folders()
    assert there.sizes() == {}


def test_a_file_is_created_once(there: RemoteFolder, buckets: RemoteFolder) -> None:
    for one in (there, buckets):
        assert one.create("a", b"mine")
        assert not one.create("a", b"yours")
        assert one.create("a", b"mine")  # as after an answer that was lost
        assert one.read("a") == b"mine"


def test_what_could_not_be_written_leaves_nothing(there: RemoteFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    there.write("a", b"x")
    put = type(there._system).pipe_file

    def cut(system: Any, path: str, content: bytes, **options: Any) -> None:
        put(system, path, content[:1], **options)
        raise ConnectionResetError

    monkeypatch.setattr(type(there._system), "pipe_file", cut)
    for write in (there.write, there.create):
        with pytest.raises(RunError, match="cannot be written"):
            write("b", b"yz")
    assert there.sizes() == {"a": 1}


def test_objects_need_no_folders(buckets: RemoteFolder, tmp_path: Path) -> None:
    (tmp_path / "here").write_bytes(b"x")
    buckets.send(tmp_path / "here", "a/b")
    buckets.copy([("a/b", "c/d")])
    assert buckets.sizes() == {"a/b": 1, "c/d": 1}
    buckets.remove(["a/b", "c/d"])
    buckets.remove_empty_folders()
    assert buckets.sizes() == {}


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/x", "", "a*"])
def test_no_name_leads_out_of_the_folder(there: RemoteFolder, tmp_path: Path, name: str) -> None:
    (tmp_path / "here").write_bytes(b"x")
    for act in (
        lambda: there.read(name),
        lambda: there.write(name, b"x"),
        lambda: there.send(tmp_path / "here", name),
        lambda: there.fetch(name, tmp_path / "back"),
        lambda: there.remove(["a", name]),
    ):
        with pytest.raises(RunError, match="no name of a file of a run"):
            act()


def test_a_listing_that_leads_out_of_the_folder_is_refused(
    there: RemoteFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    there.write("a", b"x")
    for wrong in ("/elsewhere/a", f"{there._root}/../a"):
        monkeypatch.setattr(there._system, "find", lambda *_, wrong=wrong, **__: {wrong: {"size": 1}})
        with pytest.raises(InputError, match="outside of the folder"):
            there.sizes()


def test_a_connection_that_is_lost_is_tried_again(there: RemoteFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    there.write("a", b"x")
    left, read = [2], type(there._system).cat_file

    def lossy(system: Any, *arguments: Any, **options: Any) -> Any:
        if left[0]:
            left[0] -= 1
            raise ConnectionResetError("gone\nfor good")
        return read(system, *arguments, **options)

    monkeypatch.setattr(type(there._system), "cat_file", lossy)
    assert there.read("a") == b"x"
    left[0] = 3
    with pytest.raises(RunError, match=r"run/a: cannot be read \(ConnectionResetError: gone for good\)"):
        there.read("a")


@pytest.mark.parametrize(
    ("url", "said"),
    [("nonsense://x/y", "nonsense"), ("memory://a*/b", "none of the characters"), ("memory://a[1]/b", "[ ]")],
)
def test_urls_that_cannot_be_are_refused(url: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        RemoteFolder(url)
    assert said in str(caught.value)
