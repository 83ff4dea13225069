"""What is finished of a run whose folder is at a URL; see :mod:`longwall.pipeline.run_store.commit_log`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from longwall.pipeline.run_store.commit_log import RESULTS, Commit, CommitLog, changed
from longwall.pipeline.run_store.run_names import is_own
from longwall.pipeline.run_store.url_journal import FOLDER, UrlJournal
from longwall.storage.errors import FinalError
from longwall.storage.remote.remote_folder import RemoteFolder


class UrlCheckpoint(CommitLog):
    """The journal of a run, and its files, at a URL; files are written to a local folder first.

    A commit first sends the files that it names and that are here; others were sent by the workers that wrote them. Of
    what was sent, files of results are removed here. Files of the checkpoint stay until they are removed there, too:
    readers find them here, and the account of the disk has them anyway.

    Parameters
    ----------
    folder
        The local folder for files of the checkpoint.
    journal
        The journal at the URL.

    Raises
    ------
    FinalError
        If the journal is damaged, or a file that it names.
    """

    def __init__(self, folder: Path, journal: UrlJournal):
        self.mirror: RemoteFolder = journal.mirror
        self._journal = journal
        self._sizes = self.mirror.sizes()
        self._numbers = random.SystemRandom()
        super().__init__(folder)

    def next_number(self, prefix: str) -> int:  # noqa: ARG002 - as that of a checkpoint
        """A number that no other process chooses, also not one that does not know yet that this one goes on."""
        return self._numbers.getrandbits(60)

    def local(self, name: str) -> Path:
        """Have a file here; it is sent again by the commit that names it."""
        path = self._run / name
        if not path.exists():
            self.mirror.fetch(name, path)
        return path

    def remove(self, folder: Path) -> bool:
        """Remove files that no phase reads any more, here and there; gives whether there were any."""
        there = super().remove(folder)
        if there:
            self.mirror.remove_folder(str(folder.relative_to(self._run)))
        return there

    def _read(self) -> None:
        self._journal.read(self._lines)

    def _changed(self, name: str) -> FinalError:
        return changed(f"{self.mirror.url}/{name}")

    def _size(self, name: str) -> int | None:
        return self._sizes.get(name)

    def _digest(self, name: str) -> str:
        return self.mirror.digest(name, self._sizes[name]) if name in self._sizes else ""

    def _remove_unfinished(self) -> set[str]:
        named = self._named()
        mine = {name for name in self._sizes if is_own(name) and name.startswith((RESULTS, "checkpoint/"))}
        unnamed = {name for name in mine - named if not name.startswith(f"{FOLDER}/")}
        self.mirror.remove(sorted(unnamed))
        for name in mine & named:
            (self._run / name).parent.mkdir(exist_ok=True)  # whether it is there tells whether its files are
        return unnamed

    def _keep(self, commits: Sequence[Commit]) -> Sequence[Commit]:
        return [(ranges, replace(partial, files=tuple(map(self._sent, partial.files)))) for ranges, partial in commits]

    def _sent(self, file: dict[str, Any]) -> dict[str, Any]:
        path = self._run / file["name"]
        path.parent.mkdir(exist_ok=True)
        if not path.exists():
            return file
        sent = send(self.mirror, file, path)
        if file["name"].startswith(RESULTS):
            path.unlink()
        return sent

    def _write(self, text: bytes) -> None:
        self._journal.append(text)

    def _drop(self, names: Sequence[str]) -> None:
        super()._drop(names)
        self.mirror.remove(names)


def send(mirror: RemoteFolder, file: dict[str, Any], path: Path) -> dict[str, Any]:
    """Send a file that a commit will name; gives what the commit says of it."""
    mirror.send(path, file["name"])
    return file
