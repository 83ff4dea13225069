"""Commands on a terminal of their own: 60 and 100 columns, with and without colours, and readers that go away."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

LONGWALL = [sys.executable, "-m", "longwall"]
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
COLOURS = re.compile(r"\x1b\[[0-9;]*3[0-9][0-9;]*m")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two configs, and a run with many rows."""
    folder = tmp_path_factory.mktemp("terminal")
    (folder / "motifs.toml").write_text(
        '[graph]\ngenerator = { kind = "erdos-renyi", vertices = 300, edges = 3000 }\n'
        '[workload]\nkind = "motifs"\nk = 4\n[engine]\nkind = "cpu"\n'
    )
    (folder / "rows.toml").write_text(
        '[graph]\ngenerator = { kind = "erdos-renyi", vertices = 300, edges = 3000 }\n'
        '[workload]\nkind = "match"\npattern = "path-4"\noutput = "embeddings"\n'
        '[export]\nlimit = 30000\n[engine]\nkind = "cpu"\n'
    )
    subprocess.run([*LONGWALL, "run", "rows.toml", "-q"], cwd=folder, check=True, capture_output=True, timeout=120)
    return folder


def on_terminal(folder: Path, words: list[str], columns: int, **variables: str) -> tuple[int, str]:
    """Run a command on a terminal so wide; return its exit code and all that it wrote."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    plain = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "CI")}
    environment = plain | {"TERM": "xterm-256color"} | variables
    process = subprocess.Popen(
        [*LONGWALL, *words], cwd=folder, stdin=child, stdout=child, stderr=child, env=environment
    )
    os.close(child)
    try:
        text = b"".join(chunks(parent)).decode()
        return process.wait(timeout=60), text.replace("\r\n", "\n")
    finally:
        process.kill()
        os.close(parent)


def chunks(descriptor: int) -> Iterator[bytes]:
    """What is written to a terminal until nothing has it open."""
    while True:
        try:
            chunk = os.read(descriptor, 1 << 16)
        except OSError:  # Linux says so where the other end is closed
            return
        if not chunk:
            return
        yield chunk


def widest(text: str) -> int:
    lines = [line for part in text.splitlines() for line in ESCAPES.sub("", part).split("\r")]
    return max(len(line) for line in lines if not line.startswith(("seconds", "results")))


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(("columns", "colour"), [(60, False), (60, True), (100, False)])
def test_a_run_shows_progress_and_an_aligned_table(folder: Path, columns: int, colour: bool) -> None:
    variables = {} if colour else {"NO_COLOR": "1"}
    words = ["run", "motifs.toml", "--overwrite", "--set", "engine.threads=1"]
    code, text = on_terminal(folder, words, columns, **variables)
    assert code == 0, text
    assert widest(text) <= columns
    assert bool(COLOURS.search(text)) == colour
    shown = ESCAPES.sub("", text).splitlines()
    (head,) = [at for at, line in enumerate(shown) if re.fullmatch(r" *count  pattern", line)]
    rows = shown[head + 1 : head + 7]
    counts = [row[: shown[head].index("count") + len("count")] for row in rows]
    assert len(rows) == 6
    assert all(re.fullmatch(r" *\d{1,3}(,\d{3})*", count) for count in counts), "ends align, thousands are separated"
    assert any("," in count for count in counts)
    patterns = [row[len(count) :] for row, count in zip(rows, counts, strict=True)]
    assert all(re.fullmatch(r"  [a-z0-4-]+ \(\d-\d.*", pattern) for pattern in patterns)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(
    "words",
    [
        ["show", "runs/rows", "embeddings"],
        ["runs"],
        ["patterns", "--draw"],
        ["report", "runs/rows"],
        ["doctor"],
    ],
)
@pytest.mark.parametrize("columns", [60, pytest.param(100, marks=pytest.mark.slow)])
def test_commands_work_without_colours(folder: Path, words: list[str], columns: int) -> None:
    code, text = on_terminal(folder, words, columns, NO_COLOR="1")
    assert code == 0, text
    assert "Traceback" not in text
    assert not ESCAPES.search(text)
    if words[0] in ("show", "runs"):
        assert widest(text) <= columns


@pytest.mark.slow
def test_a_terminal_that_only_prints_gets_no_escapes(folder: Path) -> None:
    words = ["run", "motifs.toml", "--overwrite", "--set", "run.name=dumb"]
    code, text = on_terminal(folder, words, 60, TERM="dumb")
    assert code == 0, text
    assert "\x1b" not in text
    assert "generating the erdos-renyi graph\n" in text


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(
    "words",
    [
        ["show", "runs/rows", "embeddings", "--csv"],
        ["show", "runs/rows", "embeddings", "--limit", "5000"],
        ["run", "motifs.toml", "--overwrite", "-q", "--set", "run.name=unread"],
        ["runs"],
        ["report", "runs/rows"],
        ["patterns", "--draw"],
        ["doctor"],
    ],
)
def test_a_reader_that_goes_away_ends_a_command_quietly(folder: Path, words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as pipe:
        done = subprocess.run(
            [*LONGWALL, *words], cwd=folder, stdout=pipe, stderr=subprocess.PIPE, text=True, timeout=120, check=False
        )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    expected = r"(error: standard output cannot be written \(Broken pipe\); the run is done, .*\n)?"
    assert re.fullmatch(expected, done.stderr), done.stderr


@pytest.mark.slow
def test_logs_go_to_standard_error_from_a_level_up(folder: Path) -> None:
    def log_of(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*LONGWALL, *words], cwd=folder, capture_output=True, text=True, timeout=120, check=False)

    run = ["run", "motifs.toml", "--overwrite", "-q", "--json", "--set", "run.name=logged"]
    done = log_of("--log-level", "debug", *run)
    assert done.returncode == 0
    assert re.search(r"INFO longwall\.run: running motifs in .*logged", done.stderr)
    assert "DEBUG longwall.run: plan: " in done.stderr
    assert "DEBUG longwall.run: budget of host: " in done.stderr
    assert len(done.stdout.splitlines()) == 1
    assert log_of("--log-level", "warning", "patterns", "house").stderr == ""
    wrong = log_of("--log-level", "loud", "patterns")
    assert (wrong.returncode, wrong.stderr) == (
        2,
        "error: --log-level: expected debug, info, warning or error, not loud\n",
    )
