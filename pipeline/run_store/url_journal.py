"""The journal of a run at a URL, where nothing can be appended to a file: every commit is an object of its own.

Objects are numbered, and none is ever replaced. So whoever goes on with a run takes the next number first, and then
writes its name into the manifest: a process that was thought to be dead finds its number taken, or, when the run is
done and its journal gone, the other one's name, and commits no more.
"""

from __future__ import annotations

import json
import re
import uuid

from longwall.pipeline.run_store.commit_log import JournalLines
from longwall.storage.errors import FinalError, InputError
from longwall.storage.remote.remote_folder import RemoteFolder

FOLDER = "checkpoint/journal"
_NAME = re.compile(rf"{FOLDER}/(\d+)\.jsonl")


class UrlJournal:
    """The objects of a journal: lines of commits, and a last line that says whose they are.

    Parameters
    ----------
    mirror
        The run's folder.

    Attributes
    ----------
    mirror
        See above.
    owner
        The name of this process, which the manifest must have while it commits.
    begun
        Whether this process has committed anything.
    lost
        Whether another process goes on with the run.
    """

    def __init__(self, mirror: RemoteFolder):
        self.mirror, self.begun, self.lost = mirror, False, False
        self.owner = uuid.uuid4().hex
        self._read = self._next = 0

    def read(self, lines: JournalLines) -> None:
        """Read all commits that were not read yet.

        Of those that are made meanwhile, a listing may have some and lack others; what is behind such a gap comes next
        time.

        Raises
        ------
        FinalError
            If an object is damaged, or one that this process wrote is gone.
        """
        there, last = self._numbers(), self._read
        while last in there:
            last += 1
        found = self.mirror.read_all([_name(number) for number in range(self._read, last)])
        text = b"".join(one[: one.rfind(b"\n", 0, -1) + 1] for one in found)
        whole = last >= self._next and all(map(_is_whole, found))
        if not whole or lines.read(text, f"{self.mirror.url}/{FOLDER}") < len(text):
            raise self._damaged()
        self._read = last

    def _numbers(self) -> set[int]:
        """The numbers of all objects that there are."""
        matches = map(_NAME.fullmatch, self.mirror.sizes(FOLDER))
        return {int(match[1]) for match in matches if match}

    def _damaged(self) -> FinalError:
        return FinalError(f"{self.mirror.url}/{FOLDER}: the journal is damaged: start a new run")

    def take_over(self) -> None:
        """Go on with the run: no other process can commit anything from now on; then the manifest must say so.

        Raises
        ------
        InputError
            If one has just done so.
        FinalError
            If an object is gone.
        """
        there = self._numbers()
        self._next = len(there)
        if there != set(range(self._next)):
            raise self._damaged()
        if not self._put(b""):
            raise InputError(f"{self.mirror.url}: another process is busy with this run; wait for it or stop it")

    def confirm(self) -> None:
        """See that no other process goes on with the run.

        Raises
        ------
        FinalError
            If one does.
        """
        self.append(b"")

    def append(self, lines: bytes) -> None:
        """Record commits, all of them or none; see `confirm`."""
        if not self._put(lines) or json.loads(self.mirror.read("manifest.json"))["owner"] != self.owner:
            self.lost = True
            raise FinalError(
                f"{self.mirror.url}: another process goes on with this run, so this one has stopped and records no more"
            )
        self.begun |= bool(lines)

    def _put(self, lines: bytes) -> bool:
        """Take the next number; gives whether it was free."""
        signature = f"by {self.owner}\n".encode()
        while not self.mirror.create(_name(self._next), lines + signature):
            if not self.mirror.read(_name(self._next)).endswith(signature):
                return False
            self._next += 1  # an interrupt came right behind the call that made this one
        self._next += 1
        return True


def _name(number: int) -> str:
    return f"{FOLDER}/{number:08}.jsonl"


def _is_whole(text: bytes) -> bool:
    return text.endswith(b"\n") and text[text.rfind(b"\n", 0, -1) + 1 :].startswith(b"by ")
