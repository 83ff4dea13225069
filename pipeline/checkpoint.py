"""What is finished of a run: ranges of roots with their partial results, on disk before they count as done.

The journal is a file of lines, one a commit, each with a checksum; a commit is one line that has reached the disk,
so a range is finished with all of its results or not at all. A line that was cut off by a crash is no line. Files
that no line names are of no range, and are removed when the run goes on.

A run is a fixed sequence of phases (a pattern, a term of a sum, a level). The ranges of a phase may be cut
differently when the run goes on: what is left is what no line covers.
"""

import errno
import json
import os
import re
import shutil
import threading
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from longwall.storage.account import Account
from longwall.storage.errors import FinalError
from longwall.storage.spill import sync_folder

if TYPE_CHECKING:
    from longwall.storage.mirror import Mirror

FORMAT = 1  # of the journal, and of what its numbers mean
_REMOVALS = 3  # of a folder, to which a worker that comes late may still write: what it leaves goes with the checkpoint
COMMIT_SECONDS = 5.0  # of work that a crash may cost each worker, where its tasks are no longer

Range = tuple[int, int]
LevelFigures = dict[int, list[float]]
"""Level -> rows in, rows out, seconds, bytes, chunks."""


@dataclass(frozen=True)
class Partial:
    """What a worker found in the ranges of one commit."""

    value: Any
    """A number, or anything else that JSON can hold exactly."""
    files: tuple[dict[str, Any], ...] = ()
    """Files that hold the rest of it, as the phase describes them.

    `name` is relative to the run's folder; `bytes` is the size of a file that must be there as long as the run goes on.
    """
    levels: LevelFigures = field(default_factory=dict)
    replaces: tuple[str, ...] = ()
    """Names of files of earlier commits whose contents are in these files."""


Commit = tuple[list[Range], Partial]


@dataclass
class Phase:
    """One step of a run: its finished ranges and their results.

    Attributes
    ----------
    name
        What is done, and its place in the run.
    total
        Number of roots: ranges lie in 0 to `total`.
    done
        Finished ranges, in the order of their commits.
    partials
        Their results, aligned with the commits.
    """

    name: str
    total: int
    journal: "Journal"
    done: list[Range] = field(default_factory=list)
    partials: list[Partial] = field(default_factory=list)

    def commit(self, ranges: list[Range], partial: Partial) -> None:
        """Record finished ranges; returns when they are on disk."""
        self.journal.append(self, [(ranges, partial)])

    def commit_all(self, commits: Sequence[Commit]) -> None:
        """Record many commits for the price of one; each is on disk whole or not at all, in their order."""
        self.journal.append(self, commits)

    def missing(self) -> Iterator[Range]:
        """The ranges that are not finished, ascending."""
        first = 0
        for begin, end in sorted(self.done):
            if begin > first:
                yield first, begin
            first = end
        if first < self.total:
            yield first, self.total

    @property
    def complete(self) -> bool:
        """Whether every range is finished."""
        return next(self.missing(), None) is None

    def files(self) -> list[dict[str, Any]]:
        """The files of all commits, in their order, without those that were replaced."""
        replaced = {name for partial in self.partials for name in partial.replaces}
        return [file for partial in self.partials for file in partial.files if file["name"] not in replaced]


class Journal(Protocol):
    """Where the commits of phases go."""

    def append(self, phase: Phase, commits: Sequence[Commit]) -> None:
        """Record some; see `Phase.commit_all`."""
        ...


class Checkpoint:
    """The journal of a run and the folder that it lies in.

    Parameters
    ----------
    folder
        ``<run>/checkpoint``; it is made where it does not exist.

    Raises
    ------
    FinalError
        If the journal is damaged, or a file that it names.

    Attributes
    ----------
    folder
        See above.
    mirror
        The run's folder at a URL, where it is at one; see :mod:`longwall.pipeline.url_checkpoint`.
    """

    mirror: "Mirror | None" = None

    def __init__(self, folder: Path):
        self.folder = folder
        self._run = folder.parent
        self._lock = threading.Lock()
        self._started = 0
        self._found: dict[str, Phase] = {}
        folder.mkdir(exist_ok=True)
        self._path = folder / "journal.jsonl"
        self._read()
        self._check_files()
        self._next: dict[str, int] = {}
        for name in self._named() | self._remove_unfinished():
            prefix, number = re.fullmatch(r"(.*?)(\d*)(?:\.\w+)*", name).groups()  # type: ignore[union-attr]
            if number:
                self._next[prefix] = max(self._next.get(prefix, 0), int(number) + 1)

    def phase(self, name: str, total: int) -> Phase:
        """Begin the next phase; what was finished of it before a crash is in it.

        Raises
        ------
        RunError
            If the journal has another phase in its place.
        """
        with self._lock:
            key = f"{self._started} {name}"
            self._started += 1
            phase = self._found.setdefault(key, Phase(key, total, self))
            mine = {other for other in self._found if other.split(" ", 1)[0] == key.split(" ", 1)[0]}
            if phase.total != total or mine != {key}:
                raise FinalError(f"{self._path}: the journal is of another run ({sorted(mine)}): start a new run")
            return phase

    def book(self, phase: Phase, disk: Account) -> None:
        """Book what an earlier attempt finished of a phase, and is still there."""
        disk.take(checkpoint_bytes(phase.files()), "what the run has finished")

    def remove(self, folder: Path) -> bool:
        """Remove files that no phase reads any more; gives whether there were any."""
        there = folder.exists()
        for _ in range(_REMOVALS if there else 0):
            try:
                shutil.rmtree(folder)
                break
            except OSError as error:
                if error.errno != errno.ENOTEMPTY:
                    raise
        return there

    def next_number(self, prefix: str) -> int:
        """The number of the next file whose name in the run's folder begins so.

        None is given out twice, also not by an earlier attempt: a file with a name that the journal has is the one
        that the journal means.
        """
        with self._lock:
            number = self._next.get(prefix, 0)
            self._next[prefix] = number + 1
            return number

    def append(self, phase: Phase, commits: Sequence[Commit]) -> None:
        """Write a line for each; see `Phase.commit_all`."""
        commits = self._keep(commits)
        text = b"".join(_line(phase, ranges, partial) for ranges, partial in commits)
        with self._lock:
            self._write(text)
            # Here, so that the order is that of the journal: a level's chunks are counted in it.
            for ranges, partial in commits:
                phase.done += ranges
                phase.partials.append(partial)
        self._drop([name for _, partial in commits for name in partial.replaces])

    def local(self, name: str) -> Path:
        """Where a file is that a commit will name."""
        return self._run / name

    def _keep(self, commits: Sequence[Commit]) -> Sequence[Commit]:
        """Make the names of files reach the disk; gives what is to be recorded."""
        files = [file for _, partial in commits for file in partial.files]
        for folder in {parent for file in files for parent in Path(file["name"]).parents}:
            sync_folder(self._run / folder)
        return commits

    def _write(self, text: bytes) -> None:
        """Write lines; they are on disk when this returns."""
        with self._path.open("ab", buffering=0) as journal:
            begin = journal.tell()
            try:
                if journal.write(text) != len(text):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
                os.fsync(journal.fileno())
            except OSError:
                os.truncate(self._path, begin)  # a half line must not stand before the lines of those who go on
                raise
            if not begin:
                sync_folder(self.folder)
                sync_folder(self._run)

    def _drop(self, names: Sequence[str]) -> None:
        """Remove files that were replaced."""
        for name in names:
            (self._run / name).unlink(missing_ok=True)

    def _read(self) -> None:
        kept, size = read_journal(self._path, self._found, self)
        if kept < size:
            os.truncate(self._path, kept)

    def _named(self) -> set[str]:
        return {file["name"] for phase in self._found.values() for file in phase.files()}

    def _check_files(self) -> None:
        for file in (file for phase in self._found.values() for file in phase.files() if "bytes" in file):
            path = self._run / file["name"]
            if not path.exists() or path.stat().st_size != file["bytes"]:
                raise FinalError(f"{path}: the run had finished this file, and it is gone or changed: start a new run")

    def _remove_unfinished(self) -> set[str]:
        """Remove what was being written when the run ended; gives its names."""
        named = self._named()
        folders = [self._run / "results.partial", self.folder]
        folders += [path for path in self.folder.iterdir() if path.is_dir()]
        removed = set()
        for path in _entries(folders):
            name = str(path.relative_to(self._run))
            if path != self._path and path not in folders and name not in named:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
                removed.add(name)
        return removed


def read_journal(path: Path, phases: dict[str, Phase], owner: "Journal", begin: int = 0) -> tuple[int, int]:
    """Read a journal from a line on that begins at byte `begin`; phases that are not in `phases` yet are added there.

    Returns
    -------
    kept, size
        Bytes of whole lines, and of all that there is, from there on.

    Raises
    ------
    FinalError
        If the journal is damaged.
    """
    if not path.exists():
        return 0, 0
    with path.open("rb") as file:
        file.seek(begin)
        text = file.read()
    return read_lines(text, phases, owner, str(path)), len(text)


def read_lines(text: bytes, phases: dict[str, Phase], owner: "Journal", where: str) -> int:
    """Read lines of a journal; see `read_journal`. Gives the bytes of whole lines; `where` is for the message."""
    whole = text[: text.rfind(b"\n") + 1]
    lines = whole.decode("ascii", "replace").splitlines()
    kept = 0
    for number, line in enumerate(lines, start=1):
        checksum, _, body = line.partition(" ")
        if _checksum(body) != checksum:
            if number == len(lines):
                break  # cut off in the middle of a block
            raise FinalError(f"{where}, line {number}: the journal is damaged: start a new run")
        kept += len(line) + 1
        entry = json.loads(body)
        phase = phases.setdefault(entry["phase"], Phase(entry["phase"], entry["total"], owner))
        phase.done += [(first, last) for first, last in entry["ranges"]]
        levels = {int(level): figures for level, figures in entry["levels"].items()}
        partial = Partial(entry["value"], tuple(entry["files"]), levels, tuple(entry["replaces"]))
        for name in (*(file["name"] for file in partial.files), *partial.replaces):
            if name.startswith("/") or ".." in name.split("/"):
                raise FinalError(f"{where}, line {number}: {name!r} is no file of a run: start a new run")
        phase.partials.append(partial)
    return kept


def _line(phase: Phase, ranges: list[Range], partial: Partial) -> bytes:
    line = json.dumps(
        {
            "phase": phase.name,
            "total": phase.total,
            "ranges": ranges,
            "value": partial.value,
            "files": partial.files,
            "levels": partial.levels,
            "replaces": partial.replaces,
        }
    )
    return f"{_checksum(line)} {line}\n".encode("ascii")


def checkpoint_bytes(files: Iterable[dict[str, Any]]) -> int:
    """Bytes of the disk's budget that files of commits take: those of the checkpoint; results take none of it."""
    mine = (file for file in files if file["name"].startswith("checkpoint/"))
    return sum(file.get("stored", file.get("bytes", 0)) for file in mine)


def _entries(folders: Iterable[Path]) -> list[Path]:
    return [path for folder in folders if folder.is_dir() for path in folder.iterdir()]


def _checksum(line: str) -> str:
    return f"{zlib.crc32(line.encode('ascii', 'replace')):08x}"
