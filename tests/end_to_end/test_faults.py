"""What may go wrong around a run: an error message, no wrong result, and a run that can be resumed afterwards."""

from __future__ import annotations

import io
import json
import random
import re
import shutil
import struct
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from breakable import EDGES, KINDS, Workshop, answer
from conftest import set_free_writers
from kill import Fault, Outcome, check_whole, left_in, status
from run_configs import write_edges

import longwall
from longwall.stages import source
from longwall.storage.errors import InputError, RunError
from longwall.storage.memory.spill_folder import SpillFolder
from longwall.storage.tables import chunk_stack

DRAW = random.Random(1)
BROKEN_KINDS = (
    "count by search",
    "triangles per vertex",
    "frequent patterns",
    "listing",
    "listing by levels",
    "sorted listing",
    "listing of maximal cliques",
    "algorithm",
)


@pytest.fixture(scope="module")
def workshop(launch, tmp_path_factory) -> Workshop:
    return Workshop(launch, tmp_path_factory.mktemp("workshop"))


def error_line(outcome: Outcome, *codes: int) -> str:
    """Check that a command failed with one of the codes and one line. Return the line."""
    assert outcome.code in codes, outcome
    assert outcome.err.startswith("error: "), outcome.err
    assert outcome.err.count("\n") == 1, outcome.err
    return outcome.err


def mended(workshop: Workshop, kind: str, folder: Path) -> None:
    """Resume the run to the right results."""
    outcome = workshop.go_on(kind, folder)
    assert outcome.code == 0, outcome.err
    workshop.compare(kind, folder / "runs" / "run")


@pytest.mark.slow
@pytest.mark.parametrize("kind", BROKEN_KINDS)
def test_a_disk_that_is_full_at_any_moment(workshop, kind):
    draw = random.Random(kind)
    short, long = (workshop.undisturbed(kind, often=often).events for often in (False, True))
    moments = [(event, False) for event in (*range(1, 14), *range(short - 6, short + 1))]
    moments += [(draw.randint(14, long), True) for _ in range(6)]
    for event, often in moments:
        folder = workshop.folder(kind)
        outcome = workshop.go_on(kind, folder, fault=Fault("disk full", event=event), often=often)
        run = folder / "runs" / "run"
        if outcome.code == 0:  # what is left to do frees the disk, or does not matter
            workshop.compare(kind, run)
            continue
        said = error_line(outcome, 1)
        assert "No space left on device" in said or "disk is full" in said
        assert left_in(folder / "spill") == []
        assert status(run) != "done"
        assert ("longwall resume" in said) == run.exists(), "a run that had begun stays"
        if run.exists():
            assert f"longwall resume {run}" in said.replace("longwall resume runs", f"longwall resume {folder}/runs")
        mended(workshop, kind, folder)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("kind", BROKEN_KINDS)
@pytest.mark.parametrize("largest", [1000, 0, 300, 3000, 10_000])
def test_a_disk_that_takes_only_so_many_bytes(workshop, kind, largest):
    """Here the system itself refuses, in the middle of a write."""
    folder = workshop.folder(kind)
    for bytes_ in (largest, 2 * largest):
        outcome = workshop.go_on(kind, folder, fault=Fault("disk full", largest_file=bytes_))
        if outcome.code == 0:
            workshop.compare(kind, folder / "runs" / "run")
            return
        error_line(outcome, 1)
    mended(workshop, kind, folder)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("kind", BROKEN_KINDS)
def test_an_interrupted_run_leaves_no_spill_files_and_is_resumed(workshop, kind):
    draw, whole = random.Random(kind), workshop.undisturbed(kind)
    struck = 0
    for _ in range(12):
        folder = workshop.folder(kind)
        outcome = workshop.go_on(kind, folder, fault=Fault("interrupt", event=draw.randint(15, whole.events)))
        assert left_in(folder / "spill") == []
        if outcome.code == 0:
            workshop.compare(kind, folder / "runs" / "run")
            continue
        assert outcome.code == 130, outcome
        assert status(folder / "runs" / "run") == "interrupted"
        assert "longwall resume" in outcome.err
        struck += 1
        mended(workshop, kind, folder)
    assert struck > 3


FULL_DISK = """
mount -t tmpfs -o size={size}k tmpfs small || exit 70
{python} -m longwall run run.toml --quiet --set run.directory=small > small.txt
echo $?
cat small/run/manifest.json
mount -o remount,size=100m small
{python} -m longwall resume small/run --quiet > small.txt
echo $?
"""


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "size"), [("count by search", size) for size in (12, 16, 20, 24)] + [("listing", 28)])
def test_the_manifest_says_that_the_disk_is_full_and_which_file_it_kept_from(workshop, kind, size):
    """On a file system of its own, which only these processes see."""
    folder = workshop.folder(kind)
    (folder / "small").mkdir()
    unshare = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    try:
        subprocess.run([*unshare, "mount -t tmpfs x small"], cwd=folder, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no file systems can be mounted here")
    script = FULL_DISK.format(size=size, python=sys.executable)
    done = subprocess.run([*unshare, script], cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    code, *lines, resumed = done.stdout.splitlines()
    assert code == "1", done.stderr
    if not lines:  # it had no room to begin in
        assert "No space left on device" in done.stderr
        return
    assert resumed == "0", done.stderr
    manifest = json.loads("\n".join(lines))
    assert manifest["status"] == "failed"
    assert re.search(r" at \S+/small/run/\S+: No space left on device", manifest["reason"]), manifest["reason"]
    assert manifest["reason"] in done.stderr


# Spilling


class Spiller:
    """A listing with so little memory that chunks are spilled."""

    def __init__(self, folder: Path):
        self.folder, self.spill = folder, folder / "spill"
        write_edges(folder, EDGES)
        host = 1 << 16
        while True:
            try:
                self._host = host
                self.whole = self.run("whole")
                break
            except (InputError, RunError):
                host += 1 << 13
        memory = json.loads((self.whole.path / "manifest.json").read_text())["memory"]
        assert memory["disk"]["peak"] > 0, "this budget is too large to test spilling"

    def run(self, name: str, **memory: object) -> longwall.Result:
        return longwall.run(
            {
                "graph": {"path": self.folder / "graph.txt"},
                "workload": {"kind": "match", "pattern": "0-1,0-2,0-3", "output": "embeddings"},
                "memory": {"host": self._host, "spill": self.spill, **memory},
                "engine": {"kind": "cpu", "threads": 2},
                "run": {"directory": self.folder / "runs", "name": name},
            }
        )

    def failed(self, name: str, **memory: object) -> str:
        """Check that the run fails. Return the message."""
        with pytest.raises(RunError) as failure:
            self.run(name, **memory)
        assert "\n" not in str(failure.value)
        assert status(self.folder / "runs" / name) == "failed"
        return str(failure.value)

    def mended(self, name: str, *overrides: str) -> None:
        result = longwall.resume(self.folder / "runs" / name, overrides=overrides)
        assert answer(result.path) == answer(self.whole.path)
        check_whole(result.path, self.spill)


@pytest.fixture(scope="module")
def spiller(tmp_path_factory) -> Iterator[Spiller]:
    with pytest.MonkeyPatch.context() as patch:
        set_free_writers(patch)
        yield Spiller(tmp_path_factory.mktemp("spiller"))


@pytest.mark.slow
def test_a_spill_folder_that_cannot_be_made(spiller, monkeypatch):
    blocked = spiller.folder / "blocked"
    blocked.write_text("a file")
    with pytest.raises(InputError, match=r"blocked: nothing can be spilled there .*choose another memory\.spill"):
        spiller.run("unwritable", spill=blocked)
    assert not (spiller.folder / "runs" / "unwritable").exists()
    with monkeypatch.context() as patched:
        patched.setattr(SpillFolder, "check", lambda self: None)  # as if the file came later
        said = spiller.failed("unwritable", spill=blocked)
    assert str(blocked) in said
    assert "memory.spill" in said
    spiller.mended("unwritable", f"memory.spill={spiller.spill}")
    assert blocked.read_text() == "a file"


def truncate(content: bytes) -> bytes:
    return content[: len(content) // 2]


def flip(content: bytes) -> bytes:
    """Change one bit."""
    return flip_between(content, 0, len(content))


def flip_between(content: bytes, begin: int, end: int) -> bytes:
    """Change one bit of a range of bytes."""
    at = DRAW.randrange(8 * begin, 8 * end)
    return content[: at // 8] + bytes([content[at // 8] ^ 1 << at % 8]) + content[at // 8 + 1 :]


def flip_values(chunk: bytes) -> bytes:
    """Change one bit of a chunk's largest array; the dates in the headers of a zip file mean nothing."""
    with zipfile.ZipFile(io.BytesIO(chunk)) as archive:
        array = max(archive.infolist(), key=lambda member: member.file_size)
    lengths = struct.unpack_from("<HH", chunk, array.header_offset + 26)  # of the member's name and of its extras
    begin = array.header_offset + 30 + sum(lengths)
    return flip_between(chunk, begin, begin + array.compress_size)


@pytest.mark.slow
@pytest.mark.parametrize("damage", [truncate, flip_values, None])
def test_a_spilled_chunk_that_is_damaged(spiller, monkeypatch, damage):
    name = f"chunk-{getattr(damage, '__name__', 'gone')}"
    read = chunk_stack.read_chunk

    def damaged(path: Path, *arguments, **options):
        if damage is None:
            path.unlink()
        else:
            path.write_bytes(damage(path.read_bytes()))
        return read(path, *arguments, **options)

    monkeypatch.setattr(chunk_stack, "read_chunk", damaged)
    said = spiller.failed(name)
    assert str(spiller.spill) in said
    assert left_in(spiller.spill) == []
    monkeypatch.undo()
    spiller.mended(name)


@pytest.mark.slow
@pytest.mark.parametrize("damage", [truncate, flip_values, None, "exchange"])
def test_a_chunk_of_a_finished_level_that_is_damaged(workshop, damage):
    kind, struck = "listing by levels", 0
    whole = workshop.undisturbed(kind)
    for share in (0.3, 0.5, 0.7, 0.8, 0.9):
        folder = workshop.folder(kind)
        assert workshop.go_on(kind, folder, fault=Fault("kill", event=int(share * whole.events))).killed
        chunks = sorted((folder / "runs" / "run" / "checkpoint").glob("level-*/0*"))
        if not chunks:
            continue
        kept = {chunk: chunk.read_bytes() for chunk in chunks if chunk.is_file()}
        others = dict(zip(kept, [*list(kept.values())[1:], next(iter(kept.values()))], strict=True))
        for chunk, content in kept.items():
            if damage is None:
                chunk.unlink()
            elif damage == "exchange":
                chunk.write_bytes(others[chunk])
            else:
                chunk.write_bytes(damage(content))
        outcome = workshop.go_on(kind, folder)
        if outcome.code == 0:  # no record named them
            workshop.compare(kind, folder / "runs" / "run")
            continue
        struck += 1
        assert "level-" in error_line(outcome, 1)
        for chunk, content in kept.items():
            chunk.parent.mkdir(parents=True, exist_ok=True)
            chunk.write_bytes(content)
        mended(workshop, kind, folder)
    assert struck


# The graph store


@pytest.fixture
def stored(workshop) -> Path:
    """A working directory whose run reads a graph store."""
    folder = workshop.folder("listing")
    text = folder / "graph.txt"
    outcome = workshop.launch("ingest", text, folder / "graph.zarr", "--quiet", folder=folder)
    assert outcome.code == 0, outcome.err
    text.unlink()
    config = KINDS["listing"].config.replace("graph.txt", str(folder / "graph.zarr"))
    (folder / "run.toml").write_text(config)
    return folder


def damage_store(store: Path, how) -> None:
    chunk = max((path for path in store.rglob("c/*") if path.is_file()), key=lambda path: path.stat().st_size)
    chunk.write_bytes(how(chunk.read_bytes()))


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("how", [flip, truncate, "deleted", "chunk deleted"])
def test_a_store_that_is_damaged_while_a_run_is_down(workshop, stored, how):
    store, kept = stored / "graph.zarr", stored / "kept.zarr"
    shutil.copytree(store, kept)
    events = workshop.undisturbed("listing").events
    assert workshop.go_on("listing", stored, fault=Fault("kill", event=events // 2)).killed
    if how == "deleted":
        shutil.rmtree(store)
    elif how == "chunk deleted":
        next(path for path in (store / "indices").rglob("c/*") if path.is_file()).unlink()
    else:
        damage_store(store, how)
    assert "graph.zarr" in error_line(workshop.go_on("listing", stored), 2)
    assert status(stored / "runs" / "run") != "done"
    shutil.rmtree(store, ignore_errors=True)
    kept.rename(store)
    mended(workshop, "listing", stored)


def test_a_store_that_is_damaged_before_the_run(workshop, stored):
    damage_store(stored / "graph.zarr", flip)
    assert "graph.zarr" in error_line(workshop.go_on("listing", stored), 2)
    assert not (stored / "runs" / "run" / "results").exists()


def test_a_store_that_is_deleted_during_the_run(lab, tmp_path, monkeypatch):
    """The right rows or an error message, whenever it happens."""
    from longwall.storage.graph.store_writer import write_graph

    graph = lab.graph(EDGES)
    config = {
        "graph": {"path": tmp_path / "graph.zarr"},
        "workload": {"kind": "match", "pattern": "diamond", "output": "embeddings"},
        "engine": {"kind": "cpu", "threads": 2},
        "memory": {"spill": tmp_path / "spill"},
        "run": {"directory": tmp_path / "runs", "name": "whole"},
    }
    write_graph(graph, tmp_path / "graph.zarr")
    whole = longwall.run(config)
    make = source.edge_source

    def deleting(*arguments, **options):
        shutil.rmtree(tmp_path / "graph.zarr", ignore_errors=True)
        return make(*arguments, **options)

    monkeypatch.setattr(source, "edge_source", deleting)
    try:
        result = longwall.run(config, overrides=["run.name=deleted"])
    except RunError:
        write_graph(graph, tmp_path / "graph.zarr")
        result = longwall.resume(tmp_path / "runs" / "deleted")
    assert answer(result.path) == answer(whole.path)


def test_another_store_in_its_place_is_refused(workshop, stored):
    store = stored / "graph.zarr"
    assert workshop.go_on("listing", stored, fault=Fault("kill", event=60)).killed
    store.rename(stored / "kept.zarr")
    (stored / "other.txt").write_text("".join(f"{u} {v}\n" for u, v in EDGES[1:]))
    outcome = workshop.launch("ingest", stored / "other.txt", store, "--quiet", folder=stored)
    assert outcome.code == 0, outcome.err
    assert "graph" in error_line(workshop.go_on("listing", stored), 2)
    shutil.rmtree(store)
    (stored / "kept.zarr").rename(store)
    mended(workshop, "listing", stored)


# As `set_free_writers` in a process of its own.
FREE_WRITERS = """
from longwall.pipeline.cli import main
from longwall.stages import export
export._PLAIN_BYTES, export._METADATA_BYTES = 0, 1
main()
"""


@pytest.mark.slow
def test_runs_that_share_a_store_and_a_spill_folder(workshop, stored, spiller):
    """At the same time, one of them spilling; both are right and nothing is left."""
    config = f"""
[graph]
path = "{stored / "graph.zarr"}"
[workload]
kind = "match"
pattern = "0-1,0-2,0-3"
output = "embeddings"
[memory]
host = {spiller._host}
spill = "shared"
[engine]
kind = "cpu"
threads = 2
"""
    processes = []
    for number in range(3):
        (stored / f"run-{number}.toml").write_text(config)
        command = [sys.executable, "-c", FREE_WRITERS, "run", f"run-{number}.toml", "--quiet"]
        processes.append(subprocess.Popen(command, cwd=stored, stderr=subprocess.PIPE, text=True))
    said = [process.communicate()[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * 3, said
    expected = answer(spiller.whole.path)
    for number in range(3):
        run = stored / "runs" / f"run-{number}"
        check_whole(run, stored / "shared")
        assert json.loads((run / "manifest.json").read_text())["memory"]["disk"]["peak"] > 0
        assert answer(run) == expected
