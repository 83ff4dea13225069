"""Opening files that others may have made: regular files, and nothing that waits."""

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from longwall.pipeline.config.raw import read_toml
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.storage.errors import InputError
from longwall.storage.ingest.readers.edge_stream import FileRequest
from longwall.storage.ingest.tables.edge_list import open_edge_list
from longwall.storage.ingest.tables.parquet import open_parquet
from longwall.storage.stored_files import Damage, SpecialFile, open_regular, plain_file

READERS: list[Callable[[Path], Any]] = [
    lambda path: list(open_edge_list(FileRequest(path, 2**24, 1)).blocks),
    lambda path: list(open_parquet(FileRequest(path, 2**24, 1)).blocks),
    lambda path: parse_pattern(str(path)),
    read_toml,
]


@pytest.fixture
def strange(tmp_path: Path) -> dict[str, Path]:
    paths = {name: tmp_path / f"{name}.graph" for name in ("pipe", "socket", "folder", "link to pipe", "nothing")}
    os.mkfifo(paths["pipe"])
    paths["folder"].mkdir()
    paths["link to pipe"].symlink_to(paths["pipe"])
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(paths["socket"]))
    return paths | {"device": Path("/dev/null")}


def test_what_is_no_regular_file_is_named(strange: dict[str, Path]) -> None:
    kinds: dict[str, type[OSError]] = {"folder": IsADirectoryError, "nothing": FileNotFoundError}
    for name, path in strange.items():
        with pytest.raises(kinds.get(name, SpecialFile)):
            open_regular(path)
        with pytest.raises(Damage, match="name: "), plain_file(path, "name"):
            pass


def test_a_regular_file_is_opened_for_this_process_alone(tmp_path: Path) -> None:
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_bytes(b"content")
    link.symlink_to(path)
    for there in (path, link):
        descriptor = open_regular(there)
        assert os.read(descriptor, 99) == b"content"
        assert not os.get_inheritable(descriptor)
        os.close(descriptor)
    with pytest.raises(OSError, match="symbolic links"):
        open_regular(link, links=False)
    with pytest.raises(ValueError, match="null"):
        open_regular(tmp_path / "a\0b")


def test_no_descriptor_is_left_open(strange: dict[str, Path]) -> None:
    before = sorted(Path("/proc/self/fd").iterdir())
    for path in strange.values():
        with pytest.raises((SpecialFile, IsADirectoryError, FileNotFoundError)):
            open_regular(path)
    assert sorted(Path("/proc/self/fd").iterdir()) == before


@pytest.mark.timeout(60)  # a reader that waits for the pipe's writer waits forever
@pytest.mark.parametrize("read", READERS)
def test_a_file_that_becomes_a_pipe_ahead_of_its_opening_is_refused(
    read: Callable[[Path], Any], strange: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "before").write_text("1 2\n")
    facts = (tmp_path / "before").stat()
    monkeypatch.setattr(Path, "stat", lambda self, **options: facts)
    with pytest.raises(InputError, match="a pipe or a device"):
        read(strange["pipe"])


@pytest.mark.parametrize("read", READERS[:3])
@pytest.mark.parametrize("kind", ["socket", "link to pipe", "device"])
def test_readers_refuse_special_files(read: Callable[[Path], Any], kind: str, strange: dict[str, Path]) -> None:
    path = strange[kind]
    if kind == "device":
        path = strange["nothing"]
        path.symlink_to("/dev/null")
    with pytest.raises(InputError, match=r"this is not a regular file but a pipe or a device"):
        read(path)
