"""What is finished of a run: ranges of roots with their partial results, durable before they count as done.

A commit is a file that the store creates whole or not at all, after the files that it names: a range is finished with
all of its results or not at all. Files that no commit names are of no range, and are removed when the run is resumed.
How commits are kept is in :mod:`longwall.pipeline.run_store.commit_files`.

At a URL, where there are no locks, a process that resumes a run takes the next number first, and then writes its name
into the manifest. A process that was thought to be dead finds its number taken or, once the commits of the other one
are folded or gone, the other one's name, and commits no more.

A commit that names no file may wait for the next one: a phase of milliseconds should not take as long again to be
synced. What waits is written before any file is removed, and when the run ends early.

A run is a sequence of phases (a pattern, a term of a sum, a level), each with a name of its own. The ranges of a phase
may be cut differently when the run is resumed: what is left is what no commit covers.
"""

import json
import operator
import random
import re
import threading
import time
import uuid
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from longwall.pipeline.run_store.commit_files import CommitFiles
from longwall.pipeline.run_store.run_names import MANIFEST, RESULTS, busy, is_own
from longwall.pipeline.run_store.store import RunStore, require_unchanged
from longwall.stages.stage_timer import LevelFigures, sum_figures
from longwall.storage.errors import FinalError, InputError
from longwall.storage.memory.reservations import MemoryBudget

_MOST_PARTIALS = 256  # of a phase whose values are combined: then they become one
COMMIT_SECONDS = 5.0  # of work that a crash may cost each worker, where its tasks are no longer

Range = tuple[int, int]


@dataclass(frozen=True)
class PartialResult:
    """What a worker found in the ranges of one commit."""

    value: Any
    """A number, or anything else that JSON can hold exactly; a dict has the rows of its files as ``"rows"``."""
    files: tuple[dict[str, Any], ...] = ()
    """Files that hold the rest of it, as the phase describes them.

    `name` is relative to the run's folder; `bytes` is the size of a file that must be there as long as the run goes on,
    `sha256` its checksum. If files have `rows`, their sum less that of the files that they replace is the value.
    """
    levels: LevelFigures = field(default_factory=dict)
    replaces: tuple[str, ...] = ()
    """Names of files of earlier commits whose contents are in these files."""


Commit = tuple[list[Range], PartialResult]


@dataclass
class PhaseRecord:
    """One step of a run: its finished ranges and their results.

    Attributes
    ----------
    name
        What distinguishes the phase from all others of the run.
    total
        Number of roots: ranges lie in 0 to `total`.
    done
        Finished ranges, ascending; no two overlap or touch.
    ranges
        How many there were of them before those that touch became one.
    partials
        Their results, in the order of the commits; many of values that can be combined become one.
    combine
        Returns one value for several; None: the results stay apart.
    answers
        The checksum of the question that it helps to answer, and the name of the method; both are empty for others.
    """

    name: str
    total: int
    log: "Log"
    done: list[Range] = field(default_factory=list)
    ranges: int = 0
    combine: Callable[[Sequence[Any]], Any] | None = None
    answers: tuple[str, str] = ("", "")
    partials: list[PartialResult] = field(default_factory=list)
    _names: dict[str, int] = field(default_factory=dict)  # of the files, and the rows of each

    def add(self, ranges: Sequence[Range], partial: PartialResult) -> None:
        """Take note of a commit.

        Raises
        ------
        FinalError
            If it repeats another one, or contradicts itself: something would be counted twice, or be missing.
        """
        if not (self.done or partial.files or partial.replaces) and ranges == [(0, self.total)] != [(0, 0)]:
            self.done, self.ranges = [(0, self.total)], self.ranges + 1  # one commit of the whole phase
            self.partials.append(partial)
            return
        for first, last in ranges:
            at = bisect(self.done, (first, last))
            begin = self.done[at - 1][1] if at else 0
            end = self.done[at][0] if at < len(self.done) else self.total
            if not begin <= first < last <= end:
                raise self._contradiction(f"roots {first} to {last} were finished twice, or are not below {self.total}")
            self._join(at, first, last)
        names = [file["name"] for file in partial.files]
        if not ranges and partial.value:
            raise self._contradiction(f"{partial.value!r:.60} was found in no root")
        if len(set(names)) < len(names) or not self._names.keys().isdisjoint(names):
            raise self._contradiction("a file was recorded twice")
        if not self._names.keys() >= set(partial.replaces):
            raise self._contradiction("a file was replaced that was never recorded")
        rows = [file["rows"] for file in partial.files if "rows" in file]
        new = sum(rows) - sum(self._names[name] for name in partial.replaces)
        named = partial.value["rows"] if rows and isinstance(partial.value, dict) else partial.value
        if rows and new != named:
            raise self._contradiction(f"{named!r:.60} rows were recorded of files that have {new}")
        self._names |= {file["name"]: file.get("rows", 0) for file in partial.files}
        for name in partial.replaces:
            del self._names[name]
        self.partials.append(partial)
        if self.combine is not None and len(self.partials) > _MOST_PARTIALS and not self._names:
            self._fold(self.combine)

    def _join(self, at: int, first: int, last: int) -> None:
        """Put a range into its place, as one with those that it touches: a cluster cuts a phase into very many."""
        begin, end = at, at
        if at and self.done[at - 1][1] == first:
            begin, first = at - 1, self.done[at - 1][0]
        if at < len(self.done) and self.done[at][0] == last:
            end, last = at + 1, self.done[at][1]
        self.done[begin:end] = [(first, last)]
        self.ranges += 1

    def _fold(self, combine: Callable[[Sequence[Any]], Any]) -> None:
        """Make the results one, so that there are not as many as the run has had commits."""
        levels = sum_figures(one.levels for one in self.partials)
        self.partials = [PartialResult(combine(self.values), levels=levels)]

    def _contradiction(self, text: str) -> FinalError:
        return FinalError(f'the record of "{self.name}" contradicts itself, {text}: start a new run')

    def commit(self, ranges: list[Range], partial: PartialResult, *, may_wait: bool = False) -> None:
        """Record finished ranges; returns when they are on disk, unless they may wait for the next commit."""
        self.log.append(self, [(ranges, partial)], may_wait=may_wait)

    def commit_all(self, commits: Sequence[Commit]) -> None:
        """Record many commits for the price of one; each is on disk whole or not at all, in their order."""
        self.log.append(self, commits)

    def forget(self) -> None:
        """Forget what a finished phase found, but not that it is finished."""
        self.done, self.partials = [(0, self.total)], []
        self._names.clear()

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
    def values(self) -> list[Any]:
        """The values of all commits."""
        return [partial.value for partial in self.partials]

    @property
    def complete(self) -> bool:
        """Whether every range is finished."""
        return next(self.missing(), None) is None

    def files(self) -> list[dict[str, Any]]:
        """The files of all commits, in their order, without those that were replaced."""
        replaced = {name for partial in self.partials for name in partial.replaces}
        return [file for partial in self.partials for file in partial.files if file["name"] not in replaced]


class Log(Protocol):
    """Where the commits of phases go."""

    def append(self, phase: PhaseRecord, commits: Sequence[Commit], *, may_wait: bool = False) -> None:
        """Record some; see `PhaseRecord.commit_all`. Those without files may be kept for `COMMIT_SECONDS`."""
        ...


class CommitLog:
    """The commits of a run, and the files that they name.

    Parameters
    ----------
    store
        The run's.

    Raises
    ------
    FinalError
        If a commit is damaged or gone.

    Attributes
    ----------
    store
        See above.
    owner
        The name of this process, which the manifest must have while it commits, where the store has no lock.
    lost
        Whether another process has taken the run over.
    """

    def __init__(self, store: RunStore):
        self.store, self.owner, self.lost = store, uuid.uuid4().hex, False
        self._lock = threading.Lock()
        self._found: dict[str, PhaseRecord] = {}
        self._begun: set[str] = set()  # the phases of this attempt
        self._next: dict[str, int] = {}
        self._numbers = random.SystemRandom()
        self._disk: MemoryBudget | None = None
        self._gone: set[str] = set()  # finished files that were dropped
        self._waiting: list[dict[str, Any]] = []
        self._since = 0.0  # when the first of them came
        self._answering: tuple[str, str] | None = None
        self._commits = CommitFiles(store, partial(add_entry, self._found, self), self.owner)
        if not self._commits.read():
            raise self._commits.damaged("some commits are gone")

    @property
    def folder(self) -> Path:
        """Where files of the checkpoint are in this process."""
        return self.store.folder / "checkpoint"

    @property
    def last(self) -> str | None:
        """When the last commit of earlier attempts was made; None if there is none."""
        return self._commits.last

    def progress(self) -> list[tuple[str, int, int]]:
        """Return the name of each phase that has commits, how many of its roots are finished, and how many it has."""
        return [(one.name, sum(last - first for first, last in one.done), one.total) for one in self._found.values()]

    @property
    def begun(self) -> bool:
        """Whether anything is finished."""
        return any(phase.partials for phase in self._found.values())

    def claim(self) -> None:
        """Take the run over: no other process can commit anything from now on; then the manifest must say so.

        Raises
        ------
        InputError
            If another process has just done so.
        """
        if not self.store.alone and not self._commits.create([]):
            raise busy(self.store.where)

    def confirm(self) -> None:
        """Check that no other process has taken the run over.

        Raises
        ------
        FinalError
            If one has.
        """
        if not self.store.alone:
            with self._lock:
                self._write()

    def flush(self) -> None:
        """Write the commits that wait."""
        with self._lock:
            if self._waiting:
                self._write()

    def restore(self, disk: MemoryBudget) -> None:
        """Check the finished files, fold the commits, and remove what was being written when the run ended.

        Parameters
        ----------
        disk
            The budget of the checkpoint's files: those that are finished are charged to it.

        Raises
        ------
        FinalError
            If a finished file was changed, or is gone.
        """
        if self.store.recorded:
            self.folder.mkdir(exist_ok=True)
        there = self.store.list()
        # Chunks of levels, and counts per vertex, have checksums that are checked whenever they are read. Arrays have
        # no `bytes`: they are removed once the next phase has read them.
        require_unchanged(self.store, self.files(), there)
        named = {file["name"] for file in self.files()}
        kept = named.union(self._commits.fold())
        unfinished = {name for name in there.keys() - kept if name.startswith((RESULTS, "checkpoint/"))}
        self.store.delete(unfinished)
        for name in named | unfinished:
            if match := re.fullmatch(r"(.*?)(\d+)(?:\.\w+)*", name):
                prefix, number = match.groups()
                self._next[prefix] = max(self._next.get(prefix, 0), int(number) + 1)
        self._disk, self._gone = disk, named - there.keys()
        finished = [file for file in self.files() if file["name"] in there]
        disk.charge(checkpoint_bytes(finished), "what the run has finished")

    def record(self, name: str, total: int) -> PhaseRecord:
        """Return the finished tasks of a phase with a given number of roots; a phase is known by its name.

        Raises
        ------
        FinalError
            If the commits are of another number of roots.
        InputError
            If an earlier attempt wrote results in a phase that this attempt does not do, or not before this one: they
            would be results of the run besides those of this phase.
        """
        with self._lock:
            self._begun.add(name)
            if name not in self._found:
                self._require_no_other_results()
            answers = self._answering or ("", "")
            record = self._found.setdefault(name, PhaseRecord(name, total, self, answers=answers))
        if record.total != total:
            raise FinalError(
                f'{self.store.where}: what is finished of "{name}" is of another run, with {record.total:,} roots in '
                f"place of {total:,}: start a new run"
            )
        return record

    @contextmanager
    def answering(self, question: str, method: str) -> Iterator[None]:
        """Take note that phases which begin are a part of an answer, unless they are one of another answer already."""
        if self._answering is not None:
            yield
            return
        self._answering = question, method
        try:
            yield
        finally:
            self._answering = None

    def method_of(self, question: str) -> str | None:
        """Return the method by which a question is answered so far, the last of several; None inside of an answer."""
        if self._answering is not None:
            return None
        methods = [one.answers[1] for one in self._found.values() if one.answers[0] == question and one.partials]
        return methods[-1] if methods else None

    def values(self, name: str) -> list[Any]:
        """The values of all commits of a phase, which need not have begun."""
        record = self._found.get(name)
        return [] if record is None else record.values

    def drop(self, record: PhaseRecord) -> None:
        """Remove the files of a finished phase, which no other phase reads any more, and all that is known of them.

        They are of the checkpoint; their bytes are released.
        """
        self.flush()
        files = record.files()
        self.store.delete({file["name"].rpartition("/")[0] + "/" for file in files})
        there = [file for file in files if file["name"] not in self._gone]
        self._gone.difference_update(file["name"] for file in files)
        record.forget()
        if self._disk is not None:
            self._disk.charge(-checkpoint_bytes(there), "")

    def next_number(self, prefix: str) -> int:
        """Return the number of the next file whose name in the run's folder begins so.

        None is given out twice, also not by an earlier attempt, or by a process that does not know yet that this one
        has taken the run over: a file with a name that a commit has is the one that the commit means.
        """
        if not self.store.alone:
            return self._numbers.getrandbits(60)
        with self._lock:
            number = self._next.get(prefix, 0)
            self._next[prefix] = number + 1
            return number

    def append(self, phase: PhaseRecord, commits: Sequence[Commit], *, may_wait: bool = False) -> None:
        """Record some; see `Log`."""
        if names := [file["name"] for _, partial in commits for file in partial.files]:
            self.store.put_files(names)
        with self._lock:
            # Here, so that the order is that of the log: a level's chunks are counted in it. Where a commit cannot be
            # written the run ends, and what the phase has is of no matter.
            for ranges, partial in commits:
                phase.add(ranges, partial)
            if self.store.recorded:
                now = time.monotonic()
                self._since = self._since if self._waiting else now
                self._waiting += [_entry(phase, ranges, partial) for ranges, partial in commits]
                named = any(partial.files or partial.replaces for _, partial in commits)
                if not may_wait or named or now - self._since >= COMMIT_SECONDS:
                    self._write()
        if replaced := [name for _, partial in commits for name in partial.replaces]:
            self.store.delete(replaced)

    def files(self) -> list[dict[str, Any]]:
        """The files of all commits, without those that were replaced."""
        return [file for phase in self._found.values() for file in phase.files()]

    def records(self, table: str) -> list[PhaseRecord]:
        """Return the phases that have files of a table of the results."""
        prefix = f"{RESULTS}{table}-"
        return [phase for phase in self._found.values() if any(one["name"].startswith(prefix) for one in phase.files())]

    def results(self) -> dict[str, dict[str, Any]]:
        """Those of them that are results, by their names in the folder of results."""
        return {file["name"].removeprefix(RESULTS): file for file in self.files() if file["name"].startswith(RESULTS)}

    def _write(self) -> None:
        """Make a commit of what waits; no other one has it, also where an interrupt comes right behind."""
        entries, self._waiting = self._waiting, []
        if not self._commits.create(entries) or not self._is_owner():
            self.lost = True
            raise FinalError(
                f"{self.store.where}: another process has resumed this run, so this one has stopped and records no more"
            )

    def _require_no_other_results(self) -> None:
        for name, record in self._found.items():
            if name not in self._begun and any(file["name"].startswith(RESULTS) for file in record.files()):
                raise InputError(
                    f'{self.store.where}: the run has finished a part of "{name}", which is not done now: resume it '
                    "with the scheduler.order that it began with, or start a new run"
                )

    def _is_owner(self) -> bool:
        if self.store.alone:
            return True
        owner: str = json.loads(self.store.read(MANIFEST))["owner"]
        return owner == self.owner


def add_entry(phases: dict[str, PhaseRecord], owner: "Log", entry: dict[str, Any]) -> None:
    """Take note of what a commit says of some ranges.

    Parameters
    ----------
    phases
        Where it goes, by the phases' names; a phase that is not there yet is added.
    owner
        What such a phase commits to.
    entry
        See `_entry`.

    Raises
    ------
    FinalError
        If it contradicts another one.
    """
    name, total = str(entry["phase"]), operator.index(entry["total"])
    levels = {int(level): figures for level, figures in entry["levels"].items()}
    partial = PartialResult(entry["value"], tuple(entry["files"]), levels, tuple(entry["replaces"]))
    for file in (*(file["name"] for file in partial.files), *partial.replaces):
        if not is_own(file):
            raise FinalError(f"{file!r:.200} is no file of a run: start a new run")
    question, method = map(str, entry["answers"])
    phase = phases.setdefault(name, PhaseRecord(name, total, owner, answers=(question, method)))
    if phase.total != total:
        raise FinalError(f"{name!r:.60} has {phase.total} roots, and {total}: start a new run")
    phase.add([(operator.index(first), operator.index(last)) for first, last in entry["ranges"]], partial)


def _entry(phase: PhaseRecord, ranges: Sequence[Range], partial: PartialResult) -> dict[str, Any]:
    """What a commit says of some ranges."""
    return {
        "phase": phase.name,
        "total": phase.total,
        "answers": phase.answers,
        "ranges": ranges,
        "value": partial.value,
        "files": partial.files,
        "levels": partial.levels,
        "replaces": partial.replaces,
    }


def checkpoint_bytes(files: Iterable[dict[str, Any]]) -> int:
    """Bytes of the disk's budget that files of commits take: those of the checkpoint; results take none of it."""
    mine = (file for file in files if file["name"].startswith("checkpoint/"))
    return sum(file.get("stored", file.get("bytes", 0)) for file in mine)
