"""Ctrl-C, SIGTERM and SIGHUP: the program ends soon, leaves nothing that looks whole, and says how to resume it."""

import fcntl
import json
import os
import pty
import select
import shlex
import shutil
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from importlib import import_module
from pathlib import Path
from threading import Thread

import pytest
from breakable import EXAMPLES
from llvmlite.binding.executionengine import ExecutionEngine
from numba.core.compiler_lock import global_compiler_lock

import longwall
from longwall.__main__ import main
from longwall.pipeline import run
from longwall.storage.system import signals

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
    "maximal cliques": (400, 60_000, 'kind = "maximal-cliques"'),
    "algorithm": (
        3000,
        400_000,
        'kind = "custom"\nalgorithm = "plexes.py:Plexes"\nparameters = { k = 2, size = 5 }',
    ),
}


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "longwall", *words]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def interrupt(process: subprocess.Popen[str], ended: bool = False, by: signal.Signals = signal.SIGINT) -> str:
    """Send a signal, see the process end soon with its exit code. Return what it said. It may have `ended` already."""
    if process.poll() is not None and not ended:
        pytest.fail(f"ended before it was interrupted: {process.communicate()}")
    process.send_signal(by)
    try:  # a second or two, unless other work takes the cores
        _, said = process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        pytest.fail("did not stop within half a minute")
    assert process.returncode == 128 + by, said
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
    """Start a long run. Return the process, in the midst of its work, and the run's folder."""
    vertices, edges, workload = LONG[name]
    text = CONFIG.format(vertices=vertices, edges=edges, workload=workload)
    (folder / "long.toml").write_text(text)
    shutil.copy(EXAMPLES / "plexes.py", folder)
    process = start(folder, "run", "long.toml", "--quiet")
    run = folder / "runs" / "long"
    wait_for(lambda: "plan" in status(run), process)  # the plan is saved just before the work begins
    time.sleep(2)
    return process, run


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("name", LONG)
def test_a_run_stops_and_leaves_nothing_that_looks_whole(tmp_path, name):
    process, run = begin_run(tmp_path, name)
    interrupt(process)
    assert not (run / "results").exists()
    assert not (tmp_path / "spill").exists()
    assert status(run)["status"] == "interrupted"


@pytest.mark.slow
@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_message_says_how_to_resume(tmp_path, by):
    process, run = begin_run(tmp_path, "cliques")
    said = interrupt(process, by=by)
    assert not (run / "results").exists()
    assert status(run)["status"] == "interrupted"
    assert status(run)["reason"] == f"interrupted by {by.name}"
    words = shlex.split(next(line for line in said.splitlines() if "longwall resume" in line).split("with: ")[-1])
    assert words == ["longwall", "resume", str(run)]
    # The command works as it stands: it gets as far as the first one did.
    again = start(tmp_path, *words[1:], "--quiet")
    wait_for(lambda: status(run)["status"] == "running" and "resumed" in status(run), again)
    interrupt(again, by=by)
    assert status(run)["status"] == "interrupted"


@pytest.mark.slow
def test_a_run_goes_on_when_its_terminal_is_gone_if_it_was_begun_so(tmp_path):
    """As with nohup, which ignores SIGHUP."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        process, run = begin_run(tmp_path, "cliques")
    finally:
        signal.signal(signal.SIGHUP, before)
    process.send_signal(signal.SIGHUP)
    assert status(run)["status"] == "running"
    interrupt(process, by=signal.SIGTERM)
    assert status(run)["reason"] == "interrupted by SIGTERM"


@pytest.mark.slow
def test_a_terminal_that_is_closed_ends_its_run(tmp_path):
    vertices, edges, workload = LONG["cliques"]
    (tmp_path / "long.toml").write_text(CONFIG.format(vertices=vertices, edges=edges, workload=workload))
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "longwall", "run", "long.toml"],
        cwd=tmp_path,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(theirs)
    run = tmp_path / "runs" / "long"
    while "plan" not in status(run):
        if select.select([ours], [], [], 0.05)[0]:
            os.read(ours, 1 << 16)  # a terminal that takes nothing would stop it
    os.close(ours)
    assert process.wait(60) == 129
    assert status(run)["reason"] == "interrupted by SIGHUP"


HANDLED = """
import os, signal, sys, threading
import longwall
from longwall.pipeline.execution import thread_executor as workers

def end(number, frame):
    print("handled", flush=True)

if sys.argv[1] == "own handler":
    signal.signal(signal.SIGTERM, end)
run_phase = workers.ThreadExecutor.run

def run(*arguments):
    os.kill(os.getpid(), signal.SIGTERM)
    return run_phase(*arguments)

workers.ThreadExecutor.run = run
before = signal.getsignal(signal.SIGTERM)
try:
    longwall.run("short.toml")
except KeyboardInterrupt as interrupt:
    print("interrupted", interrupt.run)
assert signal.getsignal(signal.SIGTERM) is before
"""


@pytest.mark.slow
@pytest.mark.parametrize("handler", ["none", "own handler"])
def test_a_script_that_runs_longwall_keeps_its_handler(tmp_path, handler):
    (tmp_path / "graph.txt").write_text("1 2\n2 3\n3 1\n")
    text = 'graph.path = "graph.txt"\nengine.kind = "cpu"\nworkload = { kind = "match", pattern = "0-1,1-2,2-0,0-3" }\n'
    (tmp_path / "short.toml").write_text(text)
    command = [sys.executable, "-c", HANDLED, handler]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    found = status(tmp_path / "runs" / "short")
    if handler == "none":
        assert done.stdout.split() == ["interrupted", str(tmp_path / "runs" / "short")]
        assert (found["status"], found["reason"]) == ("interrupted", "interrupted by SIGTERM")
    else:
        assert done.stdout.split() == ["handled"]
        assert found["status"] == "done"


@pytest.mark.slow
@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_an_impatient_user_gets_the_same_message(tmp_path, by):
    process, run = begin_run(tmp_path, "listing")
    for _ in range(2):
        process.send_signal(by)
        time.sleep(0.15)
    assert f"longwall resume {run}" in interrupt(process, ended=True, by=by)
    assert status(run)["status"] == "interrupted"


ENDLESS = """
import time
import longwall

class Endless(longwall.Algorithm):
    def roots(self, first, last, graph, xp):
        open("began", "w").close()
        while True:
            time.sleep(0.01)

    def process(self, columns, graph, xp):
        return None

    def extend(self, columns, graph, xp):
        return [], []
"""


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_second_signal_ends_code_that_never_returns(tmp_path, by):
    (tmp_path / "endless.py").write_text(ENDLESS)
    workload = 'kind = "custom"\nalgorithm = "endless.py:Endless"'
    (tmp_path / "long.toml").write_text(CONFIG.format(vertices=20, edges=40, workload=workload))
    process = start(tmp_path, "run", "long.toml", "--quiet")
    wait_for((tmp_path / "began").exists, process)
    process.send_signal(by)
    time.sleep(0.1)  # two that come at once are one
    said = interrupt(process, by=by)
    run = tmp_path / "runs" / "long"
    assert said.splitlines()[-1].endswith(f"go on with: longwall resume {run}")
    (tmp_path / "began").unlink()
    again = start(tmp_path, "resume", str(run), "--quiet")
    wait_for((tmp_path / "began").exists, again)
    again.kill()
    again.communicate()


@pytest.fixture
def handlers() -> Iterator[None]:
    """Leave the handlers of signals as they were: a program that ends ignores them."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    hook = sys.unraisablehook
    yield
    sys.unraisablehook = hook
    for number, was in before.items():
        signal.signal(number, was)


@pytest.mark.usefixtures("handlers")
def test_it_may_be_interrupted_as_it_imports(monkeypatch, capsys):
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


def interrupted(*_: object) -> None:
    """Raise what Python 3.11 makes of an interrupt while it makes a class, and pydantic of its own."""
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt as interrupt:
        raise RuntimeError("Error calling __set_name__") from interrupt


def test_a_run_is_interrupted_whatever_is_made_of_the_signal(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "plan_for", interrupted)
    graph = {"generator": {"kind": "rmat", "scale": 6, "edge_factor": 4, "seed": 1}}
    with pytest.raises(KeyboardInterrupt):
        longwall.run(
            {
                "graph": graph,
                "workload": {"kind": "triangles"},
                "engine": {"kind": "cpu"},
                "run": {"directory": tmp_path, "name": "one"},
            }
        )
    manifest = json.loads((tmp_path / "one" / "manifest.json").read_text())
    assert (manifest["status"], manifest["reason"]) == ("interrupted", "interrupted by SIGINT")


@pytest.mark.usefixtures("handlers")
def test_it_may_be_interrupted_as_it_makes_its_commands(monkeypatch, capsys):
    monkeypatch.setattr("typer.main.get_command", interrupted)
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 130
    assert capsys.readouterr().err == "\ninterrupted: nothing is left behind\n"


@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize(("by", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_it_may_be_interrupted_as_it_reads_its_arguments(monkeypatch, capsys, by, code):
    """Typer exits with 130 after each signal, without a message."""
    monkeypatch.setattr("typer.core.TyperGroup.make_context", lambda *_, **__: signal.raise_signal(by))
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == code
    assert capsys.readouterr().err == "\ninterrupted: nothing is left behind\n"


FIRST = "longwall.storage.system.signals"
LATER = ["longwall.pipeline.cli", "typer.core", "longwall.pipeline.run", "numpy"]


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize("module", [FIRST, *(pytest.param(one, marks=pytest.mark.slow) for one in LATER)])
def test_a_signal_before_the_command_begins_ends_it_with_its_code(tmp_path, module, by):
    """From the first line of the program on."""
    (tmp_path / "mine.toml").write_text(RUN)
    program = f"""
import signal, sys
class Interrupting:
    def find_spec(self, name, *_):
        if name == {module!r}:
            signal.raise_signal({int(by)})
sys.meta_path.insert(0, Interrupting())
sys.argv = ["longwall", "run", "mine.toml"]
from longwall.__main__ import script
script()
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 128 + by
    assert len(done.stderr.split("interrupted: ")) == 2, done.stderr
    assert "Traceback" not in done.stderr


RUN = """
[graph]
generator = { kind = "rmat", scale = 4, edge_factor = 4 }
[workload]
kind = "triangles"
[engine]
kind = "cpu"
"""


@pytest.mark.slow
@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_generating_stops_and_leaves_nothing(tmp_path, by):
    process = start(tmp_path, "generate", "rmat", "big.zarr", "--scale", "22", "--edge-factor", "16")
    wait_for(lambda: any(tmp_path.iterdir()), process)  # the store is begun, or something is spilled
    time.sleep(1)
    interrupt(process, by=by)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_ingesting_stops_and_leaves_nothing(tmp_path):
    with (tmp_path / "edges.txt").open("w") as file:
        for block in range(60):
            file.writelines(f"{u * 7919 % 999983} {(u * 104729 + block) % 999979}\n" for u in range(100_000))
    process = start(tmp_path, "ingest", "edges.txt", "edges.zarr", "--quiet")
    wait_for(lambda: len(list(tmp_path.iterdir())) > 1, process)
    time.sleep(0.2)
    interrupt(process)
    assert [path.name for path in tmp_path.iterdir()] == ["edges.txt"]


def test_the_signal_that_ended_an_earlier_run_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "_last", signal.SIGTERM)
    with signals.interrupting():
        assert signals.last_signal() is signal.SIGINT


class HalfMade:
    def __del__(self) -> None:
        raise AttributeError


def test_finalizers_that_fail_after_a_signal_print_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    failures = []
    monkeypatch.setattr(sys, "unraisablehook", lambda failure: failures.append(failure.exc_value))
    with signals.interrupting():
        HalfMade()
        assert len(failures) == 1
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        HalfMade()
    assert len(failures) == 1
    HalfMade()
    assert len(failures) == 2


def _raw_object_cache_notify() -> None:
    """Stand for the function of llvmlite that LLVM calls."""
    signal.raise_signal(signal.SIGINT)
    signal.raise_signal(signal.SIGINT)


class Finder:
    """Finds no module; signals come while it looks for one."""

    @staticmethod
    def find_spec(name: str, *rest: object) -> None:
        for _ in range(3):
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGTERM)


@pytest.fixture
def interrupting_import(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Import what is not there, while signals come."""
    monkeypatch.setattr(signals, "_AGAIN_SECONDS", 0.3)

    def importing() -> None:
        with monkeypatch.context() as patch, suppress(ModuleNotFoundError):
            patch.setattr(sys, "meta_path", [Finder])
            import_module("a_module_that_is_nowhere")

    return importing


@pytest.mark.parametrize("handled", [False, True])
def test_signals_wait_until_an_import_is_over(interrupting_import: Callable[[], None], handled: bool) -> None:
    """An exception in it may leave the module locked, for which threads that import it wait forever."""
    seen: list[str] = []

    def work() -> None:
        with signals.interrupted_by(lambda: seen.append("interrupt")) if handled else nullcontext():
            interrupting_import()
            seen.append("imported")
            time.sleep(10)
            seen.append("not interrupted")

    with signals.interrupting():
        with pytest.raises(KeyboardInterrupt):
            work()
        time.sleep(0.7)  # no other one comes
    assert [one for one in seen if one != "interrupt"] == ["imported"]
    assert ("interrupt" in seen) == handled


class Ended(Exception):
    pass


@pytest.mark.parametrize("error", [None, Ended, KeyboardInterrupt])
def test_no_signal_of_an_import_disturbs_what_comes_after(
    interrupting_import: Callable[[], None], error: type[BaseException] | None
) -> None:
    def work() -> None:
        with signals.interrupted_by(lambda: None):
            interrupting_import()
            if error is not None:
                raise error

    with signals.interrupting():
        with pytest.raises(KeyboardInterrupt) as caught:
            work()
        time.sleep(0.7)
    assert isinstance(caught.value.__cause__, Ended) == (error is Ended)


def test_another_thread_leaves_a_signal_of_an_import_to_the_main_thread(
    interrupting_import: Callable[[], None],
) -> None:
    others: list[BaseException] = []

    def end() -> None:
        try:
            with signals.interrupting(), signals.interrupted_by(lambda: None):
                pass
            with signals.unwrapped():
                raise Ended
        except BaseException as error:
            others.append(error)

    def work() -> None:
        with signals.interrupted_by(lambda: None):
            interrupting_import()
            thread = Thread(target=end)
            thread.start()
            thread.join()
            time.sleep(10)

    with signals.interrupting(), pytest.raises(KeyboardInterrupt):
        work()
    assert [type(error) for error in others] == [Ended]


def test_a_signal_of_an_import_does_not_come_again_after_another_one(interrupting_import: Callable[[], None]) -> None:
    with signals.interrupting():
        interrupting_import()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGHUP)
        time.sleep(0.7)
        assert signals.last_signal() is signal.SIGHUP


def test_a_signal_of_an_import_comes_at_once_where_no_thread_can_wait(
    interrupting_import: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("_thread.start_new_thread", fail)
    with signals.interrupting():
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                interrupting_import()


def test_what_a_module_does_as_it_is_imported_may_be_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "takes_long.py").write_text("import signal\nsignal.raise_signal(signal.SIGINT)\ncame = True\n")
    monkeypatch.syspath_prepend(tmp_path)
    with signals.interrupting(), pytest.raises(KeyboardInterrupt):
        import_module("takes_long")
    assert "takes_long" not in sys.modules


def test_a_signal_waits_until_llvm_has_handed_over_a_kernel() -> None:
    """It would swallow the interrupt, and the kernel would be half made."""
    assert hasattr(ExecutionEngine, _raw_object_cache_notify.__name__)
    with signals.interrupting():
        global_compiler_lock.acquire()
        _raw_object_cache_notify()
        with pytest.raises(KeyboardInterrupt):
            global_compiler_lock.release()
        with global_compiler_lock, pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


@pytest.mark.slow
def test_a_run_that_compiles_may_be_interrupted_at_any_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vertices, edges, workload = LONG["listing"]
    (tmp_path / "long.toml").write_text(CONFIG.format(vertices=vertices, edges=edges, workload=workload))
    for number, seconds in enumerate((2.0, 3.5, 5.0, 6.5)):
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / f"kernels-{number}"))  # nothing compiled
        process = start(tmp_path, "run", "long.toml", "--quiet", "--set", f"run.name='{number}'")
        time.sleep(seconds)
        interrupt(process)


STUBBORN = """
import os, signal, threading, time
from longwall.storage.system import signals

signals._PATIENT_SECONDS = 0.05
try:
    with signals.interrupting(), signals.interrupted_by(lambda: None, {how!r}):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(60)
        except KeyboardInterrupt:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(60)
finally:
    print("not ended")
"""


@pytest.mark.parametrize("how", ["", "longwall resume runs/mine"])
def test_a_second_signal_says_how_to_go_on_where_something_is_kept(how: str) -> None:
    command = [sys.executable, "-c", STUBBORN.format(how=how)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (128 + signal.SIGTERM, "")
    kept = f"; the finished part is kept; go on with: {how}" if how else ""
    assert done.stderr == f"\ninterrupted: ended at once{kept}\n"
