"""The command line: exit codes, one clear message for each mistake, nothing heavy before it is needed."""

import errno
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cases import each_case
from typer.testing import CliRunner

import longwall
from longwall.pipeline import run as run_module
from longwall.pipeline.cli import app
from longwall.pipeline.config import raw
from longwall.storage.graph.store_writer import StoreSink
from longwall.storage.memory.spill_folder import SpillFolder

HEAVY = {"cupy", "networkx", "numba", "numpy", "pandas", "pyarrow", "zarr"}
HELP = [["--help"], ["--version"], ["run", "--help"], ["explain", "-h"], ["generate", "--help"], ["rnu"]]


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def call(*words: str):
    return CliRunner().invoke(app, [str(word) for word in words])


def start(*words: str, **options) -> subprocess.Popen:
    command = [sys.executable, "-m", "longwall", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


@pytest.fixture
def config(tmp_path) -> Path:
    (tmp_path / "graph.txt").write_text("1 2\n2 3\n3 1\n3 4\n")
    path = tmp_path / "mine.toml"
    path.write_text('[graph]\npath = "graph.txt"\n[workload]\nkind = "triangles"\n[engine]\nkind = "cpu"\n')
    return path


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize(
    "words",
    [["--help"], ["--version"], ["run", "--help"], ["explain", "-h"], ["generate", "--help"], ["rnu"]],
)
def test_help_answers_without_the_heavy_libraries(words):
    code = (
        "import sys\nfrom longwall.pipeline.cli import main\n"
        f"sys.argv = ['longwall', *{words!r}]\n"
        "try: main()\nexcept SystemExit: pass\n"
        f"print(sorted({HEAVY!r} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "[]"


def test_importing_the_package_costs_nothing():
    code = f"import sys, longwall; dir(longwall); print(sorted({HEAVY!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


LEAVING = """
import atexit, sys, threading, time
from longwall import __main__ as program
program.main = lambda: work()
def last():
    print("after the threads", "x" * 100_000)
def wait():
    time.sleep(0.3)
    print("the thread")
def work():
    atexit.register(last)
    threading.Thread(target=wait).start()
    print("the work")
    if sys.argv[1:] == ["raise"]:
        raise ValueError("nothing catches this")
    sys.exit(*map(int, sys.argv[1:]))
program.script()
"""


@pytest.mark.parametrize(("words", "code"), [([], 0), (["3"], 3), (["raise"], 1)])
def test_the_program_leaves_with_all_written_and_its_code(words, code):
    done = subprocess.run([sys.executable, "-c", LEAVING, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, "nothing catches this" in done.stderr) == (code, code == 1)
    assert done.stdout.splitlines() == ["the work", "the thread", f"after the threads {'x' * 100_000}"]


def test_every_public_name_is_there():
    for name in longwall.__all__:
        assert getattr(longwall, name) is not None
    assert dir(longwall) == sorted(longwall.__all__)
    with pytest.raises(AttributeError, match="no attribute 'mine'"):
        longwall.mine  # noqa: B018


def test_version_and_help():
    assert call("--version").output == f"longwall {longwall.__version__}\n"
    for command in ("run", "explain", "ingest", "generate", "info", "patterns"):
        assert command in call("--help").output
        assert call(command, "--help").exit_code == 0
    assert "Usage" in call().output


def test_a_run_tells_people_count_time_engine_and_place(config):
    result = call("run", config)
    assert result.exit_code == 0
    lines = dict(line.split(maxsplit=1) for line in result.stdout.splitlines())
    assert lines["count"] == "1"
    assert lines["engine"] == "cpu"
    assert Path(lines["results"]) == Path("runs/mine/results")
    assert Path("runs/mine/results/counts.parquet").is_file()
    assert "reading graph.txt" in result.stderr


def test_json_is_the_last_line_and_alone_on_standard_output(config):
    result = call("run", config, "--json", "--set", "run.name=other")
    assert result.exit_code == 0
    (line,) = result.stdout.splitlines()
    summary = json.loads(line)
    assert list(summary) == ["run", "workload", "count", "patterns", "seconds", "engine"]
    assert summary["run"] == str(Path("runs/other").absolute())
    assert summary["count"] == 1
    assert "count    1" in result.stderr


def test_a_count_that_a_limit_cut_is_called_a_lower_bound(config):
    options = ["--set", "workload.output=embeddings", "--set", "export.limit=1"]
    assert "count    at least 1\n" in call("run", config, *options).stdout
    result = call("run", config, "--json", *options, "--set", "run.name=other")
    summary = json.loads(result.stdout)
    assert summary["lower_bound"] is summary["patterns"][0]["lower_bound"] is summary["truncated"] is True
    assert "count    at least 1\n" in result.stderr


def test_quiet_says_nothing_on_standard_error(config):
    assert call("run", config, "--quiet").stderr == ""
    result = call("run", config, "--quiet", "--json", "--set", "run.name=other")
    assert result.stderr == ""
    json.loads(result.stdout)


def test_explain_writes_nothing(config, tmp_path):
    before = set(tmp_path.iterdir())
    result = call("explain", config)
    assert result.exit_code == 0
    assert "4 vertices, 4 edges" in result.stdout
    assert set(tmp_path.iterdir()) == before


def test_explain_predicts_the_levels_of_a_search(config):
    result = call("explain", config, "--set", "workload.output=embeddings")
    assert result.exit_code == 0
    words = [line.split() for line in result.stdout.splitlines()]
    rows = {tuple(line[:2]): line[2] for line in words if line and line[0] == "level" and len(line) == 5}
    assert rows[("level", "2")] == "1", "the triangle"
    assert "exact" in result.stdout
    for name in ("in flight", "export"):
        assert sum(line.startswith(name) for line in result.stdout.splitlines()) >= 1


@pytest.mark.slow
def test_explain_says_the_same_twice(config):
    config.write_text(
        '[graph]\ngenerator = { kind = "rmat", scale = 8, edge_factor = 8, seed = 1 }\n'
        '[workload]\nkind = "match"\npattern = "house"\noutput = "embeddings"\n'
        '[engine]\nkind = "cpu"\n[memory]\nhost = "1GiB"\ndisk = "1GiB"\n'
    )
    first, second = (call("explain", config).stdout.splitlines() for _ in range(2))
    assert any("95 % interval" in line for line in first)
    same = [next(at for at, line in enumerate(lines) if line.startswith("export")) for lines in (first, second)]
    assert first[: same[0]] == second[: same[1]], "behind it are measured figures"


def test_explain_predicts_no_formula(config):
    assert "prediction" not in call("explain", config).stdout


def test_explain_shows_the_plan_where_memory_is_too_short_for_a_prediction(config):
    result = call("explain", config, "--set", "workload.output=embeddings", "--set", "memory.host=4KiB")
    assert result.exit_code == 0
    assert "prediction   none: predicting rows needs" in result.stdout


@each_case(
    ("words", "message"),
    [
        (["run", "none.toml"], "none.toml: there is no such config file"),
        (["run", "mine.toml", "--set", "workload.kind=cliqes"], "error: --set: workload.kind: there is no"),
        (["run", "mine.toml", "--set", "workload"], "write it as section.key=value"),
        (["run", "mine.toml", "--set", "graph.path=none.txt"], "none.txt"),
        (["explain", "mine.toml", "--set", "graph.path=none.txt"], "none.txt"),
        (["ingest", "none.txt", "new.zarr"], "none.txt"),
        (["ingest", "graph.txt", "graph.txt"], "graph.txt exists already"),
        (["ingest", "graph.txt", "new.zarr", "--labels", "none.txt"], "none.txt"),
        (
            ["ingest", "graph.txt", "new.zarr", "--labels", "graph.txt", "--vertices", "graph.txt"],
            "--labels and --vertices name the same input: give one of them",
        ),
        (["ingest", "graph.txt", "new.zarr", "--memory", "100"], "raise --memory"),
        (["generate", "rmat", "new.zarr", "--scale", "10", "--memory", "100KiB"], "raise --memory"),
        (["ingest", "graph.txt", "new.zarr", "--spill", "/proc/zz"], "/proc/zz: nothing can be spilled there"),
        (["run", "mine.toml", "--set", "memory.spill=/proc/zz"], "/proc/zz: nothing can be spilled there"),
        (["explain", "mine.toml", "--set", "memory.spill=/proc/zz"], "/proc/zz: nothing can be spilled there"),
        (["ingest", "graph.txt", "/proc/new.zarr"], "/proc/new.zarr: a store cannot be made there"),
        (["ingest", "graph.txt", "x" * 300], "is too long for a path"),
        (
            ["generate", "rmat", "new.zarr", "--scale", "4", "--edge-factor", "1000000000000"],
            "lower --edge-factor or --scale, or raise --disk",
        ),
        (["generate", "rmatt", "new.zarr"], "rmat"),
        (["generate", "rmat", "new.zarr"], "--scale is missing"),
        (["generate", "rmat", "new.zarr", "--scale", "4", "--edge-factor", "0"], "--edge-factor is 0"),
        (["generate", "rmat", "new.zarr", "--scale", "4", "--labels", "-1"], "--labels: -1 is too small"),
        (["generate", "rmat", "new.zarr", "--scale", "4", "--vertices", "3"], "vertices"),
        (["generate", "rmat", "new.zarr", "--scale", "4", "--labels", "0"], "--labels: 0 is too small, give 1 or more"),
        (["run", "mine.toml", "--set", "engine.threads=1000000"], "engine.threads = 1000000 is too many"),
        (["explain", "mine.toml", "--set", "engine.threads=1000000"], "engine.threads = 1000000 is too many"),
        (["info", "none.zarr"], "none.zarr"),
    ],
)
def test_bad_input_is_one_message_and_exit_code_2(config, words, message):
    before = set(config.parent.iterdir())
    result = call(*words)
    assert result.exit_code == 2
    errors = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert message in errors[0]
    assert "Traceback" not in result.output
    assert set(config.parent.iterdir()) == before


LONG = "x" * 5000
NOT_UTF_8 = os.fsdecode(b"\xff")


@each_case(
    "words",
    [
        ["run", LONG],
        ["run", ""],
        ["run", "pipe"],
        ["run", "/dev/zero"],
        ["run", "mine.toml", "--set", f"graph.path={LONG}"],
        ["run", "mine.toml", "--set", f"graph.path={NOT_UTF_8}"],
        ["run", "mine.toml", "--set", f"run.directory={NOT_UTF_8}"],
        ["run", "mine.toml", "--set", f"memory.spill={LONG}"],
        ["run", "mine.toml", "--set", "engine.threads=" + "9" * 5000],
        ["run", "mine.toml", "--set", "graph.path=" + "[" * 5000],
        ["explain", "pipe"],
        ["explain", "mine.toml", "--set", LONG],
        ["info", LONG],
        ["info", ""],
        ["info", "pipe"],
        ["ingest", LONG, "new.zarr"],
        ["ingest", "graph.txt", LONG],
        ["ingest", "graph.txt", "new.zarr", "--labels", LONG],
        ["generate", "rmat", LONG, "--scale", "4"],
        ["generate", LONG, "new.zarr"],
        ["generate", "rmat", "new.zarr", "--scale", "9" * 50],
        ["resume", LONG],
        ["resume", NOT_UTF_8],
        ["resume", "runs", "--set", LONG],
    ],
)
def test_no_argument_ends_in_a_traceback_or_waits(config, words):
    pipe = config.parent / "pipe"
    if not pipe.exists():
        os.mkfifo(pipe)
    before = set(config.parent.iterdir())
    result = call(*words)
    assert result.exit_code == 2, result.exception
    assert "error: " in result.stderr
    assert set(config.parent.iterdir()) == before


def test_a_name_that_the_terminal_cannot_show_is_escaped(config):
    name = "é"
    process = start("ingest", "graph.txt", f"{name}.zarr", "-q", env=os.environ | {"PYTHONIOENCODING": "ascii:strict"})
    said, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    assert said.split(":")[0] == f"{name}.zarr".encode("ascii", "backslashreplace").decode()


def test_a_run_below_a_folder_whose_name_is_not_utf_8_is_refused(config, tmp_path, monkeypatch):
    """Its config could not be written down for `resume`."""
    folder = tmp_path / NOT_UTF_8
    folder.mkdir()
    (folder / "own.txt").write_text("1 2\n")
    monkeypatch.chdir(folder)
    result = call("run", config, "--set", "graph.path=own.txt")
    assert result.exit_code == 2
    assert "this path is not UTF-8; rename its folders" in result.stderr
    assert [path.name for path in folder.iterdir()] == ["own.txt"]


def test_a_damaged_store_is_bad_input(config, tmp_path):
    assert call("ingest", "graph.txt", "small.zarr").exit_code == 0
    (tmp_path / "small.zarr" / "indices" / "c" / "0").unlink()
    before = set(tmp_path.iterdir())
    for words in (["run", config, "--set", "graph.path=small.zarr"], ["info", "small.zarr"]):
        result = call(*words)
        assert result.exit_code == 2
        errors = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
        assert len(errors) == 1
        what = "the graph store is damaged or incomplete (indices/c/0: there is no such file); ingest the graph again"
        assert errors[0].endswith(f"small.zarr: {what}")
    assert set(tmp_path.iterdir()) == before


def test_a_config_that_cannot_be_read_is_one_message(config, monkeypatch):
    def refuse(path, *flags):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(raw.os, "open", refuse)
    monkeypatch.setattr(os, "access", lambda *arguments, **options: False)  # as root may read everything
    for command in ("run", "explain"):
        result = call(command, config)
        assert result.exit_code == 2
        assert result.stderr == f"error: {config}: the config cannot be read: Permission denied\n"


def test_every_fault_of_a_config_has_its_line(config):
    result = call("run", config, "--set", "memory.hots=1", "--set", "engine.threads=x")
    assert result.exit_code == 2
    assert [line.split(": ")[:3] for line in result.stderr.splitlines()] == [
        ["error", "--set", "memory.hots"],
        ["error", "--set", "engine.threads"],
    ]


def test_wrong_usage_is_exit_code_2(config):
    assert call("rnu").exit_code == 2
    assert call("run").exit_code == 2
    assert call("run", config, "--jsn").exit_code == 2


def test_an_existing_run_is_refused(config):
    assert call("run", config).exit_code == 0
    result = call("run", config)
    assert result.exit_code == 2
    assert "runs/mine exists already" in result.stderr
    assert "run.name=mine-2" in result.stderr
    assert "--overwrite" in result.stderr


def test_a_failed_run_is_exit_code_1(config, monkeypatch):
    def fail(*arguments):
        raise MemoryError

    monkeypatch.setattr(run_module, "read_graph", fail)
    result = call("run", config)
    assert result.exit_code == 1
    assert "error: out of memory" in result.stderr
    assert f"longwall resume {Path('runs/mine').absolute()}" in result.stderr


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError("Unable to allocate 8 TiB"), "error: out of memory (Unable to allocate 8 TiB): lower {memory}"),
        (OSError(errno.EIO, "Input/output error", "x"), "error: the system refused to go on at x: Input/output error"),
    ],
)
@pytest.mark.parametrize(
    ("words", "memory", "place"),
    [
        (["ingest", "graph.txt", "g.zarr"], "--memory", "longwall.storage.ingest.ingest.ingest"),
        (
            ["generate", "rmat", "g.zarr", "--scale", "4"],
            "--memory",
            "longwall.storage.generators.kinds.generate_store",
        ),
        (["info", "graph.txt"], "memory.host", "longwall.pipeline.inputs.open_graph"),
        (["explain", "mine.toml"], "memory.host", "longwall.pipeline.explain.explain"),
    ],
)
def test_memory_and_the_system_end_every_command_with_a_message(config, monkeypatch, words, memory, place, error, said):
    def fail(*arguments, **options):
        raise error

    monkeypatch.setattr(place, fail)
    result = call(*words)
    assert result.exit_code == 1
    assert result.stderr.startswith(said.format(memory=memory))
    assert isinstance(result.exception, SystemExit)
    assert sorted(path.name for path in Path().iterdir()) == ["graph.txt", "mine.toml"]


@pytest.mark.parametrize("words", [["ingest", "graph.txt"], ["generate", "rmat", "--scale", "8"]])
def test_a_second_interrupt_leaves_nothing_behind_either(config, monkeypatch, words):
    def interrupt(function):
        def interrupted(*arguments, **options):
            os.kill(os.getpid(), signal.SIGINT)
            return function(*arguments, **options)

        return interrupted

    monkeypatch.setattr(StoreSink, "describe", interrupt(StoreSink.describe))
    monkeypatch.setattr(StoreSink, "__exit__", interrupt(StoreSink.__exit__))
    monkeypatch.setattr(SpillFolder, "close", interrupt(SpillFolder.close))
    monkeypatch.setattr(shutil, "rmtree", interrupt(shutil.rmtree))
    result = call(*words, "g.zarr", "--quiet")
    assert result.exit_code == 130
    assert result.stderr == "\ninterrupted: nothing is left behind\n"
    assert sorted(path.name for path in Path().iterdir()) == ["graph.txt", "mine.toml"]


def test_an_interrupt_that_comes_too_late_leaves_a_whole_store(config, monkeypatch):
    close = SpillFolder.close

    def interrupted(folder):
        close(folder)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(SpillFolder, "close", interrupted)
    result = call("ingest", "graph.txt", "g.zarr", "--quiet")
    assert result.exit_code == 130
    assert result.stderr == "\ninterrupted: g.zarr is complete\n"
    assert call("info", config.parent / "g.zarr").exit_code == 0


def test_an_interrupted_run_says_how_to_resume(config, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(run_module, "read_graph", interrupt)
    result = call("run", config, "--set", "workload.output=vertices")
    assert result.exit_code == 130
    assert result.stderr.rstrip().endswith(
        f"the finished part is kept; go on with: longwall resume {Path('runs/mine').absolute()}"
    )
    assert not Path("runs/mine/results").exists()


def test_a_run_that_is_done_says_so_when_it_is_interrupted(config, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("longwall.pipeline.cli.print_result", interrupt)
    result = call("run", config)
    assert result.exit_code == 130
    assert "interrupted: the run is done, its results are in runs/mine/results" in result.stderr


@pytest.mark.slow
def test_ctrl_c_ends_a_real_run_within_two_seconds(tmp_path):
    path = tmp_path / "long.toml"
    path.write_text(
        '[graph]\ngenerator = { kind = "rmat", scale = 14, edge_factor = 16, seed = 1 }\n'
        '[workload]\nkind = "match"\npattern = "clique-8"\noutput = "embeddings"\n[engine]\nkind = "cpu"\n'
    )
    process = start("run", path)
    manifest = tmp_path / "runs" / "long" / "manifest.json"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        if manifest.exists() and "plan" in json.loads(manifest.read_text()):
            break
        time.sleep(0.05)
    time.sleep(1.0)
    assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert f"go on with: longwall resume {tmp_path}/runs/long" in errors
    assert "Traceback" not in errors
    assert not (tmp_path / "runs" / "long" / "results").exists()
    assert not (tmp_path / "spill").exists()


@pytest.mark.slow
@pytest.mark.cluster
def test_a_run_may_start_a_cluster(config):
    """In a process of its own: Dask leaves threads behind."""
    pytest.importorskip("distributed", reason="Dask is not installed: pip install 'longwall[cluster]'")
    process = start("run", config, "--json", *("--set", "scheduler.kind=dask"), *("--set", "scheduler.workers=1"))
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert json.loads(output.splitlines()[-1])["count"] == 1


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(
    ("redirected", "code", "said"),
    [
        ("--json > /dev/full", 1, "the run is done, its results are in runs/mine/results"),
        ("> /dev/full", 1, "standard output cannot be written"),
        ("2> /dev/full", 0, ""),
        ("2>&-", 0, ""),
        (">&- 2>&-", 0, ""),
        ("2> >(true)", 0, ""),
    ],
)
def test_a_run_is_done_whether_or_not_it_can_be_reported(config, tmp_path, redirected, code, said):
    command = f"{sys.executable} -m longwall run mine.toml {redirected}"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert json.loads((tmp_path / "runs/mine/manifest.json").read_text())["status"] == "done"


def test_generate_ingest_and_info(tmp_path, config):
    result = call("generate", "rmat", "new.zarr", "--scale", "6", "--edge-factor", "4", "--labels", "3")
    assert result.exit_code == 0
    assert "3 labels" in result.stdout
    facts = json.loads(call("info", "new.zarr", "--json").stdout)
    assert facts
    assert str(longwall.open_graph("new.zarr").content_hash) in json.dumps(facts)
    assert call("generate", "rmat", "new.zarr", "--scale", "6").exit_code == 2

    (tmp_path / "labels.txt").write_text("1 5\n2 5\n3 6\n4 6\n")
    result = call("ingest", "graph.txt", "small.zarr", "--labels", "labels.txt")
    assert result.exit_code == 0
    assert "4 vertices, 4 edges, 2 labels" in result.stdout
    assert longwall.open_graph("small.zarr").num_edges == 4
    assert call("run", config, "--set", "graph.path=small.zarr").exit_code == 0
    assert "4" in call("info", "graph.txt").stdout


def test_a_store_without_permission_is_refused(config, tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    if os.access(tmp_path / "closed", os.W_OK):
        pytest.skip("this user may write everywhere")
    result = call("ingest", "graph.txt", "closed/new.zarr")
    assert result.exit_code == 2
    assert "closed" in result.stderr


def test_patterns_are_listed():
    result = call("patterns")
    assert result.exit_code == 0
    for name in ("triangle", "diamond", "house", "clique-k", "quasi-clique-k", "0-1,0-2,1-2"):
        assert name in result.stdout


@pytest.mark.slow
@pytest.mark.parametrize("words", [["info", "graph.txt"], ["run", "run.toml"], ["ingest", "graph.txt", "graph.zarr"]])
def test_a_limit_of_the_address_space_that_is_too_low_is_said(tmp_path, words):
    (tmp_path / "graph.txt").write_text("1 2\n2 3\n3 1\n")
    (tmp_path / "run.toml").write_text('graph.path = "graph.txt"\nworkload.kind = "triangles"\nengine.kind = "cpu"\n')
    before = sorted(tmp_path.iterdir())

    def limited(mebibytes):
        return subprocess.run(
            [sys.executable, "-m", "longwall", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (mebibytes << 20,) * 2),
        )

    for low in (100, 300, 500, 700):
        done = limited(low)
        assert done.returncode == 2
        found = re.fullmatch(
            rf"error: this process may use {low} MiB of address space, and (\d+) MiB are needed with .*\n", done.stderr
        )
        assert found, done.stderr
        assert sorted(tmp_path.iterdir()) == before
    done = limited(int(found[1]))  # what is needed is enough
    assert done.returncode == 0, done.stderr
