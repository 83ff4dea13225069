"""``longwall rm`` and ``longwall gc``: they free space, and remove nothing that anybody has a use for."""

from __future__ import annotations

import errno
import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from cases import each_case
from typer.testing import CliRunner

import longwall
from longwall.kernels.jit import kernel_cache
from longwall.kernels.jit.private_folder import CacheFolder
from longwall.pipeline.cli import app
from longwall.pipeline.run_store.run_place import LocalPlace
from longwall.storage.memory.spill_folder import SpillFolder

GRAPH = {"generator": {"kind": "erdos-renyi", "vertices": 40, "edges": 200, "seed": 1}}


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working folder with a finished run; compiled kernels are in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernels").mkdir()
    descriptor = os.open(tmp_path / "kernels", os.O_RDONLY)
    make_run("one")
    monkeypatch.setattr(kernel_cache, "_folder", lambda: CacheFolder(tmp_path / "kernels", descriptor))
    yield tmp_path
    os.close(descriptor)


def make_run(name: str) -> Path:
    """Make a finished run, and return its folder."""
    config: dict[str, Any] = {"graph": GRAPH, "workload": {"kind": "triangles"}, "engine": {"kind": "cpu"}}
    return Path(longwall.run(config | {"run": {"name": name}}).path)


def end_early(run: Path, status: str) -> None:
    """Let the manifest of a run say that it ended early."""
    manifest = json.loads((run / "manifest.json").read_text())
    (run / "manifest.json").write_text(json.dumps(manifest | {"status": status}))
    (run / "results").rename(run / "results.partial")


def call(*words: object) -> tuple[int, Any, str]:
    """Return the exit code, the object that is printed, and what people read."""
    ended = CliRunner().invoke(app, [*map(str, words), "--json"])
    assert "Traceback" not in ended.output
    assert ended.exception is None or isinstance(ended.exception, SystemExit)
    return ended.exit_code, json.loads(ended.stdout), ended.stderr


def bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_rm_removes_runs_and_says_what_it_freed(work: Path) -> None:
    two, size = make_run("two"), bytes_in(work / "runs")
    code, found, _ = call("rm", "runs/one", two, "runs/one/", "--yes")
    assert code == 0
    assert [one["run"] for one in found["removed"]] == [str(work / "runs/one"), str(two)]
    assert found["bytes"] == sum(one["bytes"] for one in found["removed"]) == size
    assert list((work / "runs").iterdir()) == []


def test_rm_tells_people_what_it_freed(work: Path) -> None:
    ended = CliRunner().invoke(app, ["rm", "runs/one", str(make_run("two")), "-y"])
    first, second, total = ended.stdout.splitlines()
    assert first.startswith(f"removed {work}/runs/one (")
    assert second.startswith(f"removed {work}/runs/two (")
    assert total.startswith("freed ")


def test_rm_needs_yes_without_a_terminal(work: Path) -> None:
    code, found, people = call("rm", "runs/one")
    assert code == 2
    assert "1 run, " in found["error"]["message"]
    assert "add --yes" in people
    assert (work / "runs/one/manifest.json").exists()


def read_all(terminal: int) -> str:
    """Read a terminal that no process has open any more, and close it: one read may return a part."""
    parts: list[bytes] = []
    with suppress(OSError):
        while part := os.read(terminal, 1 << 16):
            parts.append(part)
    os.close(terminal)
    return b"".join(parts).decode()


@each_case(("answer", "stays"), [("y\n", False), ("n\n", True), ("\n", True), ("\x04", True)])
def test_rm_asks_at_a_terminal(answer: str, stays: bool) -> None:
    run = Path("runs") / ("kept" if stays else "asked")
    run = run if run.exists() else make_run(run.name)
    parent, child = pty.openpty()
    words = [sys.executable, "-m", "longwall", "rm", str(run)]
    process = subprocess.Popen(words, stdin=child, stdout=subprocess.PIPE, stderr=child, text=True)
    os.close(child)
    os.write(parent, answer.encode())
    said, _ = process.communicate(timeout=60)
    asked = read_all(parent)
    assert process.returncode == 0
    assert "remove 1 run, " in asked
    assert (asked.rstrip().endswith("nothing was removed"), said == "", run.exists()) == (stays, stays, stays)


@each_case("by", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_at_the_question_removes_nothing(work: Path, by: signal.Signals) -> None:
    parent, child = pty.openpty()
    words = [sys.executable, "-m", "longwall", "rm", "runs/one"]
    process = subprocess.Popen(words, stdin=child, stdout=subprocess.PIPE, stderr=child, text=True)
    os.close(child)
    asked = ""
    while "[y/N]" not in asked:
        asked += os.read(parent, 1 << 16).decode()
    process.send_signal(by)
    process.communicate(timeout=60)
    said = os.read(parent, 1 << 16).decode()
    os.close(parent)
    assert process.returncode == 128 + by
    assert said.strip() == "interrupted: nothing was removed"
    assert (work / "runs/one/manifest.json").exists()


@each_case(
    ("make", "said"),
    [
        (lambda path: None, "there is no run"),
        (lambda path: path.mkdir(), "there is no run"),
        (lambda path: path.write_text("mine"), "there is no run"),
        (lambda path: path.symlink_to("one"), "this is a link"),
        (lambda path: (path.mkdir(), (path / "config.toml").write_text("[graph]\n")), "there is no run"),
        (lambda path: (path.mkdir(), (path / "manifest.json").write_text('{"status": "done"}')), "is damaged, or not"),
    ],
)
def test_rm_refuses_what_is_no_run_and_removes_nothing(work: Path, tmp_path: Path, make: Any, said: str) -> None:
    other = work / "runs" / tmp_path.name
    make(other)
    before = sorted(work.rglob("*"))
    code, found, _ = call("rm", "runs/one", other, "--yes")
    assert code == 2
    assert said in found["error"]["message"]
    assert sorted(work.rglob("*")) == before


def test_rm_refuses_a_run_in_progress(work: Path) -> None:
    make_run("two")
    with closing(LocalPlace(str(work / "runs/two"))) as place:
        place.hold()
        code, found, _ = call("rm", "runs/one", "runs/two", "--yes")
    assert code == 2
    assert "another process is busy with this run" in found["error"]["message"]
    assert (work / "runs/one/manifest.json").exists()


def test_rm_names_the_run_that_a_disk_does_not_let_go(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system", "manifest.json")

    monkeypatch.setattr(LocalPlace, "remove", refuse)
    code, found, _ = call("rm", "runs/one", "--yes")
    assert code == 1
    message = f"the system refused to go on at {work}/runs/one: Read-only file system"
    assert found["error"]["message"] == message
    assert (work / "runs/one/manifest.json").exists()


def test_rm_refuses_a_foreign_file_among_the_results(work: Path) -> None:
    (work / "runs/one/results/mine.txt").write_text("mine")
    code, found, _ = call("rm", "runs/one", "--yes")
    assert code == 2
    assert "results/mine.txt: this is no file of the run" in found["error"]["message"]
    assert (work / "runs/one/manifest.json").exists()


def test_rm_keeps_a_foreign_file_beside_the_results(work: Path) -> None:
    (work / "runs/one/notes.txt").write_text("mine")
    code, found, _ = call("rm", "runs/one", "--yes")
    assert (code, found["removed"][0]["kept"]) == (0, ["notes.txt"])
    assert [path.name for path in (work / "runs/one").iterdir()] == ["notes.txt"]


def test_rm_can_be_repeated_after_it_was_killed(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever was removed until then: the config stays to the end, and says whose remains these are."""
    from longwall.pipeline.run_store import local_store

    removed, unlink = [], os.unlink

    def killed(name: str, **options: Any) -> None:
        if len(removed) == most:
            raise SystemExit("killed")
        removed.append(name)
        unlink(name, **options)

    monkeypatch.setattr(local_store.os, "unlink", killed)
    for most in range(1, 5):
        removed.clear()
        run = make_run("two")
        ended = CliRunner().invoke(app, ["rm", str(run), "--yes"])
        assert isinstance(ended.exception, SystemExit)
        assert run.exists()
        most = 1 << 20
        assert call("rm", run, "--yes")[0] == 0
        assert not run.exists()


def test_a_run_at_a_url_is_removed(work: Path) -> None:
    pytest.importorskip("fsspec")
    url = f"file://{work}/far"
    config = {"graph": GRAPH, "workload": {"kind": "triangles"}, "run": {"name": "one", "directory": url}}
    longwall.run(config)
    code, found, _ = call("rm", f"{url}/one", "--yes")
    assert (code, found["removed"][0]["run"]) == (0, f"{url}/one")
    assert not (work / "far/one").exists()


def left(*words: object) -> dict[str, str]:
    """Return the kind of each path that ``gc`` lists."""
    code, found, _ = call("gc", *words)
    assert code == 0
    return {one["path"]: one["kind"] for one in found["found"]}


def test_gc_finds_nothing_where_all_is_in_use(work: Path) -> None:
    assert left() == {}
    assert CliRunner().invoke(app, ["gc"]).stdout == "nothing is left over\n"
    assert left("nowhere", "--spill", "nowhere") == {}
    assert (work / "runs/one/manifest.json").exists()


def test_gc_lists_and_then_removes_what_nothing_uses(work: Path) -> None:
    spill = work / "spill" / "longwall-spill-0123456789ab"
    killed = work / "runs/killed"
    checkpoint = work / "runs/one/checkpoint/commits"
    for folder in (spill, killed, checkpoint):
        folder.mkdir(parents=True)
    (spill / "chunk").write_bytes(bytes(1000))
    (killed / "config.toml").write_text((work / "runs/one/config.toml").read_text())
    (checkpoint / "00000001.json").write_bytes(bytes(10))
    wanted = {
        str(spill): "spill folder",
        str(killed): "remains of a run",
        str(work / "runs/one"): "checkpoint of a finished run",
    }
    before = sorted(work.rglob("*"))
    assert left() == wanted
    assert sorted(work.rglob("*")) == before, "a dry run removes nothing"
    text = CliRunner().invoke(app, ["gc"]).stdout
    assert "1000 B" in text
    assert text.splitlines()[-1].endswith("add --yes to remove it")
    assert left("--yes") == wanted
    assert not spill.exists()
    assert not killed.exists()
    assert not checkpoint.exists()
    assert longwall.resume("runs/one").count is not None
    assert left() == {}


def test_gc_removes_no_spill_folder_that_a_process_holds(work: Path) -> None:
    with SpillFolder(work / "spill") as mine:
        (mine.path / "chunk").write_bytes(bytes(1000))
        assert left("--yes") == {}
        assert (mine.path / "chunk").exists()


def test_gc_looks_at_the_spill_folders_that_runs_name(work: Path, tmp_path: Path) -> None:
    config: dict[str, Any] = {"graph": GRAPH, "workload": {"kind": "triangles"}, "memory": {"spill": "elsewhere"}}
    longwall.run(config | {"run": {"name": "two"}})
    other = tmp_path / "elsewhere" / "longwall-spill-0123456789ab"
    other.mkdir(parents=True)
    assert left() == {str(other): "spill folder"}


@each_case("status", ["failed", "interrupted", "running"])
def test_gc_keeps_runs_that_can_be_resumed_unless_told_otherwise(work: Path, status: str) -> None:
    run = make_run(status)
    end_early(run, status)
    assert left("--yes") == {}
    assert longwall.resume(run).count is not None
    end_early(run, status)
    with closing(LocalPlace(str(run))) as place:
        place.hold()
        assert left("--unfinished", "--yes") == {}, "a process has it"
    assert left("--unfinished") == {str(run): "unfinished run"}
    assert left("--unfinished", "--yes") == {str(run): "unfinished run"}
    assert not run.exists()


def test_gc_removes_kernels_of_other_sources_only(work: Path) -> None:
    sources = Path(kernel_cache.__file__).parents[1] / "cpu" / "sorting"
    used = work / "kernels" / f"sorting_{kernel_cache._stamp(sources)}"
    old, other = work / "kernels" / "sorting_0123456789abcdef", work / "kernels" / "mine"
    for folder in (used, old, other):
        folder.mkdir()
        (folder / "code").write_bytes(bytes(100))
    assert left("--yes") == {str(old): "kernels"}
    assert (used.exists(), old.exists(), other.exists()) == (True, False, True)


def test_gc_leaves_foreign_folders_alone(work: Path) -> None:
    (work / "runs/mine").mkdir()
    (work / "runs/mine/results.txt").write_text("mine")
    (work / "runs/empty").mkdir()
    (work / "runs/link").symlink_to(work / "runs/one")
    (work / "spill/data").mkdir(parents=True)
    before = sorted(work.rglob("*"))
    assert left("--yes", "--unfinished") == {}
    assert sorted(work.rglob("*")) == before
