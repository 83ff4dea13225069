"""The place and the files of a run that is not kept: a function's, whose answer is all that is wanted.

It has no record, so nothing can resume it: no config, no manifest until it has tables, and commits are only in memory.
Its tables, and files that phases hand on to each other, are in a spill folder, which is made with the first of them.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from pathlib import Path

from longwall.pipeline.run_store.local_store import LocalStore
from longwall.pipeline.run_store.run_names import CHECKPOINT, RESULTS
from longwall.pipeline.run_store.run_place import LocalPlace
from longwall.storage.memory.spill_folder import SpillFolder


class TransientStore(LocalStore):
    """The files in a folder of a spill folder; see `RunStore`.

    Parameters
    ----------
    spill
        The spill folder. Who has made it closes it.
    """

    recorded = False

    def __init__(self, spill: SpillFolder):
        super().__init__(spill.parent)
        self._spill, self._making, self._made = spill, threading.Lock(), False

    @property
    def folder(self) -> Path:
        """The folder, which is made if it is not there."""
        with self._making:
            if not self._made:
                folder = self._spill.path / "run"
                for name in (RESULTS, CHECKPOINT):
                    (folder / name).mkdir(parents=True)
                self.where = self._folder = folder
                self._made = True
        return self._folder

    def list(self, below: str = "") -> dict[str, int]:
        """See `RunStore`."""
        return super().list(below) if self._made else {}

    def read(self, name: str, begin: int = 0, end: int | None = None) -> bytes:
        """See `RunStore`."""
        if not self._made:
            raise FileNotFoundError(name)
        return super().read(name, begin, end)

    def create(self, name: str, content: bytes) -> bool:  # noqa: ARG002 - who makes a commit knows what is in it
        """Return True: nothing reads what is created, which are a config and commits."""
        return True

    def write(self, name: str, content: bytes, spare: int = 0, *, lasting: bool = True) -> None:
        """See `RunStore`; nothing is written unless there are tables."""
        if self._made:
            super().write(name, content, spare, lasting=lasting)

    def delete(self, names: Collection[str]) -> None:
        """See `RunStore`."""
        if self._made:
            super().delete(names)

    def publish(self, names: Collection[str]) -> None:
        """See `RunStore`."""
        if self._made:
            super().publish(names)


class TransientPlace(LocalPlace):
    """The place in a spill folder, which no other run has, and which goes with that folder.

    Parameters
    ----------
    spill
        The spill folder.
    """

    def __init__(self, spill: SpillFolder):
        super().__init__(str(spill.parent))
        self.store = TransientStore(spill)

    def remove(self) -> None:
        """See `RunPlace`; the spill folder goes, with all that is in it."""
