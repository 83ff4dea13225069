"""A folder at a URL: files go there and come from there by their names, whole or not at all."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import uuid4

from longwall.storage.errors import InputError, RunError
from longwall.storage.remote.urls import below, file_system, url_faults

_PAUSES = (0.5, 2.0)  # seconds between attempts
_CERTAIN = (FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError, PermissionError, ImportError)
_SPECIAL = re.compile(r"[*?\[\]]")


class RemoteFolder:
    """A folder at a URL, which fsspec reads and writes.

    Where fsspec's path begins with a slash, there are folders, and a file may be seen before it is whole; so it is
    written aside and renamed. Elsewhere objects appear whole, and nothing is made but they.

    Parameters
    ----------
    url
        The folder's; it need not exist.

    Attributes
    ----------
    url
        Without a slash at its end.
    has_folders
        See above.

    Raises
    ------
    InputError
        If there is no file system for such URLs, or fsspec would take the URL for a pattern.
    """

    def __init__(self, url: str):
        self.url = url.rstrip("/")
        self._system, self._root = file_system(self.url)
        if _SPECIAL.search(self._root):
            raise InputError(f"{self.url}: a URL of a run has none of the characters * ? [ ]: choose another one")
        self.has_folders = self._root.startswith("/")
        self._made: set[str] = set()

    @property
    def protocols(self) -> set[str]:
        """The file systems that files go to, each of which may be the cache of the next."""
        found: set[str] = set()
        system = self._system
        while system is not None:
            names = system.protocol
            found |= {names} if isinstance(names, str) else set(names)
            system = getattr(system, "fs", None)
        return found

    def sizes(self, folder: str = "") -> dict[str, int]:
        """The names of all files that there are by now, or of those in a folder of it, with their bytes."""
        found: dict[str, int] = self._call(folder, "listed", self._sizes, self._path(folder) if folder else self._root)
        return found

    def _sizes(self, path: str) -> dict[str, int]:
        self._system.invalidate_cache()
        found = self._system.find(path, detail=True, withdirs=self.has_folders)
        links = [file for file, facts in found.items() if facts.get("islink") and file != self._root]
        if links:
            name = below(links[0], self._root, self.url)
            raise InputError(f"{self.url}/{name}: this is a link; the folder of a run has none: remove it")
        files = {file: facts["size"] for file, facts in found.items() if facts.get("type") != "directory"}
        files = {file: size for file, size in files.items() if not file.endswith("/")}
        return {str(below(file, self._root, self.url)): int(size) for file, size in files.items()}

    def create(self, name: str, content: bytes) -> bool:
        """Write a file unless there is one of that name; return whether a file with this content is there then."""
        created: bool = self._call(name, "written", self._create, self._path(name), content)
        return created or self.read(name) == content  # a lost answer makes one's own file look like another's

    def _create(self, path: str, content: bytes) -> bool:
        if self.has_folders:
            if self._system.exists(path):
                return False
            self._put(path, lambda aside: self._system.pipe_file(aside, content))
            return True
        try:
            self._system.pipe_file(path, content, mode="create")
        except FileExistsError:
            return False
        return True

    def write(self, name: str, content: bytes) -> None:
        """Write a file; one of that name is replaced."""
        path = self._path(name)
        self._call(name, "written", self._put, path, lambda aside: self._system.pipe_file(aside, content))

    def send(self, file: Path, name: str) -> None:
        """Copy a local file there; one of that name is replaced."""
        path = self._path(name)
        self._call(name, "written", self._put, path, lambda aside: self._system.put_file(str(file), aside))

    def _put(self, path: str, put: Callable[[str], None]) -> None:
        if not self.has_folders:
            put(path)
            return
        self._make_folder(path)
        aside = f"{path}.{uuid4().hex}.partial"
        try:
            put(aside)
            self._system.mv(aside, path)
        except BaseException:
            with suppress(Exception):
                self._system.rm(aside)
            raise

    def _make_folder(self, path: str) -> None:
        parent = path.rpartition("/")[0]
        if self.has_folders and parent not in self._made:
            self._system.makedirs(parent, exist_ok=True)
            self._made.add(parent)

    def read(self, name: str, begin: int | None = None, end: int | None = None) -> bytes:
        """Read a file, or bytes `begin` to `end` - 1 of it."""
        found: bytes = self._call(name, "read", partial(self._system.cat_file, start=begin, end=end), self._path(name))
        return found

    def fetch(self, name: str, file: Path) -> None:
        """Copy a file from there; the local one is whole, or there is none."""
        aside = file.with_name(f".{uuid4().hex}.partial")
        try:
            self._call(name, "read", self._system.get_file, self._path(name), str(aside))
            aside.replace(file)
        except BaseException:
            aside.unlink(missing_ok=True)
            raise

    def copy(self, pairs: Sequence[tuple[str, str]], target: RemoteFolder | None = None) -> None:
        """Copy files to other names, here or in another folder of the same file system."""
        target = target or self
        if pairs:
            old, new = [self._path(name) for name, _ in pairs], [target._path(name) for _, name in pairs]
            target._call(pairs[0][1], "written", target._copy, old, new)

    def _copy(self, old: list[str], new: list[str]) -> None:
        for path in new:
            self._make_folder(path)
        self._system.copy(old, new, on_error="raise")

    def remove(self, names: Sequence[str]) -> None:
        """Remove files, where they exist."""
        if names:
            self._call(names[0], "removed", self._remove, [self._path(name) for name in names])

    def _remove(self, paths: list[str]) -> None:
        self._system.invalidate_cache()
        try:
            self._system.rm(paths)
        except FileNotFoundError:  # some file systems stop at the first one that is gone
            for path in paths:
                with suppress(FileNotFoundError):
                    self._system.rm(path)

    def remove_empty_folders(self, folder: str = "") -> None:
        """Remove a folder and those in it that have no files, where there are folders; by default this folder."""
        if self.has_folders:
            self._call(folder, "removed", self._remove_empty, self._path(folder) if folder else self._root)
            self._made.clear()

    def _remove_empty(self, root: str) -> None:
        self._system.invalidate_cache()
        found = self._system.find(root, detail=True, withdirs=True)
        folders = [path for path, facts in found.items() if facts.get("type") == "directory"]
        for path in sorted({*folders, root}, key=len, reverse=True):
            with suppress(OSError):  # there is something in it
                self._system.rmdir(path)

    def _path(self, name: str) -> str:
        """The path of a file; names are in commits, which others may have written."""
        parts = PurePosixPath(name).parts
        if not parts or name.startswith("/") or ".." in parts or _SPECIAL.search(name):
            raise RunError(f"{self.url}: {name!r} is no name of a file of a run")
        return f"{self._root}/{name}"

    def _call(self, name: str, done: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Do something, and try again where that may help; raise errors with a message, but for files that exist."""
        with url_faults(f"{self.url}/{name}".rstrip("/"), done, RunError):
            for pause in _PAUSES:
                try:
                    return function(*arguments)
                except (*_CERTAIN, InputError, RunError):
                    raise
                except Exception:  # a lost connection, as every kind of file system says it
                    time.sleep(pause)
            return function(*arguments)
