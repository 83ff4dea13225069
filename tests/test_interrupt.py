"""Ctrl-C: the program ends at once with code 130, leaves nothing that looks whole, and says how to go on with it."""

import json
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

CONFIG = """
[graph]
generator = {{ kind = "erdos-renyi", vertices = {vertices}, edges = {edges}, seed = 1 }}
[workload]
{workload}
[engine]
kind = "cpu"
[run]
directory = "runs"
name = "long"
"""
# Each is minutes of work on any machine.
LONG = {
    "count by search": (3000, 400_000, 'kind = "match"\npattern = "cycle-6"\ninduced = true'),
    "count by homomorphisms": (10_000, 2_000_000, 'kind = "match"\npattern = "house"'),
    "cliques": (1000, 300_000, 'kind = "cliques"\nk = 9'),
    "listing": (3000, 400_000, 'kind = "match"\npattern = "cycle-5"\noutput = "embeddings"'),
}


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "longwall", *words]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def interrupt(process: subprocess.Popen[str], ended: bool = False) -> str:
    """Send SIGINT, see the process end soon with code 130; gives what it said. It may have `ended` already."""
    if process.poll() is not None and not ended:
        pytest.fail(f"ended before it was interrupted: {process.communicate()}")
    process.send_signal(signal.SIGINT)
    try:  # a second or two, unless other work takes the cores
        _, said = process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        pytest.fail("did not stop within half a minute")
    assert process.returncode == 130, said
    assert "Traceback" not in said
    return said


def wait_for(condition, process: subprocess.Popen[str], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        if process.poll() is not None or time.monotonic() > end:
            process.kill()
            pytest.fail(f"never got to work: {process.communicate()}")
        time.sleep(0.05)


def status(folder: Path) -> dict:
    path = folder / "manifest.json"
    return json.loads(path.read_text()) if path.exists() else {}


def begin_run(folder: Path, name: str) -> tuple[subprocess.Popen[str], Path]:
    """Start a long run; gives the process, in the midst of its work, and the run's folder."""
    vertices, edges, workload = LONG[name]
    text = CONFIG.format(vertices=vertices, edges=edges, workload=workload)
    (folder / "long.toml").write_text(text)
    process = start(folder, "run", "long.toml", "--quiet")
    run = folder / "runs" / "long"
    wait_for(lambda: "plan" in status(run), process)  # the plan is saved just before the work begins
    time.sleep(2)
    return process, run


@pytest.mark.parametrize("name", LONG)
def test_a_run_stops_and_leaves_nothing_that_looks_whole(tmp_path, name):
    process, run = begin_run(tmp_path, name)
    interrupt(process)
    assert not (run / "results").exists()
    assert not (tmp_path / "spill").exists()
    assert status(run)["status"] == "interrupted"


def test_the_message_says_how_to_go_on(tmp_path):
    process, run = begin_run(tmp_path, "cliques")
    said = interrupt(process)
    words = shlex.split(next(line for line in said.splitlines() if "longwall resume" in line).split("with: ")[-1])
    assert words == ["longwall", "resume", "runs/long"]
    # The command works as it stands: it gets as far as the first one did.
    again = start(tmp_path, *words[1:], "--quiet")
    wait_for(lambda: status(run)["status"] == "running" and "resumed" in status(run), again)
    interrupt(again)
    assert status(run)["status"] == "interrupted"


def test_an_impatient_user_is_told_the_same(tmp_path):
    process, run = begin_run(tmp_path, "listing")
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(0.15)
    assert "longwall resume runs/long" in interrupt(process, ended=True)
    assert status(run)["status"] == "interrupted"


def test_it_may_be_interrupted_as_it_starts(monkeypatch, capsys):
    from longwall.__main__ import main

    class Interrupting:
        def find_spec(self, name, *_):
            if name == "longwall.pipeline.cli":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "longwall.pipeline.cli", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 130
    assert capsys.readouterr().err == "\ninterrupted: nothing is left behind\n"


def test_generating_stops_and_leaves_nothing(tmp_path):
    process = start(tmp_path, "generate", "rmat", "big.zarr", "--scale", "22", "--edge-factor", "16")
    wait_for(lambda: any(tmp_path.iterdir()), process)  # the store is begun, or something is spilled
    time.sleep(1)
    interrupt(process)
    assert list(tmp_path.iterdir()) == []


def test_ingesting_stops_and_leaves_nothing(tmp_path):
    with (tmp_path / "edges.txt").open("w") as file:
        for block in range(60):
            file.writelines(f"{u * 7919 % 999983} {(u * 104729 + block) % 999979}\n" for u in range(100_000))
    process = start(tmp_path, "ingest", "edges.txt", "edges.zarr", "--quiet")
    wait_for(lambda: len(list(tmp_path.iterdir())) > 1, process)
    time.sleep(0.2)
    interrupt(process)
    assert [path.name for path in tmp_path.iterdir()] == ["edges.txt"]
