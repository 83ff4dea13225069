"""Every write, rename and sync may fail, or be the last one: what is there afterwards is right, or is refused.

Ingest, run, resume and a run that replaces another one. By default a sample of the moments of each is tried, and every
one of them where long tests are asked for.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from breakable import SHARED, answer
from crash import EDGES, FEW_TASKS, WORKLOADS, moments
from kill import Fault, Launcher, Outcome, check_whole, status
from run_configs import write_edges

from longwall.pipeline.inputs import open_graph

ACTS = ("kill", "power cut", "error", "disk full")
CODES = {0, 1, 2}  # how a command may end that no signal ended


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Makes fresh working folders with the config of a run and its graph."""
    root, numbers = tmp_path_factory.mktemp("crash"), itertools.count()

    def make(kind: str) -> Path:
        folder = root / str(next(numbers))
        folder.mkdir()
        write_edges(folder, EDGES)
        (folder / "run.toml").write_text(f'[graph]\npath = "graph.txt"\n[workload]\n{WORKLOADS[kind]}\n{SHARED}')
        return folder

    return make


def command(launch: Launcher, folder: Path, *words: str | Path, fault: Fault | None = None) -> Outcome:
    outcome = launch(*words, "--quiet", folder=folder, fault=fault, constants=FEW_TASKS)
    assert outcome.killed or outcome.code in CODES, outcome.err
    assert (outcome.code in (0, 1, 2)) != outcome.killed
    return outcome


def start(launch: Launcher, folder: Path, *more: str, fault: Fault | None = None) -> Outcome:
    return command(launch, folder, "run", "run.toml", *more, fault=fault)


def go_on(launch: Launcher, folder: Path, fault: Fault | None = None) -> None:
    """Resume the run of a folder until it is done, or begin anew where it had not begun."""
    run = folder / "runs" / "run"
    if fault is not None:
        command(launch, folder, "resume", run, fault=fault)
    if status(run) in ("running", "failed", "interrupted"):
        outcome = command(launch, folder, "resume", run)
        assert outcome.code == 0, outcome.err
    elif status(run) is None:
        outcome = command(launch, folder, "resume", run)
        assert outcome.code == 2, outcome.err
        outcome = start(launch, folder, "--overwrite")
        assert outcome.code == 0, outcome.err
    check_whole(run, folder / "spill")


def whole(launch: Launcher, folders: Callable[[str], Path], kind: str) -> tuple[dict[str, Any], int]:
    """Return the results of an undisturbed run, and its events."""
    warm = launch("run", "run.toml", "--quiet", folder=folders(kind), fork=False)
    assert warm.code == 0, warm.err
    folder = folders(kind)
    outcome = start(launch, folder)
    assert outcome.code == 0, outcome.err
    return answer(folder / "runs" / "run"), outcome.events


def check_run(launch: Launcher, folders: Callable[[str], Path], kind: str, act: Any, every: bool) -> None:
    expected, events = whole(launch, folders, kind)
    for event in moments(events, act, kind, every):
        folder = folders(kind)
        outcome = start(launch, folder, fault=Fault(act, event=event))
        run = folder / "runs" / "run"
        if status(run) == "done":
            check_whole(run, Path("none"))
        else:
            assert outcome.code != 0
            assert status(run) is None or not (run / "results").exists() or act in ("kill", "power cut")
        if outcome.code == 2:  # it could not be begun, and left nothing
            assert not run.exists() or act == "error", outcome.err
        if not run.exists():
            assert start(launch, folder).code == 0
        go_on(launch, folder)
        assert answer(run) == expected, f"{act} at {event}"
        shutil.rmtree(folder)


def check_resume(launch: Launcher, folders: Callable[[str], Path], kind: str, act: Any, every: bool) -> None:
    expected, events = whole(launch, folders, kind)
    begun = folders(kind)
    assert start(launch, begun, fault=Fault("kill", event=events * 2 // 3)).killed
    copy = begun.with_name(f"{begun.name}-copy")
    shutil.copytree(begun, copy)
    left = command(launch, copy, "resume", "runs/run").events
    assert left
    for event in moments(left, act, kind, every):
        shutil.rmtree(copy)
        shutil.copytree(begun, copy)
        go_on(launch, copy, Fault(act, event=event))
        assert answer(copy / "runs" / "run") == expected, f"{act} at {event}"


def check_overwrite(launch: Launcher, folders: Callable[[str], Path], kind: str, act: Any, every: bool) -> None:
    expected, _ = whole(launch, folders, kind)
    before = folders(kind)
    write_edges(before, EDGES[::2])
    assert start(launch, before).code == 0
    old = answer(before / "runs" / "run")
    assert old != expected
    shutil.copy(folders(kind) / "graph.txt", before)
    copy = before.with_name(f"{before.name}-copy")
    shutil.copytree(before, copy)
    events = start(launch, copy, "--overwrite").events
    for event in moments(events, act, kind, every):
        shutil.rmtree(copy)
        shutil.copytree(before, copy)
        start(launch, copy, "--overwrite", fault=Fault(act, event=event))
        runs = copy / "runs"
        done = [path for path in sorted(runs.iterdir()) if status(path) == "done" and (path / "results").is_dir()]
        assert done, f"{act} at {event}: neither the old nor the new run is whole"
        for path in done:
            assert answer(path) in (old, expected), f"{act} at {event}"
        if status(runs / "run") is None:
            assert [path.name for path in done] == ["run+new"]
        if (runs / "run+new").exists():
            outcome = command(launch, copy, "resume", "runs/run+new")
            assert outcome.code == 0 or status(runs / "run+new") is None
        if answer(runs / "run") != expected:
            assert start(launch, copy, "--overwrite").code == 0
        assert answer(runs / "run") == expected, f"{act} at {event}"
        check_whole(runs / "run", copy / "spill")


def check_ingest(launch: Launcher, folders: Callable[[str], Path], kind: str, act: Any, every: bool) -> None:
    words = ("ingest", "graph.txt", "graph.zarr")
    first = folders(kind)
    assert launch(*words, "--quiet", folder=first, fork=False).code == 0
    expected = open_graph(first / "graph.zarr").content_hash
    folder = folders(kind)
    events = command(launch, folder, *words).events
    for event in moments(events, act, kind, every):
        folder = folders(kind)
        outcome = command(launch, folder, *words, fault=Fault(act, event=event))
        if (folder / "graph.zarr").exists():
            assert open_graph(folder / "graph.zarr").content_hash == expected
        else:
            assert outcome.code != 0
            again = command(launch, folder, *words)
            assert again.code == 0, again.err
            assert open_graph(folder / "graph.zarr").content_hash == expected
        shutil.rmtree(folder)


CHECKS = {
    "run": (check_run, list(WORKLOADS)),
    "resume": (check_resume, list(WORKLOADS)),
    "overwrite": (check_overwrite, ["count"]),
    "ingest": (check_ingest, ["count"]),
}
CASES = [(name, kind, act) for name, (_, kinds) in CHECKS.items() for kind in kinds for act in ACTS]
SOME = [
    pytest.param(*case, marks=() if case == ("run", "count", "kill") else pytest.mark.slow)
    for case in CASES
    if case[1] in ("count", "listing")
]


@pytest.mark.parametrize(("name", "kind", "act"), SOME)
def test_a_fault_at_a_moment_leaves_what_is_right_or_refused(
    launch: Launcher, folders: Callable[[str], Path], name: str, kind: str, act: str
) -> None:
    CHECKS[name][0](launch, folders, kind, act, False)


@pytest.mark.long
@pytest.mark.parametrize(("name", "kind", "act"), CASES)
def test_a_fault_at_each_moment_leaves_what_is_right_or_refused(
    launch: Launcher, folders: Callable[[str], Path], name: str, kind: str, act: str
) -> None:
    CHECKS[name][0](launch, folders, kind, act, True)
