"""Break runs on purpose: the command line in forked children that are killed, interrupted or denied the disk.

A `Launcher` holds a process that has imported everything and loaded the kernels; a run in a fork of it takes a
tenth of a second. That process has no threads of its own, which the test process may have.
"""

from __future__ import annotations

import contextlib
import errno
import faulthandler
import hashlib
import io
import itertools
import json
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

PATIENCE = 120.0  # seconds until a child counts as hanging
GROWING = {"open", "os.mkdir", "os.link", "os.symlink", "os.fsync", "os.write", "parquet"}
SHRINKING = {"os.rename", "os.remove", "os.rmdir", "os.truncate", "shutil.rmtree"}


@dataclass(frozen=True)
class Fault:
    """What goes wrong, and when.

    A run's *events* are everything that changes its folders: a file opened for writing, renamed, synced, a row
    group written, and so on. A fault strikes just before event number `event` (the first is 1), or after
    `seconds`, or, where `largest_file` is set, when a file grows beyond so many bytes.
    """

    act: Literal["kill", "power cut", "interrupt", "disk full", "error"]
    """``power cut`` kills, and takes away what no fsync has brought to the disk; ``disk full`` lasts from then on;
    ``error`` is one of input and output, once."""
    event: int | None = None
    seconds: float | None = None
    largest_file: int | None = None


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    code: int
    """The exit code; negative for a signal."""
    out: str
    err: str
    events: int
    """How many events there were; 0 where the process was killed."""

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out.splitlines()[-1])
        return found


class Launcher:
    """Runs ``longwall`` commands in forks of a process that is warm; a context manager."""

    def __enter__(self) -> Launcher:
        self._server = subprocess.Popen(
            [sys.executable, "-W", "ignore", __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.communicate()  # the end of its input ends it

    def __call__(
        self,
        *words: str | Path,
        folder: Path,
        fault: Fault | None = None,
        constants: dict[str, Any] | None = None,
        fork: bool = True,
    ) -> Outcome:
        """Run a command.

        Parameters
        ----------
        *words
            The command line without its first word.
        folder
            The working directory; events outside of it do not count.
        fault
            What goes wrong.
        constants
            ``"module:NAME"`` -> value: set in the child before it begins.
        fork
            False runs it in the warm process itself, whose kernels it loads for all that follow.
        """
        request = {
            "words": [str(word) for word in words],
            "folder": str(folder),
            "fault": None if fault is None else asdict(fault),
            "constants": constants or {},
            "fork": fork,
        }
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        outcome = Outcome(**json.loads(self._server.stdout.readline()))
        assert "Traceback" not in outcome.err, outcome.err
        assert "Timeout" not in outcome.err, f"it hangs: {outcome.err}"
        return outcome


def finish(launch: Launcher, folder: Path, name: str, faults: Iterable[Fault], **options: Any) -> int:
    """Run ``<name>.toml``, break it with each fault in turn, resume it until it is done.

    Parameters
    ----------
    launch
        Runs the commands.
    folder
        Holds the config; the run's folder is ``runs/<name>`` in it.
    name
        Of the config and the run.
    faults
        One for each attempt, then comes one without.
    **options
        Passed on to `launch`.

    Returns
    -------
    int
        How many faults struck.
    """
    run = folder / "runs" / name
    for struck, fault in enumerate((*faults, None)):
        outcome = go_on(launch, folder, name, fault=fault, **options)
        if outcome.code == 0:
            return struck
        assert fault is not None, outcome.err
        assert outcome.killed or fault.act in ("interrupt", "disk full"), outcome.err
        if status(run) == "done":
            return struck + 1
    raise AssertionError("the last attempt has no fault")


def go_on(launch: Launcher, folder: Path, name: str, **options: Any) -> Outcome:
    """Resume a run, or start it where nothing has begun yet."""
    run = folder / "runs" / name
    if status(run) is not None:
        return launch("resume", run, "--quiet", folder=folder, **options)
    shutil.rmtree(run, ignore_errors=True)
    return launch("run", folder / f"{name}.toml", "--quiet", folder=folder, **options)


def status(run: Path) -> str | None:
    """What the manifest says; None where there is none."""
    try:
        found: str = json.loads((run / "manifest.json").read_text())["status"]
    except FileNotFoundError:
        return None
    return found


def check_whole(run: Path, spill: Path) -> None:
    """A finished run has the results that its manifest lists, and nothing is left of the work."""
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["status"] == "done"
    assert not (run / "results.partial").exists()
    found = {file.name: file for file in (run / "results").iterdir()}
    assert found.keys() == manifest["results"].keys()
    for name, file in found.items():
        content = file.read_bytes()
        assert manifest["results"][name]["bytes"] == len(content)
        assert manifest["results"][name]["sha256"] == hashlib.sha256(content).hexdigest()
    assert left_in(spill) == []


def left_in(spill: Path) -> list[Path]:
    """What lies in the spill folder."""
    return sorted(spill.rglob("*")) if spill.exists() else []


# What follows runs in the warm process and in its children.


class _Saboteur:
    """Watches what a process does to the files below a folder, and strikes when its time has come."""

    def __init__(self, root: str, fault: Fault | None):
        self._root = os.path.realpath(root)
        self._fault = fault
        self._numbers = itertools.count(1)
        self._cutting: int | None = None
        self.events = 0
        self._synced = {(entry.stat().st_dev, entry.stat().st_ino): entry.stat().st_size for entry in self._files()}

    def install(self) -> None:
        import pyarrow.parquet as pq

        if self._fault is not None and self._fault.largest_file is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (self._fault.largest_file, resource.RLIM_INFINITY))
        # What the interpreter does not report: what goes through a descriptor, and Arrow's own files.
        for name in ("fsync", "fdatasync", "write"):
            setattr(os, name, self._descriptor_call(name, getattr(os, name)))
        for name in ("__init__", "write_table", "write_batch", "close"):
            setattr(pq.ParquetWriter, name, self._parquet_call(getattr(pq.ParquetWriter, name)))
        sys.addaudithook(self._heard)

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if not isinstance(flags, int) or not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                return
        elif event in GROWING or event in SHRINKING:
            path = arguments[0]
        else:
            return
        if isinstance(path, str | bytes | os.PathLike):
            absolute = os.path.realpath(os.fsdecode(path))
            if absolute.startswith(self._root + os.sep):
                self._strike(event, absolute)

    def _descriptor_call(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(descriptor: Any, *rest: Any) -> Any:
            number = descriptor if isinstance(descriptor, int) else descriptor.fileno()
            before = os.fstat(number)
            if stat.S_ISREG(before.st_mode) or stat.S_ISDIR(before.st_mode):
                self._strike(
                    f"os.{'write' if name == 'write' else 'fsync'}", str(Path(f"/proc/self/fd/{number}").readlink())
                )
            result = call(descriptor, *rest)
            if name != "write":
                self._synced[before.st_dev, before.st_ino] = os.fstat(number).st_size
            return result

        return watched

    def _parquet_call(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(writer: Any, *arguments: Any, **options: Any) -> Any:
            try:
                self._strike("parquet", "a Parquet file")
            except OSError:
                writer.is_open = False  # a writer that has failed does not fail again when it is dropped
                raise
            return call(writer, *arguments, **options)

        return watched

    def _strike(self, event: str, path: str) -> None:
        if self._cutting == threading.get_ident():
            return
        while self._cutting is not None:
            time.sleep(1)
        self.events = number = next(self._numbers)
        fault = self._fault
        if fault is None or fault.event is None or number < fault.event:
            return
        if fault.act == "disk full":
            if event in GROWING:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        elif number == fault.event:
            if fault.act == "error":
                raise OSError(errno.EIO, os.strerror(errno.EIO), path)
            if fault.act == "power cut":
                self._cutting = threading.get_ident()  # the other threads must not go on while files are cut
                self._forget()
            os.kill(os.getpid(), signal.SIGINT if fault.act == "interrupt" else signal.SIGKILL)

    def _forget(self) -> None:
        """Take away what was written since each file's last fsync."""
        for file in self._files():
            facts = file.stat()
            kept = self._synced.get((facts.st_dev, facts.st_ino), 0)
            if facts.st_size > kept:
                os.truncate(file, kept)

    def _files(self) -> Iterable[Path]:
        for folder, _, names in os.walk(self._root):
            for name in names:
                path = Path(folder, name)
                if path.is_file() and not path.is_symlink():
                    yield path


def _command(words: Sequence[str]) -> int:
    """Run the command line in this process. Return its exit code."""
    from longwall.pipeline.cli import main

    sys.argv = ["longwall", *words]
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except BaseException:
        traceback.print_exc()
        return 70
    return 0


def _child(request: dict[str, Any], fault: Fault | None, pipes: Sequence[int]) -> int:
    """Do the work of the fork. Return its exit code."""
    out, err, events = pipes
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(out, 1)
    os.dup2(err, 2)
    faulthandler.dump_traceback_later(PATIENCE, exit=True)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for key, value in request["constants"].items():
        module, name = key.split(":")
        home = import_module(module)
        assert hasattr(home, name), f"{module} has no {name}"
        setattr(home, name, value)
    saboteur = _Saboteur(request["folder"], fault)
    saboteur.install()
    try:
        code = _command(request["words"])
    finally:
        os.write(events, str(saboteur.events).encode())
        sys.stdout.flush()
        sys.stderr.flush()
    return code


def _wait(pid: int, fault: Fault | None) -> int:
    """Wait for the child; strike it when the fault says so."""
    if fault is not None and fault.seconds is not None:
        end = time.monotonic() + fault.seconds
        while time.monotonic() < end:
            ended, how = os.waitpid(pid, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(how)
            time.sleep(0.001)
        os.kill(pid, signal.SIGINT if fault.act == "interrupt" else signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _answer(request: dict[str, Any]) -> Outcome:
    os.chdir(request["folder"])
    if not request["fork"]:
        noise = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(noise[0]), contextlib.redirect_stderr(noise[1]):
            code = _command(request["words"])
        return Outcome(code, noise[0].getvalue(), noise[1].getvalue(), 0)
    fault = None if request["fault"] is None else Fault(**request["fault"])
    # Pipes, since files would grow: what is said fits into their buffers.
    ends = [os.pipe() for _ in ("out", "err", "events")]
    pid = os.fork()
    if not pid:
        code = 71
        try:
            code = _child(request, fault, [write for _, write in ends])
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    for _, write in ends:
        os.close(write)
    code = _wait(pid, fault)
    out, err, events = (os.fdopen(read).read() for read, _ in ends)
    return Outcome(code, out, err, int(events or 0))


def _serve() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever prints by itself must not stand among the answers
    for line in sys.stdin:
        answers.write(json.dumps(asdict(_answer(json.loads(line)))) + "\n")
        answers.flush()


if __name__ == "__main__":
    _serve()
