"""Run seeded fuzz cases in child processes that may crash, hang or take too much memory.

A target is a file ``fuzz_NAME.py`` beside this one:

- ``SECONDS`` and ``BYTES``: what one case may take, of time and of growth of the process' memory;
- ``prepare(folder) -> state``: what all cases of a process share; `folder` lives as long as the process;
- ``run(state, rng, folder)``: makes one case from `rng` in the empty `folder` and uses Longwall on it.

A case may end well, or with an error of Longwall. Anything else is a finding: another exception, a crash, more time or
more memory. The seed alone gives the case, so a finding is repeated by running its seed.

By hand, any number of cases, or one seed again with its traceback::

    python tests/fuzz/harness.py readers --cases 100000
    python tests/fuzz/harness.py readers --first 4711 --cases 1
"""

from __future__ import annotations

import argparse
import ctypes
import faulthandler
import importlib
import os
import random
import selectors
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CASES = int(os.environ.get("LONGWALL_FUZZ_CASES", "2000"))
"""Of each target in a test run."""
_START_SECONDS = 120.0
_SLACK = 3.0  # times the limit of a case, until a child that does not answer is ended
_LONGEST_MESSAGE = 4000


@dataclass
class Outcome:
    """What the cases of a target gave."""

    kinds: Counter[str] = field(default_factory=Counter)
    """``well``, ``refused`` or ``finding`` -> cases."""
    findings: list[str] = field(default_factory=list)
    """A text for each finding: its seed and what happened."""

    def add(self, kind: str, text: str = "") -> None:
        """Count a case."""
        self.kinds[kind] += 1
        if kind == "finding":
            self.findings.append(text)


def target_names() -> list[str]:
    """The targets there are."""
    return sorted(path.stem.removeprefix("fuzz_") for path in HERE.glob("fuzz_*.py"))


def fuzz(target: str, first: int, cases: int, folder: Path, where: Path = HERE) -> Outcome:
    """Run the cases of the seeds `first` to `first + cases` - 1.

    Parameters
    ----------
    target
        Its name.
    first, cases
        See above.
    folder
        For the files of the cases.
    where
        The folder of the target's file.

    Raises
    ------
    RuntimeError
        If no case can be run.
    """
    outcome = Outcome()
    end = first + cases
    while first < end:
        first = _run_child(target, where, first, end, folder, outcome)
    return outcome


def _run_child(target: str, where: Path, first: int, end: int, folder: Path, outcome: Outcome) -> int:
    """Run cases in one child process; return the next seed, past the one that ended the child."""
    command = [sys.executable, str(Path(__file__)), target, "--child", str(first), str(end)]
    command += ["--folder", str(folder), "--where", str(where)]
    limit = _load(target, where).SECONDS * _SLACK
    with tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors)
        assert child.stdout is not None
        seed, ended = first - 1, ""
        try:
            for line in _lines(child.stdout.fileno(), limit):
                word, _, text = line.partition(" ")
                if word == "case":
                    seed = int(text)
                elif word in ("well", "refused", "finding"):
                    outcome.add(word, text.replace("\\n", "\n"))
            ended = f"crashed with code {child.wait(timeout=_START_SECONDS)}"
            if child.returncode == 0:
                return end
        except TimeoutError:
            ended = f"did not end within {limit:g} s"
        finally:
            child.kill()
            child.wait()
            child.stdout.close()
        errors.seek(0)
        said = errors.read()[-3000:].decode("utf-8", "replace")
        if seed < first:
            raise RuntimeError(f"{target}: the child process {ended} before its first case\n{said}")
        outcome.add("finding", f"{target} seed {seed}: {ended}\n{said}")
        return seed + 1


def _load(target: str, where: Path) -> Any:
    for folder in (HERE.parent, HERE.parent / "support", where):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    return importlib.import_module(f"fuzz_{target}")


def _lines(source: int, limit: float) -> Iterator[str]:
    """Yield lines of a pipe until it is closed.

    Raises
    ------
    TimeoutError
        If none comes for `limit` seconds; the first may take longer, as the child imports and prepares.
    """
    with selectors.DefaultSelector() as selector:
        selector.register(source, selectors.EVENT_READ)
        text, patience = b"", max(limit, _START_SECONDS)
        while True:
            if not selector.select(patience):
                raise TimeoutError
            read = os.read(source, 1 << 16)
            if not read:
                return
            *whole, text = (text + read).split(b"\n")
            for line in whole:
                patience = max(limit, _START_SECONDS) if line.startswith(b"preparing") else limit
                yield line.decode("utf-8", "replace")


def run_cases(target: str, where: Path, first: int, end: int, folder: Path) -> None:
    """Run cases in this process; says on standard output what became of each."""
    from longwall.storage.errors import InputError, RunError

    faulthandler.enable()
    os.nice(1)
    module = _load(target, where)
    say = _speaker()
    raised: list[str] = []
    sys.unraisablehook = lambda what: raised.append(f"unraisable: {what.exc_value!r}")
    threading.excepthook = lambda what: raised.append(f"in a thread: {what.exc_value!r}")
    say(f"preparing {target}")
    shared, own = (Path(tempfile.mkdtemp(dir=folder)) for _ in range(2))
    state = module.prepare(shared)
    for seed in range(first, end):
        say(f"case {seed}")
        _empty(own)
        raised.clear()
        reset_peak()
        before, began = memory("VmRSS"), time.monotonic()
        kind, text = "well", ""
        try:
            module.run(state, random.Random(f"{target} {seed}"), own)
        except (InputError, RunError) as error:
            kind = "refused"
            if not str(error).strip() or len(str(error)) > _LONGEST_MESSAGE:
                kind, text = "finding", f"a message that does not help: {str(error)[:200]!r} ({len(str(error))})"
        except BaseException:  # everything else is what is looked for
            kind, text = "finding", traceback.format_exc()
        seconds, grown = time.monotonic() - began, memory("VmHWM") - before
        if raised:
            kind, text = "finding", "\n".join(raised)
        elif kind != "finding" and seconds > module.SECONDS:
            kind, text = "finding", f"took {seconds:.1f} s"
        elif kind != "finding" and grown > module.BYTES:
            kind, text = "finding", f"took {grown / 2**20:.0f} MiB"
        if kind == "finding":
            text = f"{target} seed {seed}: {text}".replace("\n", "\\n")
        say(f"{kind} {text}".strip())
        if grown > module.BYTES // 4:
            trim()
    shutil.rmtree(own, ignore_errors=True)
    shutil.rmtree(shared, ignore_errors=True)


def _speaker() -> Any:
    """Keep standard output for what the parent reads; what the cases print goes away."""
    spoken = os.fdopen(os.dup(1), "w")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    return lambda line: print(line, file=spoken, flush=True)


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def memory(name: str) -> int:
    """Bytes of this process' memory: ``VmRSS`` now, or ``VmHWM`` at most since `reset_peak`."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return 0


def reset_peak() -> None:
    """Let ``VmHWM`` begin anew, where the kernel can."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def trim() -> None:
    """Return freed memory to the system, so that the next case is measured alone."""
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    except (OSError, AttributeError):
        return


def main() -> int:
    """Fuzz by hand; see the module."""
    parser = argparse.ArgumentParser(description="Run fuzz cases of a target.")
    parser.add_argument("target", help=f"one of {', '.join(target_names())}, or all")
    parser.add_argument("--cases", type=int, default=CASES)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--folder", type=Path, help="where the files of the cases go")
    parser.add_argument("--where", type=Path, default=HERE, help="the folder of the target's file")
    parser.add_argument("--child", type=int, nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        run_cases(given.target, given.where, *given.child, given.folder)
        return 0
    names = target_names() if given.target == "all" else [given.target]
    failed = [name for name in names if _campaign(name, given).findings]
    return 1 if failed else 0


def _campaign(target: str, given: argparse.Namespace) -> Outcome:
    """Run many cases in several processes, and print what they gave."""
    began, end = time.monotonic(), given.first + given.cases
    step = max(1, min(5000, -(-given.cases // given.jobs)))
    total = Outcome()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder, ThreadPoolExecutor(given.jobs) as pool:

        def part(first: int) -> Outcome:
            return fuzz(target, first, min(step, end - first), Path(folder), given.where)

        for outcome in pool.map(part, range(given.first, end, step)):
            total.kinds += outcome.kinds
            total.findings += outcome.findings
            for finding in outcome.findings:
                print(finding, flush=True)
    print(f"{target}: {dict(total.kinds)} in {time.monotonic() - began:.0f} s", flush=True)
    return total


if __name__ == "__main__":
    sys.exit(main())
