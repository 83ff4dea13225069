"""What is finished of a run: ranges of roots with their partial results, on disk before they count as done.

The journal is a file of lines, one a commit; a commit is one line that has reached the disk, so a range is finished
with all of its results or not at all. A line begins with a checksum of all lines up to its end: none can be changed,
repeated, moved or taken out unseen. A line that was cut off by a crash is no line. Files that no line names are of no
range, and are removed when the run goes on.

A run is a fixed sequence of phases (a pattern, a term of a sum, a level). The ranges of a phase may be cut
differently when the run goes on: what is left is what no line covers.
"""

import errno
import hashlib
import json
import operator
import os
import re
import threading
import zlib
from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from longwall.pipeline.run_store.run_names import is_own, survey
from longwall.storage.concurrency import core_count, map_ordered
from longwall.storage.errors import FinalError, naming
from longwall.storage.memory.reservations import MemoryBudget
from longwall.storage.memory.spill_folder import sync_folder

if TYPE_CHECKING:
    from longwall.storage.remote.remote_folder import RemoteFolder

FORMAT = 2  # of the journal, and of what its numbers mean
RESULTS, FOLDER = "results.partial/", "checkpoint"
_REMOVALS = 3  # of a folder, to which a worker that comes late may still write: what it leaves goes with the checkpoint
COMMIT_SECONDS = 5.0  # of work that a crash may cost each worker, where its tasks are no longer

Range = tuple[int, int]
LevelFigures = dict[int, list[float]]
"""Level -> rows in, rows out, seconds, bytes, chunks."""


@dataclass(frozen=True)
class PartialResult:
    """What a worker found in the ranges of one commit."""

    value: Any
    """A number, or anything else that JSON can hold exactly."""
    files: tuple[dict[str, Any], ...] = ()
    """Files that hold the rest of it, as the phase describes them.

    `name` is relative to the run's folder; `bytes` is the size of a file that must be there as long as the run goes on,
    `sha256` its checksum. Where files have `rows`, their sum is the value.
    """
    levels: LevelFigures = field(default_factory=dict)
    replaces: tuple[str, ...] = ()
    """Names of files of earlier commits whose contents are in these files."""


Commit = tuple[list[Range], PartialResult]


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
        Finished ranges, ascending; no two overlap.
    partials
        Their results, aligned with the commits.
    """

    name: str
    total: int
    journal: "Journal"
    done: list[Range] = field(default_factory=list)
    partials: list[PartialResult] = field(default_factory=list)
    _names: set[str] = field(default_factory=set)

    def add(self, ranges: Sequence[Range], partial: PartialResult) -> None:
        """Take note of a commit.

        Raises
        ------
        FinalError
            If it repeats another one, or contradicts itself: something would be counted twice, or be missing.
        """
        for first, last in ranges:
            at = bisect(self.done, (first, last))
            begin = self.done[at - 1][1] if at else 0
            end = self.done[at][0] if at < len(self.done) else self.total
            if not begin <= first < last <= end:
                raise self._contradiction(f"roots {first} to {last} were finished twice, or are not below {self.total}")
            self.done.insert(at, (first, last))
        names = [file["name"] for file in partial.files]
        if not ranges and partial.value:
            raise self._contradiction(f"{partial.value!r:.60} was found in no root")
        if len(set(names)) < len(names) or not self._names.isdisjoint(names):
            raise self._contradiction("a file was recorded twice")
        if not self._names.issuperset(partial.replaces):
            raise self._contradiction("a file was replaced that was never recorded")
        rows = [file["rows"] for file in partial.files if "rows" in file]
        if rows and sum(rows) != partial.value:
            raise self._contradiction(f"{partial.value!r:.60} rows were recorded of files that have {sum(rows)}")
        self._names.update(names)
        self._names.difference_update(partial.replaces)
        self.partials.append(partial)

    def _contradiction(self, text: str) -> FinalError:
        return FinalError(f'the record of "{self.name}" contradicts itself, {text}: start a new run')

    def commit(self, ranges: list[Range], partial: PartialResult) -> None:
        """Record finished ranges; returns when they are on disk."""
        self.journal.append(self, [(ranges, partial)])

    def commit_all(self, commits: Sequence[Commit]) -> None:
        """Record many commits for the price of one; each is on disk whole or not at all, in their order."""
        self.journal.append(self, commits)

    def missing(self) -> Iterator[Range]:
        """The ranges that are not finished, ascending."""
        first = 0
        for begin, end in self.done:
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


class CommitLog:
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
        The run's folder at a URL, where it is at one; see :mod:`longwall.pipeline.run_store.url_checkpoint`.
    """

    mirror: "RemoteFolder | None" = None

    def __init__(self, folder: Path):
        self.folder = folder
        self._run = folder.parent
        self._lock = threading.Lock()
        self._started = 0
        self._found: dict[str, Phase] = {}
        folder.mkdir(exist_ok=True)
        self._path = folder / "journal.jsonl"
        self._lines = JournalLines(self._found, self)
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

    def reserve(self, phase: Phase, disk: MemoryBudget) -> None:
        """Book what an earlier attempt finished of a phase, and is still there."""
        disk.charge(checkpoint_bytes(phase.files()), "what the run has finished")

    def remove(self, folder: Path) -> bool:
        """Remove the files of a phase that no other reads any more; return whether there were any."""
        there = folder.exists()
        for _ in range(_REMOVALS if there else 0):
            for file in folder.iterdir():
                if is_own(f"checkpoint/{folder.name}/{file.name}"):
                    file.unlink(missing_ok=True)
            try:
                folder.rmdir()
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
        with self._lock:
            # Here, so that the order is that of the journal: a level's chunks are counted in it. Where a line cannot be
            # written the run ends, and what the phase has is of no matter.
            for ranges, partial in commits:
                phase.add(ranges, partial)
            text, checksum = self._lines.text(phase, commits)
            self._write(text)
            self._lines.checksum = checksum
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
        with naming(self._path), self._path.open("ab", buffering=0) as journal:
            begin = journal.tell()
            try:
                if journal.write(text) != len(text):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
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
        if not self._path.exists():
            return
        text = self._path.read_bytes()
        kept = self._lines.read(text, str(self._path))
        if kept < len(text):
            os.truncate(self._path, kept)

    def _named(self) -> set[str]:
        return {file["name"] for file in self.files()}

    def files(self) -> list[dict[str, Any]]:
        """The files of all commits, without those that were replaced."""
        return [file for phase in self._found.values() for file in phase.files()]

    def results(self) -> list[dict[str, Any]]:
        """Those of them that are results."""
        return [file for file in self.files() if file["name"].startswith(RESULTS)]

    def _check_files(self) -> None:
        files = self.files()
        for file in files:
            if "bytes" in file and self._size(file["name"]) != file["bytes"]:
                raise self._changed(file["name"])
        # Chunks of levels, and counts per vertex, have checksums that are checked whenever they are read. Arrays have
        # no `bytes`: they are removed once the next phase has read them.
        wanted = [file for file in files if "sha256" in file]
        digests = map_ordered(lambda file: self._digest(file["name"]), wanted, core_count())
        for file, digest in zip(wanted, digests, strict=True):
            if digest != file["sha256"] and (digest or "bytes" in file):
                raise self._changed(file["name"])

    def _changed(self, name: str) -> FinalError:
        return changed(f"{self._run}/{name}")

    def _size(self, name: str) -> int | None:
        """The bytes of a file; None where there is none."""
        path = self._run / name
        return path.stat().st_size if path.exists() else None

    def _digest(self, name: str) -> str:
        """The checksum of a file that a commit names; empty where there is none."""
        try:
            with (self._run / name).open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError:
            return ""

    def _remove_unfinished(self) -> set[str]:
        """Remove what was being written when the run ended; gives its names."""
        kept = self._named() | {f"{FOLDER}/{self._path.name}"}
        places = (RESULTS, f"{FOLDER}/")
        removed = {name for name in survey(self._run)[0] if name.startswith(places) and name not in kept}
        for name in removed:
            (self._run / name).unlink()
        return removed


class JournalLines:
    """The lines of a journal, read and made in their order.

    Parameters
    ----------
    phases
        Where commits that are read go, by the phases' names; phases that are not there yet are added.
    owner
        The journal that such phases write to.

    Attributes
    ----------
    checksum
        Of all lines so far.
    """

    def __init__(self, phases: dict[str, Phase], owner: "Journal"):
        self._phases, self._owner = phases, owner
        self.checksum = 0

    def read(self, text: bytes, where: str) -> int:
        """Read the lines that follow; gives the bytes of whole ones. `where` is for messages.

        Raises
        ------
        FinalError
            If a line is damaged, or contradicts another one.
        """
        whole = text[: text.rfind(b"\n") + 1].splitlines()
        kept = 0
        for number, line in enumerate(whole, start=1):
            begin, _, body = line.partition(b" ")
            checksum = zlib.crc32(body, self.checksum)
            if begin != _hexadecimal(checksum):
                if number == len(whole):
                    break  # cut off in the middle of a block
                raise FinalError(f"{where}, line {number}: the journal is damaged: start a new run")
            try:
                self._add(json.loads(body))
            except FinalError as error:
                raise FinalError(f"{where}, line {number}: {error}") from None
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
                raise FinalError(f"{where}, line {number}: this is no record of a run: start a new run") from None
            self.checksum = checksum
            kept += len(line) + 1
        return kept

    def _add(self, entry: dict[str, Any]) -> None:
        name, total = str(entry["phase"]), operator.index(entry["total"])
        levels = {int(level): figures for level, figures in entry["levels"].items()}
        partial = PartialResult(entry["value"], tuple(entry["files"]), levels, tuple(entry["replaces"]))
        for file in (*(file["name"] for file in partial.files), *partial.replaces):
            if not is_own(file):
                raise FinalError(f"{file!r:.200} is no file of a run: start a new run")
        phase = self._phases.setdefault(name, Phase(name, total, self._owner))
        if phase.total != total:
            raise FinalError(f"{name!r:.60} has {phase.total} roots, and {total}: start a new run")
        phase.add([(operator.index(first), operator.index(last)) for first, last in entry["ranges"]], partial)

    def text(self, phase: Phase, commits: Sequence[Commit]) -> tuple[bytes, int]:
        """A line for each commit, and the checksum of all lines once they are written."""
        text, checksum = b"", self.checksum
        for ranges, partial in commits:
            entry = {
                "phase": phase.name,
                "total": phase.total,
                "ranges": ranges,
                "value": partial.value,
                "files": partial.files,
                "levels": partial.levels,
                "replaces": partial.replaces,
            }
            body = json.dumps(entry).encode("ascii")
            checksum = zlib.crc32(body, checksum)
            text += _hexadecimal(checksum) + b" " + body + b"\n"
        return text, checksum


def checkpoint_bytes(files: Iterable[dict[str, Any]]) -> int:
    """Bytes of the disk's budget that files of commits take: those of the checkpoint; results take none of it."""
    mine = (file for file in files if file["name"].startswith("checkpoint/"))
    return sum(file.get("stored", file.get("bytes", 0)) for file in mine)


def changed(file: str) -> FinalError:
    """What is raised where a finished file is not what it was."""
    return FinalError(f"{file}: the run had finished this file, and it is gone or changed: start a new run")


def _hexadecimal(checksum: int) -> bytes:
    return b"%08x" % checksum
