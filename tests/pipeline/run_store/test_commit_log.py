"""The commits of a run: a range is finished with all of its results or not at all, in a folder and at a URL."""

import hashlib
import json
import random
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from budgets import make_budgets
from cases import each_case
from hypothesis import given, settings
from hypothesis import strategies as st

from longwall.pipeline.execution.phase import Task, equal_tasks
from longwall.pipeline.execution.thread_executor import missing_tasks
from longwall.pipeline.run_store import commit_files, commit_log
from longwall.pipeline.run_store.commit_files import CommitFiles
from longwall.pipeline.run_store.commit_log import CommitLog, PartialResult, PhaseRecord, add_entry
from longwall.pipeline.run_store.local_store import LocalStore
from longwall.pipeline.run_store.object_store import ObjectStore
from longwall.pipeline.run_store.store import RunStore
from longwall.storage.errors import FinalError, InputError, RunError

COMMITS = "checkpoint/commits"
Open = Callable[[], RunStore]


@pytest.fixture(params=["folder", "memory", "file"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Opens the store of a run: each time as another process that works in a folder of its own, at a URL."""
    if request.param != "folder":
        request.getfixturevalue("memory")
    url = {"memory": "memory://runs/", "file": f"file://{tmp_path}/"}.get(request.param)
    numbers = iter(range(1000))

    def opened(name: str = "run") -> RunStore:
        spill = tmp_path / f"spill-{next(numbers)}"
        store = LocalStore(tmp_path / name) if url is None else ObjectStore(url + name, spill)
        (store.folder / "results.partial").mkdir(parents=True, exist_ok=True)
        return store

    return opened


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "results.partial").mkdir()
    return tmp_path


def own(log: CommitLog) -> None:
    """Write the manifest that names the process."""
    log.store.write("manifest.json", json.dumps({"owner": log.owner}).encode())


def open_log(place: Open | Path) -> CommitLog:
    """What a process finds that resumes a run, which it takes over."""
    log = CommitLog(LocalStore(place) if isinstance(place, Path) else place())
    log.claim()
    own(log)
    log.restore(make_budgets().disk)
    return log


def begin(place: Open | Path, name: str = "count", total: int = 100) -> PhaseRecord:
    return open_log(place).record(name, total)


def commits(store: RunStore) -> list[str]:
    return sorted(name.removeprefix(f"{COMMITS}/") for name in store.list(f"{COMMITS}/"))


def test_what_is_committed_is_there_when_the_run_is_resumed(place):
    folder = place
    phase = begin(folder)
    phase.commit([(0, 10), (30, 40)], PartialResult(7, levels={2: [1, 2, 0.5, 3, 1]}))
    phase.commit([(10, 30)], PartialResult(2**70))
    again = begin(folder)
    assert list(again.missing()) == list(phase.missing()) == [(40, 100)]
    assert [partial.value for partial in again.partials] == [7, 2**70]
    assert again.partials[0].levels == {2: [1, 2, 0.5, 3, 1]}
    again.commit([(40, 100)], PartialResult(0))
    assert again.complete
    assert begin(folder).complete


def test_a_record_does_not_grow_with_ranges_and_commits(folder):
    draw, total = random.Random(1), 3000
    phase = begin(folder, total=total)
    phase.combine = sum
    order = list(range(total))
    draw.shuffle(order)
    for at in order[:1000]:
        phase.add([(at, at + 1)], PartialResult(2**60 + at, levels={1: [1, 1, 0.5, 8, 1]}))
        assert all(a[1] < b[0] for a, b in pairwise(phase.done))
    for first in range(1000, total, 100):
        phase.add([(at, at + 1) for at in sorted(order[first : first + 100])], PartialResult(0))
    assert phase.done == [(0, total)]
    assert phase.complete
    assert phase.ranges == total
    assert len(phase.partials) <= 257
    assert sum(phase.values) == 1000 * 2**60 + sum(order[:1000])
    figures = [partial.levels[1] for partial in phase.partials if partial.levels]
    assert [sum(column) for column in zip(*figures, strict=True)] == [1000, 1000, 500.0, 8000, 1000]
    with pytest.raises(FinalError, match="finished twice"):
        phase.add([(5, 6)], PartialResult(1))


def test_results_in_files_stay_apart(folder):
    phase = begin(folder, total=1000)
    phase.combine = sum
    for at in range(300):
        file = {"name": f"results.partial/rows-{at:05}.parquet", "rows": 1}
        phase.add([(at, at + 1)], PartialResult(1, (file,)))
    assert len(phase.files()) == len(phase.partials) == 300
    assert phase.done == [(0, 300)]


def test_floating_point_comes_back_exactly(folder):
    values = [0.1, 1e300, 2.0**-1074, 123456789.123456789]
    begin(folder).commit([(0, 1)], PartialResult(values))
    assert begin(folder).partials[0].value == values


def test_a_commit_that_was_being_written_is_no_commit(folder):
    phase = begin(folder)
    phase.commit([(0, 10)], PartialResult(1))
    (folder / COMMITS / f"00000001.json.{'0' * 32}.partial").write_bytes(b"half")
    again = begin(folder)
    assert [partial.value for partial in again.partials] == [1]
    assert commits(again.log.store) == ["00000000.json"]
    again.commit([(10, 20)], PartialResult(3))
    assert [partial.value for partial in begin(folder).partials] == [1, 3]


def test_a_commit_that_cannot_be_written_is_none(folder, monkeypatch):
    phase = begin(folder)
    phase.commit([(0, 10)], PartialResult(1))
    with monkeypatch.context() as patch:
        patch.setattr(LocalStore, "create", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(OSError, match="No space left"):
            phase.commit([(10, 20)], PartialResult(2))
    again = begin(folder)
    assert [partial.value for partial in again.partials] == [1]
    again.commit([(10, 20)], PartialResult(3))
    assert [partial.value for partial in begin(folder).partials] == [1, 3]


@pytest.fixture
def waiting(place):
    """A phase with a commit that is on disk, and two that wait."""
    phase = begin(place)
    phase.commit([(0, 10)], PartialResult(1))
    before = commits(phase.log.store)
    for first in (10, 20):
        phase.commit([(first, first + 10)], PartialResult(first), may_wait=True)
    assert phase.values == [1, 10, 20]
    assert commits(phase.log.store) == before
    return phase


def test_commits_that_wait_are_written_with_the_next_one(waiting, place):
    before = commits(waiting.log.store)
    waiting.commit([(30, 40)], PartialResult(4))
    assert len(commits(waiting.log.store)) == len(before) + 1
    assert begin(place).values == [1, 10, 20, 4]


def test_a_commit_that_names_a_file_does_not_wait(waiting, place):
    (waiting.log.store.folder / "results.partial/rows-00000.parquet").write_bytes(b"12")
    file = {"name": "results.partial/rows-00000.parquet", "bytes": 2, "sha256": hashlib.sha256(b"12").hexdigest()}
    waiting.commit([(30, 40)], PartialResult(4, (file,)), may_wait=True)
    assert begin(place).values == [1, 10, 20, 4]


def test_a_commit_waits_for_some_seconds_at_most(waiting, place, monkeypatch):
    monkeypatch.setattr(commit_log, "COMMIT_SECONDS", 0.0)
    waiting.commit([(30, 40)], PartialResult(4), may_wait=True)
    assert begin(place).values == [1, 10, 20, 4]


@pytest.mark.parametrize("act", ["flush", "drop", "confirm"])
def test_commits_that_wait_are_written_before_files_go_and_when_a_run_ends_early(waiting, place, act):
    if act == "drop":
        waiting.log.drop(waiting.log.record("before", 1))
    else:
        getattr(waiting.log, act)()
    waits = act == "confirm" and waiting.log.store.alone  # no other process can have taken the run over
    assert begin(place).values == ([1] if waits else [1, 10, 20])


def test_an_interrupt_behind_a_commit_does_not_make_it_twice(waiting, place, monkeypatch):
    def create(self, entries):
        assert whole(self, entries)
        raise KeyboardInterrupt

    whole = CommitFiles.create
    with monkeypatch.context() as patch:
        patch.setattr(CommitFiles, "create", create)
        with pytest.raises(KeyboardInterrupt):
            waiting.commit([(30, 40)], PartialResult(4))
    waiting.log.flush()
    assert begin(place).values == [1, 10, 20, 4]


@each_case("folded", [False, True])
@each_case("damage", ["gone", "cut", "changed", "first byte", "empty", "swapped", "repeated", "two lines"])
def test_damaged_commits_are_refused(place, monkeypatch, folded, damage):
    place = partial(place, f"{damage}-{folded}".replace(" ", "-"))
    if folded:
        monkeypatch.setattr(commit_files, "FOLDED", 3)
        phase = begin(place)
        for number in range(50, 55):
            phase.commit([(number, number + 1)], PartialResult(number))
        begin(place)
    phase = begin(place)
    for number in range(3):
        phase.commit([(number, number + 1)], PartialResult(number))
    store = place()
    first, second, third = (f"{COMMITS}/{name}" for name in commits(store)[:3])
    if folded:
        second, third = f"{COMMITS}/{commits(store)[-1]}", first
        assert "until-" in second
    text = store.read(second)
    if damage == "gone":
        store.delete([second])
    elif damage == "repeated":
        last = max(name for name in commits(store) if "until-" not in name)
        store.write(f"{COMMITS}/{int(last[:8]) + 1:08}.json", store.read(f"{COMMITS}/{last}"))
    elif damage == "swapped":
        store.write(second, store.read(third))
        store.write(third, text)
    else:
        changed = {
            "cut": text[:-1],
            "changed": text.replace(b'"total": 100', b'"total": 101'),
            "first byte": b" " + text[1:],
            "empty": b"",
            "two lines": text + text,
        }
        store.write(second, changed[damage])
    with pytest.raises(FinalError, match=r"the record of the run is damaged, .*: start a new run"):
        CommitLog(place())


def test_many_commits_are_folded_when_the_run_is_resumed(place, monkeypatch):
    monkeypatch.setattr(commit_files, "FOLDED", 4)
    expected, made = [], 0
    for count in (3, 2, 1, 5, 0):
        log = open_log(place)
        phase = log.record("count", 100)
        assert [partial.value for partial in phase.partials] == expected
        for _ in range(count):
            phase.commit([(made, made + 1)], PartialResult(made))
            expected.append(made)
            made += 1
    there = commits(place())
    (segment,) = (name for name in there if name.startswith("until-"))
    assert int(segment[6:14]) >= made
    assert len(there) <= 4


def test_a_fold_that_was_interrupted_counts_nothing_twice(place, monkeypatch):
    phase = begin(place)
    for number in range(5):
        phase.commit([(number, number + 1)], PartialResult(number))
    monkeypatch.setattr(commit_files, "FOLDED", 4)
    log = CommitLog(place())
    log.claim()
    log._commits.fold()  # and nothing is removed
    assert len(commits(place())) >= 6
    again = begin(place)
    assert [partial.value for partial in again.partials] == [0, 1, 2, 3, 4]
    assert len(commits(place())) <= 2


def reader(store: RunStore) -> tuple[CommitFiles, dict[str, PhaseRecord]]:
    """What reads commits while they are made."""
    phases: dict[str, PhaseRecord] = {}
    return CommitFiles(store, partial(add_entry, phases, None)), phases


def test_readers_see_every_commit_once(place, monkeypatch):
    monkeypatch.setattr(commit_files, "FOLDED", 3)
    commits, phases = reader(place())
    assert commits.read()
    phase = begin(place)
    for number in range(2):
        phase.commit([(number, number + 1)], PartialResult(number))
    assert commits.read()
    assert [partial.value for partial in phases["count"].partials] == [0, 1]
    phase.commit([(2, 3)], PartialResult(2))
    for _ in range(2):
        assert commits.read()
        assert [partial.value for partial in phases["count"].partials] == [0, 1, 2]
    phase.commit([(3, 4)], PartialResult(3))
    begin(place).commit([(4, 5)], PartialResult(4))  # what the reader knows in part is folded
    assert commits.read()
    assert [partial.value for partial in phases["count"].partials] == [0, 1, 2, 3, 4]


def test_what_a_listing_missed_is_read_the_next_time(place, monkeypatch):
    phase = begin(place)
    store = place()
    for number in range(3):
        phase.commit([(number, number + 1)], PartialResult(number))
    commits, phases = reader(store)
    names = list(store.list(f"{COMMITS}/"))
    with monkeypatch.context() as patch:
        patch.setattr(store, "list", lambda below: dict.fromkeys([*names[:-2], names[-1]], 1))
        assert not commits.read()
    assert [partial.value for partial in phases["count"].partials] == [0]
    assert commits.read()
    assert [partial.value for partial in phases["count"].partials] == [0, 1, 2]


@pytest.fixture(params=["memory", "file"])
def shared(request: pytest.FixtureRequest, tmp_path: Path, memory: Any) -> Open:
    """A place without locks."""
    url = "memory://runs/run" if request.param == "memory" else f"file://{tmp_path}/run"
    numbers = iter(range(1000))

    def opened() -> RunStore:
        store = ObjectStore(url, tmp_path / f"spill-{next(numbers)}")
        (store.folder / "results.partial").mkdir(parents=True)
        return store

    return opened


def test_a_process_that_resumes_a_run_stops_the_one_that_had_it(shared):
    first = open_log(shared)
    phase = first.record("count", 100)
    phase.commit([(0, 1)], PartialResult("a"))
    second = open_log(shared)
    with pytest.raises(FinalError, match="another process has resumed this run"):
        phase.commit([(1, 2)], PartialResult("b"))
    assert first.lost
    again = second.record("count", 100)
    assert [partial.value for partial in again.partials] == ["a"]
    again.commit([(1, 2)], PartialResult("c"))
    second.confirm()
    with pytest.raises(FinalError):
        first.confirm()
    assert CommitLog(shared()).record("count", 100).values == ["a", "c"]
    second.store.delete(["checkpoint/"])  # the run is done
    with pytest.raises(RunError):
        first.record("next", 100).commit([(1, 2)], PartialResult("b"))


def test_a_process_that_lost_its_run_commits_nothing_once_its_number_is_folded(shared, monkeypatch):
    first = open_log(shared)
    phase = first.record("count", 100)
    for number in range(3):
        phase.commit([(number, number + 1)], PartialResult(number))
    monkeypatch.setattr(commit_files, "FOLDED", 2)
    open_log(shared)
    assert all("until-" in name for name in commits(shared()))
    with pytest.raises(FinalError, match="another process has resumed this run"):
        phase.commit([(3, 4)], PartialResult(3))
    assert [partial.value for partial in begin(shared).partials] == [0, 1, 2]


def test_two_cannot_take_a_run_over_at_once(shared):
    first, second = CommitLog(shared()), CommitLog(shared())  # both have looked before one wrote
    first.claim()
    with pytest.raises(InputError, match="another process is busy with this run"):
        second.claim()


def test_files_that_no_commit_names_are_removed(folder):
    phase = begin(folder)
    (folder / "checkpoint" / "level-2").mkdir()
    named = ("results.partial/embeddings-00000.parquet", "checkpoint/level-2/00000000", "checkpoint/a-0.npy")
    for name in named:
        (folder / name).write_text("kept")
    phase.commit([(0, 1)], PartialResult(0, tuple({"name": name} for name in named)))
    for name in (
        "results.partial/embeddings-00001.parquet",
        "checkpoint/level-2/.00000001.partial",
        "checkpoint/a-1.npy",
    ):
        (folder / name).write_text("half")
    checkpoint = open_log(folder)
    left = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert left == {*named, f"{COMMITS}/00000000.json", "manifest.json"}
    assert [path.name for path in (folder / "checkpoint" / "level-2").iterdir()] == ["00000000"]
    # Names are not used again: a name in a commit means one file.
    assert checkpoint.next_number("results.partial/embeddings-") == 2
    assert checkpoint.next_number("checkpoint/a-") == 2
    assert checkpoint.next_number("checkpoint/b-") == 0


def test_a_phase_is_known_by_its_name(folder):
    log = open_log(folder)
    log.record("b", 10).commit([(0, 5)], PartialResult(1))
    log.record("a", 10).commit([(0, 10)], PartialResult(2))
    again = open_log(folder)
    assert again.record("a", 10).values == again.values("a") == [2]
    assert not again.record("b", 10).complete
    assert again.record("a", 10).complete
    assert again.values("c") == []
    with pytest.raises(RunError, match="another run"):
        open_log(folder).record("a", 11)


@settings(deadline=None)
@given(
    total=st.integers(1, 60),
    before=st.integers(1, 12),
    after=st.integers(1, 12),
    finished=st.sets(st.integers(0, 11)),
)
def test_what_is_left_is_what_is_missing(tmp_path_factory, total, before, after, finished):
    folder = tmp_path_factory.mktemp("run")
    phase = begin(folder, total=total)
    done: set[int] = set()
    for i, task in enumerate(equal_tasks(total, before)):
        if i in finished:
            phase.commit([(task.first, task.last)], PartialResult(0))
            done |= set(range(task.first, task.last))
    again = begin(folder, total=total)
    left = list(missing_tasks(equal_tasks(total, after), again))
    roots = [root for task in left for root in range(task.first, task.last)]
    assert sorted(roots) == sorted(set(range(total)) - done)
    assert sum(task.size for task in left) == len(roots)
    assert again.complete == (not left)


def test_tasks_that_are_cut_keep_their_share_of_the_size(folder):
    phase = begin(folder, total=10)
    phase.commit([(2, 4)], PartialResult(0))
    assert list(missing_tasks([Task(0, 10, 1000)], phase)) == [Task(0, 2, 200), Task(4, 10, 600)]


def test_a_folder_that_is_read_no_more_is_removed(place):
    log = open_log(place)
    folder, file = log.folder / "rows-of-1-edges", {"name": "checkpoint/rows-of-1-edges/0.npy", "stored": 3}
    folder.mkdir()
    (folder / "0.npy").write_text("abc")
    record = log.record("rows", 1)
    record.commit([(0, 1)], PartialResult(0, (file,)))
    disk = make_budgets().disk
    again = CommitLog(log.store)
    again.restore(disk)
    assert disk.limit - disk.free == 3
    for _ in range(2):
        again.drop(again.record("rows", 1))
        assert not folder.exists()
        assert disk.free == disk.limit
    assert all(name.startswith(COMMITS) for name in log.store.list("checkpoint/"))
    CommitLog(log.store).restore(disk)
    assert disk.free == disk.limit


def test_files_of_commits_are_checked_when_the_run_is_resumed(place):
    log = open_log(place)
    path = log.folder / "a-0.npy"
    path.write_bytes(b"right")
    file = {"name": "checkpoint/a-0.npy", "bytes": 5, "sha256": hashlib.sha256(b"right").hexdigest()}
    log.record("count", 10).commit([(0, 1)], PartialResult(0, (file,)))
    assert open_log(place).files() == [file]
    for wrong in (b"wrong", b"short"[:4]):
        place().write("checkpoint/a-0.npy", wrong)
        with pytest.raises(FinalError, match=r"a-0\.npy: the run had finished this file, and it is gone or changed"):
            open_log(place)
    place().delete(["checkpoint/a-0.npy"])
    with pytest.raises(FinalError, match=r"a-0\.npy: the run had finished this file"):
        open_log(place)
