"""The journal of a run: a range is finished with all of its results or not at all."""

import errno
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longwall.pipeline.execution.thread_executor import Task, missing_tasks, ranges
from longwall.pipeline.run_store.commit_log import CommitLog, PartialResult, Phase
from longwall.storage.errors import RunError


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "results.partial").mkdir()
    return tmp_path / "checkpoint"


def begin(folder: Path, name: str = "count", total: int = 100) -> Phase:
    return CommitLog(folder).phase(name, total)


def test_what_is_committed_is_there_when_the_run_goes_on(folder):
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


def test_floating_point_comes_back_exactly(folder):
    values = [0.1, 1e300, 2.0**-1074, 123456789.123456789]
    begin(folder).commit([(0, 1)], PartialResult(values))
    assert begin(folder).partials[0].value == values


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_line_that_was_cut_off_is_no_line(folder, cut):
    phase = begin(folder)
    phase.commit([(0, 10)], PartialResult(1))
    phase.commit([(10, 20)], PartialResult(2))
    journal = folder / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-cut])
    again = begin(folder)
    assert [partial.value for partial in again.partials] == [1]
    again.commit([(10, 20)], PartialResult(3))
    assert [partial.value for partial in begin(folder).partials] == [1, 3]


def test_a_journal_that_was_changed_is_refused(folder):
    phase = begin(folder)
    for first in range(3):
        phase.commit([(first, first + 1)], PartialResult(first))
    journal = folder / "journal.jsonl"
    text = bytearray(journal.read_bytes())
    text[20] ^= 1
    journal.write_bytes(text)
    with pytest.raises(RunError, match=r"journal\.jsonl, line 1.*start a new run"):
        CommitLog(folder)


def test_files_that_no_commit_names_are_removed(folder):
    phase = begin(folder)
    results = folder.parent / "results.partial"
    (folder / "level-2").mkdir()
    for name in ("results.partial/embeddings-00000.parquet", "checkpoint/level-2/00000000", "checkpoint/a-0.npy"):
        (folder.parent / name).write_text("kept")
    named = ("results.partial/embeddings-00000.parquet", "checkpoint/level-2/00000000", "checkpoint/a-0.npy")
    phase.commit([(0, 1)], PartialResult(0, tuple({"name": name} for name in named)))
    (results / "embeddings-00001.parquet").write_text("half")
    (folder / "level-2" / ".00000001.partial").write_text("half")
    (folder / "a-1.npy").write_text("half")
    checkpoint = CommitLog(folder)
    left = {str(path.relative_to(folder.parent)) for path in folder.parent.rglob("*") if path.is_file()}
    assert left == {*named, "checkpoint/journal.jsonl"}
    assert [path.name for path in (folder / "level-2").iterdir()] == ["00000000"]
    # Names are not used again: a name in the journal means one file.
    assert checkpoint.next_number("results.partial/embeddings-") == 2
    assert checkpoint.next_number("checkpoint/a-") == 2
    assert checkpoint.next_number("checkpoint/b-") == 0


def test_phases_keep_their_order(folder):
    checkpoint = CommitLog(folder)
    checkpoint.phase("a", 10).commit([(0, 5)], PartialResult(1))
    checkpoint.phase("a", 10).commit([(0, 10)], PartialResult(2))
    again = CommitLog(folder)
    assert not again.phase("a", 10).complete
    assert again.phase("a", 10).complete
    with pytest.raises(RunError, match="another run"):
        CommitLog(folder).phase("b", 10)
    with pytest.raises(RunError, match="another run"):
        CommitLog(folder).phase("a", 11)


@settings(deadline=None)
@given(
    total=st.integers(1, 60),
    before=st.integers(1, 12),
    after=st.integers(1, 12),
    finished=st.sets(st.integers(0, 11)),
)
def test_what_is_left_is_what_is_missing(tmp_path_factory, total, before, after, finished):
    folder = tmp_path_factory.mktemp("run") / "checkpoint"
    phase = begin(folder, total=total)
    done: set[int] = set()
    for i, task in enumerate(ranges(total, before)):
        if i in finished:
            phase.commit([(task.first, task.last)], PartialResult(0))
            done |= set(range(task.first, task.last))
    again = begin(folder, total=total)
    left = list(missing_tasks(ranges(total, after), again))
    roots = [root for task in left for root in range(task.first, task.last)]
    assert sorted(roots) == sorted(set(range(total)) - done)
    assert sum(task.size for task in left) == len(roots)
    assert again.complete == (not left)


def test_tasks_that_are_cut_keep_their_share_of_the_size(folder):
    phase = begin(folder, total=10)
    phase.commit([(2, 4)], PartialResult(0))
    assert list(missing_tasks([Task(0, 10, 1000)], phase)) == [Task(0, 2, 200), Task(4, 10, 600)]


def test_a_folder_to_which_somebody_still_writes_is_removed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there, remove, late = folder / "rows", shutil.rmtree, [1]
    checkpoint = CommitLog(folder)
    there.mkdir()

    def removed(path: Path) -> None:
        remove(path)
        if late:
            there.mkdir()
            (there / str(late.pop())).touch()
            raise OSError(errno.ENOTEMPTY, "Directory not empty")

    monkeypatch.setattr(shutil, "rmtree", removed)
    assert checkpoint.remove(there)
    assert not there.exists()
    assert not checkpoint.remove(there)
