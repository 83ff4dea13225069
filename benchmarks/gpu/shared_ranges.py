"""Show where the time of a phase goes that two engines share: range by range, and line by line of the leading engine.

    python -m benchmarks.gpu.shared_ranges [--row 2] [--tiny] [--runs 2] [--work FOLDER]

A row of `both_engines.py` is run by each engine alone, then by both, after a run of each that compiles; all must find
the same. Of each run it prints the seconds of mining; of the leading engine its ranges before and after the second
one has joined: how many, their share of the work, the seconds that they took, the processor's part of them in the
thread that begins them (which waits for Python's lock, or for memory, in the rest), and work a second, as a multiple
of what the whole run did alone; then the lines of code where its thread was seen most, each millisecond, and in what
part of the looks.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

from benchmarks.gpu.both_engines import ENGINES, ROWS, Bench, Run, require_equal
from longwall.pipeline.execution import thread_executor
from longwall.pipeline.execution.phase import Task, Worker
from longwall.pipeline.execution.sharing.task_pool import TaskPool, Team

_LOOK = 1e-3  # seconds
_LINES = 14  # that are printed
_LIMIT = 60.0  # seconds of a run


class Record:
    """What the ranges of a run took, and where the leading engine's thread was."""

    def __init__(self) -> None:
        self.ranges: list[tuple[str, bool, float, float, float, float]] = []
        self.seen: Counter[str] = Counter()
        self._busy: dict[int, float] = {}
        self._thread: int | None = None
        self._ended = threading.Event()

    def __enter__(self) -> Record:
        self._do, self._done = thread_executor._Tasks._do, TaskPool.done
        record, do, done = self, self._do, self._done

        def doing(tasks: Any, crew: Any, worker: Worker, task: Task) -> None:
            me = threading.get_ident()
            if crew is tasks._lead:
                record._thread = me
            began = time.thread_time()
            try:
                do(tasks, crew, worker, task)
            finally:
                record._busy[me] = time.thread_time() - began
                if record._thread == me:
                    record._thread = None

        def taken(pool: TaskPool, team: Team, task: Task, seconds: float) -> None:
            work, busy = pool._work(task), record._busy.get(threading.get_ident(), 0.0)
            record.ranges.append((team.engine, pool.joined, work / pool._total, seconds, busy, time.monotonic()))
            done(pool, team, task, seconds)

        thread_executor._Tasks._do, TaskPool.done = doing, taken  # type: ignore[method-assign]
        self._looking = threading.Thread(target=self._look, daemon=True)
        self._looking.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._looking.join()
        thread_executor._Tasks._do, TaskPool.done = self._do, self._done  # type: ignore[method-assign]

    def _look(self) -> None:
        while not self._ended.wait(_LOOK):
            thread = self._thread
            frame = None if thread is None else sys._current_frames().get(thread)
            if frame is not None:
                self.seen[place(frame)] += 1

    def lines(self, engine: str, alone: float) -> list[str]:
        """Return what the run's ranges took, as text."""
        made = []
        for name in ("cuda", "cpu"):
            for joined in (False, True):
                of_it = [one for one in self.ranges if one[0] == name and one[1] == joined]
                if not of_it:
                    continue
                work, seconds, busy = (sum(one[at] for one in of_it) for at in (2, 3, 4))
                when = "with both" if joined else "alone"
                rate = work / seconds * alone if seconds else 0.0
                made.append(
                    f"  {name} {when}: {len(of_it)} ranges, {work:.1%} of the work, {seconds:.4f} s in ranges, "
                    f"{busy:.4f} s of the processor, {rate:.3f} of the speed alone"
                )
        lead = [one for one in self.ranges if one[0] == "cuda"]
        if lead and engine == "both":
            began = lead[0][5] - lead[0][3]
            text = " ".join(
                f"{at - seconds - began:.3f}{'*' if joined else ''}:{work:.2%}/{1e3 * seconds:.1f}/{1e3 * busy:.1f}"
                for _, joined, work, seconds, busy, at in lead
            )
            made.append(f"  ranges of cuda (begin:work/ms/ms of the processor; *: both): {text}")
        looks = sum(self.seen.values())
        made += [f"    {number / looks:6.1%} {where}" for where, number in self.seen.most_common(_LINES)]
        return made


def place(frame: FrameType) -> str:
    """Return where a thread is: the innermost frame, and the innermost one of the package."""
    inner, at = frame, frame
    while "longwall" not in str(at.f_globals.get("__name__", "")) and at.f_back is not None:
        at = at.f_back
    name = f"{Path(at.f_code.co_filename).name}:{at.f_lineno} {at.f_code.co_name}"
    return name if inner is at else f"{name} > {inner.f_code.co_name}"


def main() -> None:
    """Run a row alone and with both engines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--row", type=int, default=2, help="of both_engines.ROWS")
    parser.add_argument("--runs", type=int, default=2, help="of each engine, after one that compiles")
    parser.add_argument("--tiny", action="store_true", help="a small graph")
    parser.add_argument("--work", type=Path, help="folder for graphs and runs")
    settings = parser.parse_args()
    row = ROWS[settings.row].small if settings.tiny else ROWS[settings.row]
    runs: list[Run] = []
    alone: dict[str, float] = {}
    with tempfile.TemporaryDirectory(dir=settings.work) as folder:
        bench = Bench(Path(folder))
        for turn in range(settings.runs + 1):
            for engine in ENGINES:
                if engine == "cpu" and turn > 1:
                    continue
                with Record() as record:
                    run = bench.run(row, engine, _LIMIT)
                if run is None:
                    raise SystemExit(f"{engine} took longer than {_LIMIT:g} s")
                runs.append(run)
                require_equal(row, runs)
                if not turn:
                    continue
                alone.setdefault(engine, run.seconds)
                print(f"{row.name}, {engine}: {run.seconds:.4f} s", flush=True)
                in_ranges = sum(one[3] for one in record.ranges if one[0] == "cuda") if engine == "cuda" else 0.0
                if engine == "cuda":
                    alone["ranges"] = in_ranges
                print("\n".join(record.lines(engine, alone.get("ranges", 1.0))), flush=True)


if __name__ == "__main__":
    main()
