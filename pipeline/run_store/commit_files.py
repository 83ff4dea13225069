"""The commits of a run as numbered files of its store: created once, in their order, chained by checksums.

A file ``checkpoint/commits/00000042.json`` is one line of JSON. It begins with a checksum of all lines up to it, so no
commit can be changed, repeated, moved or taken out unseen; none is ever replaced. When a run is resumed, many commits
are folded into one file ``checkpoint/commits/until-00000043.json`` with the same lines.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from longwall.pipeline.run_store.store import RunStore
from longwall.storage.errors import FinalError
from longwall.storage.system.concurrency import map_ordered

FOLDER = "checkpoint/commits/"
FOLDED = 100  # commits from which on they are folded
_AT_ONCE = 32  # files that are read at the same time
_NAME = re.compile(rf"{FOLDER}(until-)?(\d{{8}})\.json")
_LINE = re.compile(rb'\{"checksum": "([0-9a-f]{8})", (.*\})\n', re.DOTALL)


class CommitFiles:
    """Reads commits, each once, while others may be made, and makes them.

    Parameters
    ----------
    store
        The run's.
    add
        Called with every entry of a commit that is read.
    owner
        The name of the process that makes commits here; commits carry it, so that no two processes make the same one.

    Attributes
    ----------
    last
        When the last commit that was read was made, in ISO 8601; None if there is none that says so.
    """

    def __init__(self, store: RunStore, add: Callable[[dict[str, Any]], None], owner: str = ""):
        self._store, self._add, self._owner = store, add, owner
        self._next = self._checksum = 0  # the number of the next commit, the checksum of those before it
        self._folded = 0  # the commits that one file holds
        self.last: str | None = None

    def read(self) -> bool:
        """Read the commits that were not read yet; return whether these are all that there are.

        Of commits that are made meanwhile, a listing may have some and lack others; what is behind such a gap comes
        next time.

        Raises
        ------
        FinalError
            If a commit is damaged, or contradicts another one.
        """
        there: dict[str, set[int]] = {"": set(), "until-": {0}}
        for match in map(_NAME.fullmatch, self._store.list(FOLDER)):
            if match:  # else it is being written
                there[match[1] or ""].add(int(match[2]))
        self._folded = max(there["until-"])
        if self._folded > self._next:
            name = _segment(self._folded)
            lines = self._store.read(name).splitlines(keepends=True)
            if len(lines) != self._folded:
                raise self.damaged(f"{name} has {len(lines)} of its commits")
            for line in lines[self._next :]:
                self._take(name, line)
        last = self._next
        while last in there[""]:
            last += 1
        names = [_commit(number) for number in range(self._next, last)]
        for name, line in zip(names, map_ordered(self._store.read, names, _AT_ONCE), strict=True):
            self._take(name, line)
        return max(there[""], default=-1) < last

    def create(self, entries: Sequence[dict[str, Any]]) -> bool:
        """Make the next commit; return whether its number was free."""
        if not self._store.recorded:
            return True
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        body = json.dumps({"owner": self._owner, "time": now, "commits": entries}).encode("ascii")[1:]
        while True:
            checksum = zlib.crc32(body, self._checksum)
            if self._store.create(_commit(self._next), b'{"checksum": "%08x", %s\n' % (checksum, body)):
                self._next, self._checksum = self._next + 1, checksum
                return True
            # An interrupt may have come right behind the call that made this commit.
            match = _LINE.fullmatch(self._store.read(_commit(self._next)))
            if not self._owner or match is None or json.loads(b"{" + match[2]).get("owner") != self._owner:
                return False
            self._next, self._checksum = self._next + 1, int(match[1], 16)

    def fold(self) -> list[str]:
        """Put many commits into one file; return the names of the files that hold commits then."""
        if self._next - self._folded >= FOLDED:
            text = b"".join(map_ordered(self._store.read, self._names(), _AT_ONCE))
            self._store.create(_segment(self._next), text)
            self._folded = self._next
        return self._names()

    def damaged(self, what: str) -> FinalError:
        """Return the error for commits that are not what was written."""
        return FinalError(f"{self._store.where}/{FOLDER}: the record of the run is damaged, {what}: start a new run")

    def _names(self) -> list[str]:
        """The files that hold commits, in the order of these."""
        segments = [_segment(self._folded)] if self._folded else []
        return segments + [_commit(number) for number in range(self._folded, self._next)]

    def _take(self, name: str, line: bytes) -> None:
        """Take note of the next commit."""
        match = _LINE.fullmatch(line)
        checksum = zlib.crc32(match[2], self._checksum) if match else 0
        if match is None or match[1] != b"%08x" % checksum:
            raise self.damaged(f"{name} is not what was written")
        try:
            commit = json.loads(b"{" + match[2])
            self.last = commit.get("time", self.last)
            for entry in commit["commits"]:
                self._add(entry)
        except FinalError as error:
            raise FinalError(f"{self._store.where}/{name}: {error}") from None
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise FinalError(f"{self._store.where}/{name}: this is no commit of a run: start a new run") from None
        self._next, self._checksum = self._next + 1, checksum


def _commit(number: int) -> str:
    return f"{FOLDER}{number:08}.json"


def _segment(number: int) -> str:
    return f"{FOLDER}until-{number:08}.json"
