"""The folder of a run that others changed is refused or mended: links, strange files, repeated and damaged records."""

from __future__ import annotations

import errno
import json
import os
import shutil
import zlib
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from breakable import CONSTANTS, EDGES
from cases import each_case
from run_configs import run_config, write_edges

import longwall
from longwall.pipeline.run_store.commit_files import CommitFiles
from longwall.pipeline.run_store.commit_log import CommitLog, PartialResult, PhaseRecord
from longwall.pipeline.run_store.local_store import LocalStore
from longwall.storage.errors import FinalError, InputError, RunError


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A listing of triangles that commits every task."""
    for name, value in CONSTANTS.items():
        monkeypatch.setattr(name.replace(":", "."), value)
    return run_config(
        tmp_path,
        write_edges(tmp_path, EDGES),
        {"kind": "triangles", "output": "embeddings"},
        memory={"host": "1GiB"},
        engine={"threads": 1},
        run={"name": "one", "report": True},
    )


class Stop(RunError):
    """What ends a run early in these tests."""


def begin(config: dict[str, Any], commits: int = 6) -> Path:
    """Let a run end after so many commits. Return its folder."""
    left = [commits]
    create = CommitFiles.create

    def stopping(self: CommitFiles, entries: Any) -> bool:
        left[0] -= 1
        if left[0] < 0:
            raise Stop("that is enough")
        return create(self, entries)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CommitFiles, "create", stopping)
        with pytest.raises(RunError, match="that is enough"):
            longwall.run(config)
    return Path(config["run"]["directory"]) / config["run"]["name"]


def rows(result: longwall.Result) -> list[tuple[int, ...]]:
    return sorted(map(tuple, map(dict.values, result.table().to_pylist())))


def expected(config: dict[str, Any]) -> list[tuple[int, ...]]:
    return rows(longwall.run(config | {"run": config["run"] | {"name": "whole"}}))


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(("began", "resumed"), [("depth", "levels"), ("levels", "depth")])
def test_a_listing_is_resumed_in_the_order_that_it_began_with(config: dict[str, Any], began: str, resumed: str) -> None:
    config, made = config | {"scheduler": {"order": began}}, []
    with pytest.MonkeyPatch.context() as patch:
        create = CommitFiles.create
        patch.setattr(CommitFiles, "create", lambda self, entries: made.append(0) or create(self, entries))
        whole = expected(config)
    run = begin(config, len(made) - 1)
    assert any((run / "results.partial").iterdir())
    with pytest.raises(InputError, match=r"resume it with the scheduler\.order that it began with, or start a new run"):
        longwall.resume(run, overrides=[f"scheduler.order={resumed}"])
    assert rows(longwall.resume(run)) == whole


@pytest.mark.parametrize("link", ["results.partial", "checkpoint", "results", "manifest.json", "config.toml"])
def test_no_link_in_a_run_folder_is_followed(config: dict[str, Any], tmp_path: Path, link: str) -> None:
    run = begin(config)
    mine = tmp_path / "mine"
    (mine / "level-2").mkdir(parents=True)
    for name in ("embeddings-00000.parquet", "level-2/00000000", "thesis.txt"):
        (mine / name).write_text("precious")
    if (run / link).is_dir():
        shutil.rmtree(run / link)
    (run / link).unlink(missing_ok=True)
    (run / link).symlink_to(mine)
    with pytest.raises(InputError, match=rf"{link}: this is a link.*remove it"):
        longwall.resume(run)
    assert {str(file.relative_to(mine)) for file in mine.rglob("*") if file.is_file()} == {
        "embeddings-00000.parquet",
        "level-2/00000000",
        "thesis.txt",
    }


def test_a_link_deep_in_the_checkpoint_is_refused(config: dict[str, Any], tmp_path: Path) -> None:
    run = begin(config)
    (run / "checkpoint" / "level-2").symlink_to(tmp_path)
    with pytest.raises(InputError, match="level-2: this is a link"):
        longwall.resume(run)


def test_a_pipe_in_place_of_the_manifest_is_refused(config: dict[str, Any]) -> None:
    run = begin(config)
    (run / "manifest.json").unlink()
    os.mkfifo(run / "manifest.json")
    with pytest.raises(InputError, match=r"manifest\.json: this is a link, a pipe or a device"):
        longwall.resume(run)


@pytest.mark.parametrize("name", ["results.partial/notes.txt", "checkpoint/notes.txt", "checkpoint/level-2/a/b"])
def test_strange_files_are_refused_and_left_alone(config: dict[str, Any], name: str) -> None:
    run = begin(config)
    (run / name).parent.mkdir(parents=True, exist_ok=True)
    (run / name).write_text("precious")
    with pytest.raises(InputError, match="this is no file of the run: move it out"):
        longwall.resume(run)
    assert (run / name).read_text() == "precious"


def test_what_lies_beside_the_files_of_a_run_stays(config: dict[str, Any], tmp_path: Path) -> None:
    whole = expected(config)
    run = begin(config)
    (run / "notes.txt").write_text("precious")
    (run / "link").symlink_to(tmp_path)
    assert rows(longwall.resume(run)) == whole
    assert (run / "notes.txt").read_text() == "precious"
    assert (run / "link").is_symlink()


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_file_of_a_user_stays_whatever_its_end(config: dict[str, Any], scheme: str) -> None:
    if scheme:
        pytest.importorskip("fsspec")
    whole = expected(config)
    run = begin(config)
    (run / "thesis.partial").write_text("precious")
    half = run / f"config.toml.{'0' * 32}.partial"
    half.write_text("what a run that was killed may leave")
    assert rows(longwall.resume(f"{scheme}{run}")) == whole
    assert (run / "thesis.partial").read_text() == "precious"
    assert not half.exists()


def test_a_link_in_a_run_at_a_url_is_refused(config: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    run = begin(config)  # a run in a folder has the same files
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "embeddings-00000.parquet").write_text("precious")
    shutil.rmtree(run / "results.partial")
    (run / "results.partial").symlink_to(mine)
    with pytest.raises(InputError, match=r"results\.partial: this is a link"):
        longwall.resume(f"file://{run}")
    assert (mine / "embeddings-00000.parquet").read_text() == "precious"


def commits_of(run: Path) -> list[Path]:
    return sorted((run / "checkpoint" / "commits").iterdir())


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("deed", ["repeat the last", "drop", "drop the last", "swap"])
def test_commits_that_were_moved_never_count_wrong(config: dict[str, Any], deed: str) -> None:
    whole = expected(config)
    run = begin(config)
    files = commits_of(run)
    if deed == "repeat the last":
        shutil.copy(files[-1], files[-1].with_name(f"{len(files):08}.json"))
    elif deed == "drop":
        files[2].unlink()
    elif deed == "drop the last":  # what it finished is done again
        files[-1].unlink()
        assert rows(longwall.resume(run)) == whole
        return
    else:
        one, two = files[1].read_bytes(), files[2].read_bytes()
        files[1].write_bytes(two)
        files[2].write_bytes(one)
    with pytest.raises(FinalError, match=r"checkpoint/commits/: the record of the run is damaged"):
        longwall.resume(run)


@each_case(
    ("ranges", "partial", "said"),
    [
        ([(5, 15)], PartialResult(1), "finished twice"),
        ([(0, 10)], PartialResult(1), "finished twice"),
        ([(2, 3)], PartialResult(1), "finished twice"),
        ([(10, 30), (29, 31)], PartialResult(1), "finished twice"),
        ([(90, 101)], PartialResult(1), "not below 100"),
        ([(-1, 0)], PartialResult(1), "finished twice, or"),
        ([(12, 12)], PartialResult(1), "finished twice, or"),
        ([], PartialResult(1), "found in no root"),
        ([(10, 20)], PartialResult(0, ({"name": "checkpoint/a-1.npy"},)), "recorded twice"),
        ([(10, 20)], PartialResult(0, replaces=("checkpoint/a-2.npy",)), "never recorded"),
        ([(10, 20)], PartialResult(3, ({"name": "results.partial/embeddings-1.parquet", "rows": 2},)), "that have 2"),
    ],
)
def test_records_that_contradict_each_other_are_refused(
    tmp_path: Path, ranges: list[tuple[int, int]], partial: PartialResult, said: str
) -> None:
    first = PartialResult(7, ({"name": "checkpoint/a-1.npy"},))
    store = LocalStore(tmp_path)
    for folder in ("results.partial", "checkpoint"):
        (tmp_path / folder).mkdir()
    phase = CommitLog(store).record("count", 100)
    phase.commit([(0, 10)], first)
    with pytest.raises(FinalError, match=said):
        phase.commit(ranges, partial)
    # The same from commits whose checksums are right.
    write_commit(store, entry(ranges, partial))
    with pytest.raises(FinalError, match=rf"00000001\.json: .*{said}"):
        CommitLog(store)


def entry(ranges: Any, partial: PartialResult, **more: Any) -> dict[str, Any]:
    """What a commit says."""
    return {
        "phase": "count",
        "total": 100,
        "answers": ["", ""],
        "ranges": ranges,
        "value": partial.value,
        "files": list(partial.files),
        "levels": {},
        "replaces": list(partial.replaces),
    } | more


def write_commit(store: LocalStore, *entries: Any) -> None:
    """Write a commit whose checksum is right, after those that there are."""
    made = CommitFiles(store, lambda entry: None)
    made.read()
    assert made.create(entries)


@each_case(
    "wrong",
    [
        [],
        7,
        {},
        {"phase": "a", "total": "9"},
        {"phase": 1, "total": 1e9, "levels": []},
        entry([(0, 1)], PartialResult(1), total="9"),
        entry([(0, 1.5)], PartialResult(1)),
    ],
)
def test_commits_that_are_none_are_refused(tmp_path: Path, wrong: Any) -> None:
    store = LocalStore(tmp_path)
    write_commit(store, wrong)
    with pytest.raises(FinalError, match=r"00000000\.json: this is no commit of a run: start a new run"):
        CommitLog(store)


@pytest.mark.parametrize("body", [b'"commits": 7}', b'"commits": ' + b"[" * 5000 + b"}", b'"owner": "x"}', b"}"])
def test_commits_that_hold_none_are_refused(tmp_path: Path, body: bytes) -> None:
    store = LocalStore(tmp_path)
    content = b'{"checksum": "%08x", %s\n' % (zlib.crc32(body), body)
    store.create("checkpoint/commits/00000000.json", content)
    with pytest.raises(FinalError, match=r"00000000\.json: this is no commit of a run: start a new run"):
        CommitLog(store)


@pytest.mark.parametrize("name", ["/etc/passwd", "../x", "results.partial/../../x", "a", "checkpoint/x\n-1.npy", 7])
def test_a_commit_names_only_files_of_runs(tmp_path: Path, name: Any) -> None:
    store = LocalStore(tmp_path)
    write_commit(store, entry([(0, 10)], PartialResult(0, ({"name": name},))))
    with pytest.raises(FinalError, match="is no file of a run"):
        CommitLog(store)


def flip(file: Path, at: int) -> None:
    content = bytearray(file.read_bytes())
    content[at] ^= 4
    file.write_bytes(content)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("at", [10, -100])
def test_a_flipped_bit_in_a_finished_file_is_noticed(config: dict[str, Any], at: int) -> None:
    run = begin(config)
    flip(sorted((run / "results.partial").iterdir())[0], at)
    with pytest.raises(FinalError, match=r"embeddings-\d+\.parquet: the run had finished this file"):
        longwall.resume(run)


def flip_what_is_committed(config: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Let a bit of the first file that a run commits flip then; return a list that gets its path."""
    commit = PhaseRecord.commit
    seen: list[Path] = []

    def flipping(self: PhaseRecord, ranges: Any, partial: PartialResult, **how: Any) -> None:
        commit(self, ranges, partial, **how)
        if partial.files and not seen:
            seen.append(Path(config["run"]["directory"]) / "one" / partial.files[0]["name"])
            flip(seen[0], 20)

    monkeypatch.setattr(PhaseRecord, "commit", flipping)
    return seen


def test_a_bit_that_is_flipped_while_the_run_goes_on_is_noticed(
    config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = flip_what_is_committed(config, monkeypatch)
    with pytest.raises(FinalError, match="the run had finished this file"):
        longwall.run(config)
    run = seen[0].parents[1]
    assert json.loads((run / "manifest.json").read_text())["status"] == "failed"
    assert not (run / "results").exists()


def test_a_flipped_bit_at_a_url_is_noticed(config: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fsspec")
    url = f"file://{config['run']['directory']}"
    flip_what_is_committed(config, monkeypatch)
    with pytest.raises(FinalError, match="the run had finished this file"):
        longwall.run(config | {"run": config["run"] | {"directory": url}})


def test_pages_of_results_have_checksums(config: dict[str, Any]) -> None:
    result = longwall.run(config)
    file = sorted((Path(result.path) / "results").glob("embeddings*"))[0]
    with file.open("rb") as opened:
        column = pq.ParquetFile(opened).metadata.row_group(0).column(0)
    begin = column.dictionary_page_offset or column.data_page_offset
    flip(file, begin + column.total_compressed_size - 1)
    with pytest.raises(RunError, match=rf"{file.name}: the file is damaged"):
        result.table()


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("name", ["journal.jsonl", "journal/00000000.jsonl"])
def test_a_run_of_an_earlier_version_is_refused_and_may_be_replaced(config: dict[str, Any], name: str) -> None:
    run = begin(config)
    shutil.rmtree(run / "checkpoint")
    (run / "checkpoint" / name).parent.mkdir(parents=True)
    (run / "checkpoint" / name).write_text("12345678 {}\n")
    manifest = json.loads((run / "manifest.json").read_text())
    (run / "manifest.json").write_text(json.dumps(manifest | {"checkpoint_format": 2}))
    with pytest.raises(InputError, match=r"its checkpoint has another format \(2, .*has 5\); start a new run"):
        longwall.resume(run)
    config["run"]["overwrite"] = True
    assert longwall.run(config).table().num_rows
    assert not (run / "checkpoint").exists()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"status": 1}',
        '{"status": "failed"}',
        '{"status": "failed", "config_sha256": "x", "question": 1}',
        '{"status": "failed", "config_sha256": "x", "question": {}, "engine": [], "graph": {}}',
        '{"status": "failed", "config_sha256": "x", "resumed": "x"}',
        "[" * 100_000,
        "\xff",
    ],
)
def test_a_broken_manifest_is_refused(config: dict[str, Any], text: str) -> None:
    run = begin(config)
    (run / "manifest.json").write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match=r"manifest.json is damaged|cannot be resumed"):
        longwall.resume(run)


def test_a_run_without_its_config_is_refused(config: dict[str, Any]) -> None:
    run = begin(config)
    (run / "config.toml").unlink()
    with pytest.raises(InputError, match=r"config.toml of this run is gone: restore it, or start a new run"):
        longwall.resume(run)


def test_tables_are_read_from_the_files_of_the_manifest_alone(config: dict[str, Any], tmp_path: Path) -> None:
    result = longwall.run(config)
    whole = rows(result)
    file = next((Path(result.path) / "results").glob("embeddings*"))
    shutil.copy(file, file.with_name("embeddings-backup.parquet"))
    shutil.copy(file, file.with_name("embeddings-7.parquet"))
    assert rows(result) == whole
    file.rename(tmp_path / "elsewhere")
    for put in (lambda: file.symlink_to(tmp_path / "elsewhere"), lambda: os.mkfifo(file), lambda: None):
        put()
        with pytest.raises(RunError, match=r"there is no such file any more, or a link in its place: restore it"):
            result.table()
        file.unlink(missing_ok=True)


def test_a_phase_removes_its_own_files_alone(tmp_path: Path) -> None:
    log, level = CommitLog(LocalStore(tmp_path)), tmp_path / "checkpoint" / "level-2"
    level.mkdir(parents=True)
    for name in ("0", "1", "notes.txt"):
        (level / name).write_text("")
    record = log.record("level 2", 1)
    record.commit([(0, 1)], PartialResult(0, ({"name": "checkpoint/level-2/0"},)))
    log.drop(record)
    assert [path.name for path in level.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("there", [True, False])
def test_only_folders_that_a_run_made_go_with_it(config: dict[str, Any], tmp_path: Path, *, there: bool) -> None:
    config["graph"]["path"] = str(tmp_path / "missing.txt")
    if there:
        (tmp_path / "runs").mkdir()
    with pytest.raises(InputError, match=r"missing\.txt"):
        longwall.run(config)
    assert (tmp_path / "runs").exists() == there


def test_a_full_disk_is_not_taken_for_another_folder(config: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    run = begin(config)

    def full(self: LocalStore, below: str = "") -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(LocalStore, "list", full)
    with pytest.raises(RunError, match=r"one: the run cannot be resumed \(No space left on device\): free some space"):
        longwall.resume(run)
