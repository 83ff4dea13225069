"""Every change of an object store may fail, or be the last one: what is there afterwards is right, or is refused."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from breakable import SHARED
from crash import EDGES, FEW_TASKS, WORKLOADS, moments
from run_configs import write_edges

import longwall
from longwall.storage.errors import InputError, RunError
from longwall.storage.remote import remote_folder as mirrors
from longwall.storage.remote.remote_folder import RemoteFolder

RUN, NEW = "memory://runs/run", "memory://runs/run+new"
ACTS = ["kill", "error", "lost"]


class Died(BaseException):
    """The process ended; nothing of it runs any more."""


class Store:
    """An object store in memory, and runs there that are struck."""

    def __init__(self, memory: Any, folder: Path, patch: pytest.MonkeyPatch):
        self._memory, self._folder, self._patch = memory, folder, patch
        for name, value in FEW_TASKS.items():
            patch.setattr(name.replace(":", "."), value)
        patch.setattr(mirrors, "_PAUSES", ())
        write_edges(folder, EDGES)

    def config(self, kind: str) -> dict[str, Any]:
        found = tomllib.loads(f"[workload]\n{WORKLOADS[kind]}\n{SHARED}")
        found["graph"] = {"path": str(self._folder / "graph.txt")}
        found["memory"]["spill"] = str(self._folder / "spill")
        found["run"]["directory"] = "memory://runs"
        found["engine"]["threads"] = 1
        return found

    def put(self, objects: dict[str, Any]) -> None:
        """Have these objects, and no others."""
        self._memory.store.clear()
        self._memory.pseudo_dirs[:] = [""]
        self._memory.store.update(objects)

    def objects(self) -> dict[str, Any]:
        return dict(self._memory.store)

    def attempt(self, act: str, event: int | None, work: Callable[[], Any]) -> tuple[Any, int]:
        """Do something that is struck at a change. Return its result, or None, and how many changes there were.

        ``kill``: nothing is changed from then on; ``error``: this change fails; ``lost``: all do from then on.
        """
        seen, dead = 0, False

        def watched(call: Callable[..., Any]) -> Callable[..., Any]:
            def change(*arguments: Any) -> Any:
                nonlocal seen, dead
                seen += 1
                dead |= act == "kill" and seen == event
                if dead:
                    raise Died
                if event is not None and (seen == event or (act == "lost" and seen > event)):
                    raise ConnectionResetError("the line is dead")
                return call(*arguments)

            return change

        with self._patch.context() as inner:
            for name in ("_put", "_create", "_copy", "_remove"):
                inner.setattr(RemoteFolder, name, watched(getattr(RemoteFolder, name)))
            try:
                return work(), seen
            except (Died, InputError, RunError):
                return None, seen


@pytest.fixture
def store(memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    return Store(memory, tmp_path, monkeypatch)


def status(url: str) -> str | None:
    mirror = RemoteFolder(url)
    if "manifest.json" not in mirror.sizes():
        return None
    found: str = json.loads(mirror.read("manifest.json"))["status"]
    return found


def rows(url: str) -> list[Any]:
    """The tables of a run that is done, read back."""
    assert status(url) == "done"
    files = [name.partition("/")[2].removesuffix(".parquet") for name in RemoteFolder(url).sizes("results")]
    result = longwall.Result(url, "", None, (), 0.0, "cpu")
    return [
        sorted(map(repr, result.table(name).to_pylist())) for name in sorted({file.partition("-")[0] for file in files})
    ]


def finish(store: Store, config: dict[str, Any], act: str, event: int) -> None:
    """Let whatever was begun become a run that is done, struck once more on the way."""
    for url in (NEW, RUN):
        if status(url) not in (None, "done") and "config.toml" in RemoteFolder(url).sizes():
            found, _ = store.attempt(act, event // 2, lambda: longwall.resume(url))  # noqa: B023 - it is called here
            if found is None and status(url) not in (None, "done"):
                longwall.resume(url)
    if status(RUN) != "done" and status(NEW) != "done":
        RemoteFolder(RUN).remove(list(RemoteFolder(RUN).sizes()))  # it had no config yet
        longwall.run(config)


def check(store: Store, kind: str, act: str, every: bool, new: bool) -> None:
    """Break a run at each of its moments; with `new`, one that replaces another."""
    config = store.config(kind)
    longwall.run(config)
    expected, before = rows(RUN), store.objects() if new else {}
    config["run"]["overwrite"] = new
    store.put(before)
    _, events = store.attempt(act, None, lambda: longwall.run(config))
    for event in moments(events, act, kind, every):
        store.put(before)
        found, _ = store.attempt(act, event, lambda: longwall.run(config))
        assert found is None or rows(RUN) == expected
        whole = [url for url in (RUN, NEW) if status(url) == "done"]
        assert whole or not new, f"{act} at {event}: neither the old nor the new run is whole"
        for url in whole:
            assert rows(url) == expected, f"{act} at {event}"
        finish(store, config, act, event)
        assert rows(NEW if status(RUN) is None else RUN) == expected, f"{act} at {event}"
        longwall.run(config | {"run": config["run"] | {"overwrite": True}})
        assert rows(RUN) == expected
        assert status(NEW) is None


@pytest.mark.slow
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("new", [False, True])
def test_a_fault_at_a_moment_leaves_what_is_right_or_refused(store: Store, act: str, new: bool) -> None:
    check(store, "listing", act, False, new)


@pytest.mark.long
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("new", [False, True])
@pytest.mark.parametrize("kind", WORKLOADS)
def test_a_fault_at_each_moment_leaves_what_is_right_or_refused(store: Store, kind: str, act: str, new: bool) -> None:
    check(store, kind, act, True, new)
