"""A run at a URL has the results of one in a folder, wherever and whenever it is resumed."""

from __future__ import annotations

import json
import random
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from breakable import CONSTANTS, EDGES, KINDS, LABELS, LIMIT, Workshop, answer
from kill import Fault, Launcher, Outcome, check_whole, left_in, status
from run_configs import config_of, write_edges
from typer.testing import CliRunner

import longwall
from longwall.pipeline.cli import app
from longwall.pipeline.run_store.commit_log import CommitLog
from longwall.stages import export
from longwall.storage.errors import FinalError, InputError, RunError
from longwall.storage.remote import remote_folder as mirrors
from longwall.storage.remote.remote_folder import RemoteFolder

fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'longwall[cluster]'")
SOME = ["count by search", "triangles per vertex", "frequent patterns", "listing", "listing by levels"]
KILLS_OF_EACH_KIND = 4
WHOLE = {"config.toml", "history.json", "manifest.json", "metrics.parquet", "report.html", "results"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_edges(tmp_path, EDGES, LABELS)
    return tmp_path


def config(folder: Path, kind: str, directory: str | Path, **scheduler: Any) -> dict[str, Any]:
    return config_of(folder, kind, "run", directory, **scheduler)


def local(folder: Path, kind: str) -> dict[str, Any]:
    return answer(Path(longwall.run(config(folder, kind, folder / "runs")).path))


def check(folder: Path, kind: str) -> None:
    """Check that the run in the folder ``urls`` is whole, has the results of one in a folder, and left nothing else."""
    run = folder / "urls" / "run"
    check_whole(run, folder / "spill")
    assert {path.name for path in run.iterdir()} == WHOLE
    assert answer(run) == local(folder, kind)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("kind", SOME)
def test_a_run_at_a_url_has_the_results_of_one_in_a_folder(
    folder: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "ROWS_PER_FILE", 100)
    result = longwall.run(config(folder, kind, f"file://{folder}/urls/"))
    check(folder, kind)
    assert result.path == f"file://{folder}/urls/run"
    assert result.to_json()["run"] == result.path
    expected = longwall.run(config(folder, kind, folder / "again"))
    assert result.count == expected.count
    assert sorted(result.table("counts").to_pylist(), key=repr) == sorted(
        expected.table("counts").to_pylist(), key=repr
    )
    if "embeddings" in answer(Path(expected.path)):
        assert result.table().num_rows == expected.table().num_rows
        assert len(list((folder / "urls/run/results").glob("embeddings-*"))) > 1
    with pytest.raises(InputError, match=r'results holds no table "none", only .*counts'):
        result.table("none")


def test_a_run_in_memory(folder: Path, memory: Any) -> None:
    """A file system without files."""
    result = longwall.run(config(folder, "listing by levels", "memory://runs"))
    expected = longwall.run(config(folder, "listing by levels", folder / "runs"))
    rows = [sorted(map(tuple, map(dict.values, one.table().to_pylist()))) for one in (result, expected)]
    assert rows[0] == rows[1]
    manifest = json.loads(memory.cat_file("/runs/run/manifest.json"))
    assert manifest["status"] == "done"
    assert set(memory.find("/runs")) == {
        *(
            f"/runs/run/{name}"
            for name in ("config.toml", "history.json", "manifest.json", "metrics.parquet", "report.html")
        ),
        *(f"/runs/run/results/{name}" for name in manifest["results"]),
    }
    assert left_in(folder / "spill") == []


def test_a_limit_holds_at_a_url(folder: Path) -> None:
    result = longwall.run(config(folder, "listing with a limit", f"file://{folder}/urls"))
    assert (result.count, result.truncated, result.table().num_rows) == (LIMIT, True, LIMIT)


def resume_or_start(launch: Launcher, folder: Path, fault: Fault | None) -> Outcome:
    """Resume the run, or start it where nothing has begun yet: on another machine than before."""
    run, url = folder / "urls" / "run", f"file://{folder}/urls"
    shutil.rmtree(folder / "spill", ignore_errors=True)
    if status(run) is None:
        shutil.rmtree(run, ignore_errors=True)
        words = ["run", folder / "run.toml", "--set", f"run.directory={url}"]
    else:
        words = ["resume", f"{url}/run"]
    return launch(*words, "--quiet", folder=folder, fault=fault, constants=CONSTANTS)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("kind", SOME)
def test_a_killed_run_is_resumed_at_its_url(
    launch: Launcher, tmp_path_factory: pytest.TempPathFactory, kind: str
) -> None:
    workshop = Workshop(launch, tmp_path_factory.mktemp("workshop"))
    draw, whole = random.Random(kind), workshop.undisturbed(kind)
    struck = 0
    for _ in range(2 * KILLS_OF_EACH_KIND):
        folder = workshop.folder(kind)
        for event in (*(draw.randint(1, whole.events) for _ in range(2)), None):
            outcome = resume_or_start(launch, folder, None if event is None else Fault("kill", event=event))
            assert outcome.killed or outcome.code == 0, outcome.err
            struck += outcome.killed
            if status(folder / "urls" / "run") == "done":
                # A run that is killed once it is done may leave copies of its results: nothing reads them.
                shutil.rmtree(folder / "urls" / "run" / "results.partial", ignore_errors=True)
                break
        shutil.rmtree(folder / "spill", ignore_errors=True)
        workshop.compare(kind, folder / "urls" / "run")
        assert {path.name for path in (folder / "urls" / "run").iterdir()} <= WHOLE | {"checkpoint"}
        if struck >= KILLS_OF_EACH_KIND:
            return
    pytest.fail(f"only {struck} of the kills struck")


@pytest.mark.slow
def test_a_local_disk_that_is_full_ends_the_run_with_one_line(launch: Launcher, tmp_path: Path) -> None:
    workshop = Workshop(launch, tmp_path)
    folder = workshop.folder("listing")
    outcome = resume_or_start(launch, folder, Fault("disk full", event=60))
    assert outcome.code == 1
    assert outcome.err.strip().count("\n") == 0
    assert f"longwall resume file://{folder}/urls/run" in outcome.err
    assert resume_or_start(launch, folder, None).code == 0
    workshop.compare("listing", folder / "urls" / "run")


def test_a_name_that_is_taken_is_refused(folder: Path, memory: Any) -> None:
    for directory in (f"file://{folder}/urls", "memory://runs"):
        longwall.run(config(folder, "cliques", directory))
        for name in ("run-2", "other"):
            RemoteFolder(f"{directory}/{name}").write("a", b"x")
        with pytest.raises(InputError, match=r"run exists already: .*run\.name=run-3"):
            longwall.run(config(folder, "cliques", directory))
        assert RemoteFolder(f"{directory}/run").sizes("results").keys() == {"results/counts.parquet"}
    assert left_in(folder / "spill") == []


@pytest.mark.parametrize(
    ("directory", "said"),
    [
        ("file://{}/graph.txt", "cannot be written .*choose another run.directory"),
        ("nonsense://x", "nonsense"),
        ("lacking://x", "a package for such URLs is missing: install it"),
    ],
)
def test_what_cannot_be_written_is_said(
    folder: Path, directory: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Lacking(fsspec.AbstractFileSystem):  # type: ignore[misc]
        def __init__(self, *_: Any, **__: Any) -> None:
            raise ImportError("install it")

    fsspec.register_implementation("lacking", Lacking, clobber=True)
    monkeypatch.setattr(mirrors, "_PAUSES", ())
    with pytest.raises(InputError, match=said) as caught:
        longwall.run(config(folder, "cliques", directory.format(folder)))
    assert len(str(caught.value).splitlines()) == 1
    assert left_in(folder / "spill") == []


def test_bad_input_leaves_nothing_behind(folder: Path, memory: Any) -> None:
    (folder / "graph.txt").write_text("0 1\none two\n")
    with pytest.raises(InputError, match=r"graph\.txt, line 2"):
        longwall.run(config(folder, "cliques", "memory://runs"))
    assert memory.find("/runs") == []
    assert left_in(folder / "spill") == []


def test_a_run_that_cannot_begin_leaves_nothing_behind(
    folder: Path, memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lossy(*_: Any) -> None:
        raise RunError("the line is dead")

    with monkeypatch.context() as patch:
        patch.setattr(RemoteFolder, "write", lossy)  # the manifest
        with pytest.raises(InputError, match=r"the line is dead, or choose another run\.directory"):
            longwall.run(config(folder, "cliques", "memory://runs"))
    assert memory.find("/runs") == []
    assert left_in(folder / "spill") == []
    assert longwall.run(config(folder, "cliques", "memory://runs")).count


def test_what_cannot_be_resumed_is_refused(folder: Path, memory: Any) -> None:
    with pytest.raises(InputError, match="there is no run"):
        longwall.resume("memory://runs/run")
    with pytest.raises(InputError, match="only memory, engine, scheduler"):
        longwall.resume("memory://runs/run", overrides=["workload.k=5"])


def test_a_run_that_is_done_is_not_done_again(folder: Path, memory: Any) -> None:
    result = longwall.run(config(folder, "cliques", "memory://runs"))
    memory.rm("/runs/run/report.html")
    assert longwall.resume("memory://runs/run").patterns == result.patterns
    assert memory.exists("/runs/run/report.html")
    done = CliRunner().invoke(app, ["resume", "memory://runs/run"])
    assert (done.exit_code, "this run is finished, its results are in memory://runs/run/results" in done.stderr) == (
        0,
        True,
    )


def test_explain_says_where_a_run_would_write(folder: Path) -> None:
    path = folder / "run.toml"
    path.write_text(KINDS["listing"].config.replace('"graph.txt"', f'"{folder / "graph.txt"}"'))
    done = CliRunner().invoke(app, ["explain", str(path), "--quiet", "--set", "run.directory=s3://bucket/runs"])
    assert done.exit_code == 0, done.stderr
    assert "of Parquet, to s3://bucket/runs" in done.stdout


def break_off(monkeypatch: pytest.MonkeyPatch, commits: int) -> None:
    """Lose the connection for good after so many commits."""
    monkeypatch.setattr(mirrors, "_PAUSES", ())
    for name, value in CONSTANTS.items():
        monkeypatch.setattr(f"longwall.{name.removeprefix('longwall.').replace(':', '.')}", value)
    create, lock, left = RemoteFolder._create, threading.Lock(), [commits]

    def lossy(self: RemoteFolder, path: str, content: bytes) -> bool:
        with lock:
            left[0] -= 1
            if left[0] < 0:
                raise ConnectionResetError("the line is dead")
        return create(self, path, content)

    monkeypatch.setattr(RemoteFolder, "_create", lossy)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("kind", ["count by search", "listing", "listing by levels"])
def test_a_lost_connection_ends_the_run_and_it_is_resumed(
    folder: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        break_off(patch, 5)
        with pytest.raises(RunError, match=r"the line is dead.*longwall resume file://") as caught:
            longwall.run(config(folder, kind, f"file://{folder}/urls"))
    assert len(str(caught.value).splitlines()) == 1
    assert status(folder / "urls" / "run") == "running"  # no more could be written
    assert left_in(folder / "spill") == []
    longwall.resume(f"file://{folder}/urls/run", overrides=[f"memory.spill={folder / 'elsewhere'}"])
    check(folder, kind)
    assert left_in(folder / "elsewhere") == []


def test_a_lost_file_is_noticed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        break_off(patch, 6)
        with pytest.raises(RunError):
            longwall.run(config(folder, "listing", f"file://{folder}/urls"))
    commits = "".join(file.read_text() for file in (folder / "urls/run/checkpoint/commits").iterdir())
    results = (folder / "urls/run/results.partial").glob("*.parquet")
    lost = next(file for file in results if file.name in commits)
    lost.write_bytes(lost.read_bytes()[:-1])
    with pytest.raises(FinalError, match=rf"{lost.name}: the run had finished this file"):
        longwall.resume(f"file://{folder}/urls/run")


def test_a_process_that_lost_its_run_records_no_more(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that was thought to be dead ends with a message, and leaves the other one's files alone."""
    kind, url = "listing", f"file://{folder}/urls"
    taken: list[Any] = []
    restore = CommitLog.restore

    def taken_over(self: CommitLog, disk: Any) -> None:
        restore(self, disk)
        if not taken:
            taken.append(None)
            taken[0] = longwall.resume(f"{url}/run")

    monkeypatch.setattr(CommitLog, "restore", taken_over)
    with pytest.raises(FinalError, match="another process has resumed this run"):
        longwall.run(config(folder, kind, url))
    run = folder / "urls" / "run"
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["status"] == "done"
    assert {file.name for file in (run / "results").iterdir()} == manifest["results"].keys()
    assert answer(run) == local(folder, kind)
    assert taken[0].table().num_rows == taken[0].count


def test_a_run_in_a_folder_uses_no_url(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: RemoteFolder, url: str) -> None:
        raise AssertionError(url)

    monkeypatch.setattr(RemoteFolder, "__init__", refuse)
    assert longwall.run(config(folder, "listing by levels", folder / "runs")).table().num_rows
