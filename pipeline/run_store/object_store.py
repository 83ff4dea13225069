"""A run at a URL: this process works in a folder of its own, and sends there what shall stay.

Nothing can be appended to or renamed there, and there are no locks. So results are copied to ``results/`` and read once
more before the manifest says ``done``, and the commit log finds out whether another process took the run over.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path, PurePosixPath
from typing import Any

from longwall.pipeline.run_store.manifest import NAME, is_run, status_of
from longwall.pipeline.run_store.run_names import busy, is_own, no_run, not_of_a_run, require_own
from longwall.pipeline.run_store.store import RESULTS, describe, require_unchanged
from longwall.storage.concurrency import core_count, map_ordered
from longwall.storage.errors import InputError
from longwall.storage.memory.reservations import MemoryBudget
from longwall.storage.remote.remote_folder import RemoteFolder


class ObjectStore:
    """See :class:`longwall.pipeline.run_store.store.RunStore`.

    Parameters
    ----------
    url
        Of the run; there need not be anything.
    folder
        The working folder; `work_in` sets it where it is not known yet.

    Raises
    ------
    InputError
        If nothing can be at such a URL.
    """

    alone = False

    def __init__(self, url: str, folder: Path | None = None):
        self._remote = RemoteFolder(url)
        self.where: Path | str = self._remote.url
        self._folder = folder

    def work_in(self, folder: Path) -> None:
        """Set the working folder."""
        self._folder = folder

    @property
    def protocols(self) -> set[str]:
        """The file systems that files go to."""
        return self._remote.protocols

    @property
    def name(self) -> str:
        """See `RunStore`."""
        return PurePosixPath(self._remote.url).name

    @property
    def folder(self) -> Path:
        """See `RunStore`."""
        assert self._folder is not None, "who works on a run has set its working folder"
        return self._folder

    def sibling(self, name: str) -> ObjectStore:
        """See `RunStore`."""
        return ObjectStore(self._remote.url.removesuffix(self.name) + name)

    def exists(self) -> bool:
        """See `RunStore`."""
        return bool(self._remote.sizes())

    def begin(self) -> bool:
        """See `RunStore`."""
        return not self.exists()

    def hold(self) -> None:
        """Nothing: there are no locks."""

    def close(self) -> None:
        """Nothing: see `hold`."""

    def list(self, below: str = "") -> dict[str, int]:
        """See `RunStore`."""
        found = self._remote.sizes(below.rstrip("/"))
        require_own(self.where, found)
        return found

    def create(self, name: str, content: bytes) -> bool:
        """See `RunStore`."""
        return self._remote.create(name, content)

    def write(self, name: str, content: bytes, spare: int = 0) -> None:  # noqa: ARG002 - no space is kept there
        """See `RunStore`."""
        self._remote.write(name, content)

    def put_files(self, names: Collection[str]) -> None:
        """Send files that are here; others were sent by the workers that wrote them.

        Files of results are removed here. Files of the checkpoint stay until they are removed there, too: readers find
        them here, and the disk's budget has them anyway.
        """
        for name in names:
            path = self.folder / name
            path.parent.mkdir(exist_ok=True)  # whether it is there tells whether its files are
            if path.exists():
                self.send(path, name)
                if name.startswith(RESULTS):
                    path.unlink()

    def send(self, path: Path, name: str) -> None:
        """Send a local file."""
        self._remote.send(path, name)

    def read(self, name: str, begin: int = 0, end: int | None = None) -> bytes:
        """See `RunStore`."""
        if begin == end:
            return b""
        if self._folder is not None and (path := self._folder / name).exists():
            with path.open("rb") as file:
                file.seek(begin)
                return file.read(-1 if end is None else end - begin)
        return self._remote.read(name, begin or None, end)

    def digest(self, name: str, size: int) -> str:
        """See `RunStore`."""
        return self._remote.digest(name, size)

    def local(self, name: str) -> Path:
        """See `RunStore`."""
        path = self.folder / name
        if not path.exists():
            self._remote.fetch(name, path)
        return path

    @contextmanager
    def opened(self, name: str, size: int, disk: MemoryBudget) -> Iterator[Path]:
        """See `RunStore`; what is raised while a copy is in use names the URL."""
        path = self.folder / name
        if path.exists():
            yield path
            return
        with self._remote.fetched(name, size, self.folder / "checkpoint", disk) as copy:
            yield copy

    def publish(self, recorded: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """See `RunStore`."""
        self._remote.copy([(file["name"], f"results/{name}") for name, file in recorded.items()])
        sizes = self._remote.sizes("results")

        def described(name: str) -> dict[str, Any]:
            size = sizes.get(f"results/{name}", 0)
            digest = self._remote.digest(f"results/{name}", size)
            return {"rows": recorded[name]["rows"], "bytes": size, "sha256": digest}

        found = dict(zip(recorded, map_ordered(described, recorded, core_count()), strict=True))
        require_unchanged(f"{self.where}/{RESULTS}", recorded, found)
        for file in sorted((self.folder / RESULTS).iterdir()):
            self._remote.send(file, f"results/{file.name}")
            found[file.name] = describe(file)
        return dict(sorted(found.items()))

    def unpublish(self) -> None:
        """See `RunStore`."""
        self.clear("results/")

    def delete(self, names: Collection[str]) -> None:
        """See `RunStore`."""
        if self._folder is not None:
            for name in names:
                (self._folder / name).unlink(missing_ok=True)
        self._remote.remove(sorted(names))

    def delete_folder(self, name: str) -> None:
        """See `RunStore`."""
        shutil.rmtree(self.folder / name, ignore_errors=True)
        self._remote.remove_folder(name)

    def clear(self, *below: str) -> None:
        """See `RunStore`."""
        mine = [name for name in self._remote.sizes() if is_own(name) and name.startswith(below or ("",))]
        if NAME in mine:
            self._remote.remove([NAME])
            mine.remove(NAME)
        self._remote.remove(mine)
        self._remote.remove_empty_folders()

    def require_replaceable(self, *, whole: bool = True) -> None:
        """See `RunStore`."""
        there = self.list()
        if others := sorted(name for name in there if not is_own(name)):
            raise not_of_a_run(self.where, others[0])
        if whole and not is_run(self):
            raise no_run(self.where)
        if status_of(self) == "running":
            raise InputError(f"{busy(self.where)}; if it was killed, resume it, or remove {self.where}")

    def exchange(self) -> nullcontext[None]:
        """Nothing: there are no locks."""
        return nullcontext()

    def move_to(self, target: ObjectStore) -> None:
        """Copy the run there, the manifest last; until then it is whole here."""
        mine = sorted(name for name in self._remote.sizes() if is_own(name) and name != NAME)
        self._remote.copy_to(target._remote, mine)
        self._remote.copy_to(target._remote, [NAME])
        self.clear()
