"""The files of a run at a URL: this process works in a folder of its own, and sends there what shall stay.

Nothing can be appended to or renamed there. So results are copied to ``results/``, and removed from their first place
once the manifest says ``done``.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path

from longwall.pipeline.run_store.run_names import PUBLISHED, RESULTS, is_own, require_own
from longwall.storage.remote.remote_folder import RemoteFolder


class ObjectStore:
    """See :class:`longwall.pipeline.run_store.store.RunStore`.

    Parameters
    ----------
    url
        Of the run; there need not be anything.
    folder
        The working folder; `work_in` sets it where it is not known yet.

    Attributes
    ----------
    remote
        The folder at the URL.

    Raises
    ------
    InputError
        If nothing can be at such a URL.
    """

    alone = False
    recorded = True

    def __init__(self, url: str, folder: Path | None = None):
        self.remote = RemoteFolder(url)
        self.where: Path | str = self.remote.url
        self._folder = folder

    def work_in(self, folder: Path) -> None:
        """Set the working folder."""
        self._folder = folder

    @property
    def folder(self) -> Path:
        """See `RunStore`."""
        assert self._folder is not None, "a process sets the working folder before it writes or copies files"
        return self._folder

    def list(self, below: str = "") -> dict[str, int]:
        """See `RunStore`."""
        found = self.remote.sizes(below.rstrip("/"))
        require_own(self.where, found)
        return found

    def read(self, name: str, begin: int = 0, end: int | None = None) -> bytes:
        """See `RunStore`."""
        if begin == end:
            return b""
        if self._folder is not None and (path := self._folder / name).exists():
            with path.open("rb") as file:
                file.seek(begin)
                return file.read(-1 if end is None else end - begin)
        return self.remote.read(name, begin or None, end)

    def create(self, name: str, content: bytes) -> bool:
        """See `RunStore`."""
        return self.remote.create(name, content)

    def write(self, name: str, content: bytes, spare: int = 0, *, lasting: bool = True) -> None:  # noqa: ARG002
        """See `RunStore`."""
        self.remote.write(name, content)

    def put_files(self, names: Collection[str]) -> None:
        """See `RunStore`."""
        for name in names:
            path = self.folder / name
            path.parent.mkdir(exist_ok=True)  # whether it exists tells `CommitLog.remove` whether its files do
            if path.exists():
                self.send(path, name)
                if name.startswith(RESULTS):
                    path.unlink()

    def send(self, path: Path, name: str) -> None:
        """Send a local file, wherever it is."""
        self.remote.send(path, name)

    def local(self, name: str, copy: Path | None = None) -> Path:
        """See `RunStore`."""
        path = self.folder / name
        if path.exists():
            return path
        self.remote.fetch(name, copy or path)
        return copy or path

    def delete(self, names: Collection[str]) -> None:
        """See `RunStore`."""
        files = [name for name in names if not name.endswith("/")]
        folders = [name for name in names if name.endswith("/")]
        for folder in folders:
            files += filter(is_own, self.remote.sizes(folder.rstrip("/")))
        if self._folder is not None:
            for file in files:
                (self._folder / file).unlink(missing_ok=True)
            for folder in folders:
                shutil.rmtree(self._folder / folder, ignore_errors=True)
        self.remote.remove(sorted(files))
        for folder in folders:
            self.remote.remove_empty_folders(folder.rstrip("/"))

    def publish(self, names: Collection[str]) -> None:
        """See `RunStore`; files of the working folder, which no commit names, are sent."""
        here = {name: path for name in names if (path := self.folder / RESULTS / name).exists()}
        for name, path in here.items():
            self.send(path, PUBLISHED + name)
        self.remote.copy([(RESULTS + name, PUBLISHED + name) for name in names if name not in here])

    def unpublish(self) -> None:
        """See `RunStore`."""
        self.delete([PUBLISHED])
