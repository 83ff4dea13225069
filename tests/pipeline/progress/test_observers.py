"""Progress: lines when piped, a bar on a terminal, nothing when quiet."""

import io
import re
import threading

from cases import each_case
from rich.cells import cell_len
from rich.console import Console

from longwall.kernels.jit.compile_clock import COMPILING
from longwall.pipeline.progress import observers
from longwall.pipeline.progress.live_line import compact, live_line
from longwall.pipeline.progress.observers import LastingObserver, PlainObserver, choose_observer
from longwall.pipeline.progress.progress_bar import TerminalObserver
from longwall.pipeline.progress.progress_text import duration, progress_text
from longwall.storage.observer import NullObserver


@each_case(
    ("arguments", "text"),
    [
        (("mining", 400, 1000, "tasks", 20.0), "mining: 40% of 1,000 tasks, 20 tasks/s, 0:30 left"),
        (("mining", 400, None, "tasks", 20.0), "mining: 400 tasks, 20 tasks/s"),
        (("mining", 0, 1000, "tasks", 20.0), "mining: 0% of 1,000 tasks"),
        (("listing", 400, 1000, "arcs", 20.0, 0.5), "listing: 40% of 1,000 arcs, 20 arcs/s, 0:20 left"),
        (("listing", 400, 1000, "arcs", 20.0, 0.01), "listing: 40% of 1,000 arcs, 20 arcs/s, 0:30 left"),
        (("listing", 0, 1000, "arcs", 20.0, 0.25), "listing: 0% of 1,000 arcs, 1:00 left"),
        (("reading", 2**20, 2**21, "bytes", 1.0), "reading: 50% of 2 MiB, 1 MiB/s, 0:01 left"),
        (("reading", 0, None, "bytes", 1.0), "reading: 0 B"),
    ],
)
def test_a_line_has_rate_and_remaining_time(arguments, text):
    assert progress_text(*arguments) == text


def test_a_rate_leaves_compiling_out(monkeypatch):
    stream = io.StringIO()
    clock, compiled = [100.0], [3.0]
    monkeypatch.setattr(observers.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(observers, "compile_seconds", lambda *_: compiled[0])
    observer = PlainObserver(stream)
    observer.phase("mining", 100, "tasks")
    clock[0], compiled[0] = 110.0, 11.0
    observer.advance(10)
    assert stream.getvalue().splitlines()[1] == "mining: 10% of 100 tasks, 5 tasks/s, 0:18 left"


def test_the_rate_of_compiling_counts_all_seconds(monkeypatch):
    stream = io.StringIO()
    clock = [100.0]
    monkeypatch.setattr(observers.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(COMPILING, "seconds", lambda: clock[0] - 90.0)
    observer = PlainObserver(stream)
    observer.phase("compiling kernels", 6, "kernels")
    clock[0] = 106.0
    observer.advance(3)
    assert stream.getvalue().splitlines()[1] == "compiling kernels: 50% of 6 kernels, 0.5 kernels/s, 0:06 left"


def test_durations():
    assert [duration(s) for s in (0, 42.4, 725, 10800)] == ["0:00", "0:42", "12:05", "3:00:00"]


def test_plain_lines_come_from_many_threads_and_not_too_often():
    stream = io.StringIO()
    observer = PlainObserver(stream, interval=0.0)
    observer.phase("mining", 400, "tasks")
    threads = [threading.Thread(target=lambda: [observer.advance(1) for _ in range(100)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    observer.note("a note")
    observer.close()
    lines = stream.getvalue().splitlines()
    assert lines[0] == "mining (400 tasks)"
    assert lines[-1] == "a note"
    assert len(lines) == 402
    assert all(re.match(r"mining: \d+% of 400 tasks", line) for line in lines[1:-1])

    stream = io.StringIO()
    observer = PlainObserver(stream, interval=60)
    observer.phase("mining", None, "tasks")
    observer.advance(1)
    assert stream.getvalue() == "mining\n"


def test_the_terminal_shows_phases_and_notes(capsys):
    observer = TerminalObserver()
    observer.phase("reading", 2**20, "bytes")
    observer.advance(2**20)
    observer.phase("mining", None, "tasks")
    observer.advance(7)
    observer.note("compiling [once]")
    observer.close()
    shown = capsys.readouterr().err
    assert "reading" in shown
    assert "7 tasks in 0:00" in shown
    assert "compiling [once]" in shown


def test_the_remaining_time_knows_how_near_the_limit_is(capsys):
    stream = io.StringIO()
    observer = LastingObserver(PlainObserver(stream, interval=0.0))
    observer.phase("listing", 400, "arcs")
    observer.near_limit(1.0)
    assert stream.getvalue().splitlines()[-1] == "listing: 0% of 400 arcs, 0:00 left"
    observer.phase("writing", 400, "arcs")  # the share is that of the phase before
    observer.advance(0)
    assert "left" not in stream.getvalue().splitlines()[-1]
    terminal = TerminalObserver()
    terminal.phase("listing", 400, "arcs")
    terminal.near_limit(1.0)
    (task,) = terminal._progress.tasks
    console = Console(width=100)
    with console.capture() as shown:
        console.print(terminal._progress.columns[-1].render(task))
    assert "0:00 left" in shown.get()
    terminal.close()


BUDGETS = {"host": (3 << 30, 8 << 30), "disk": (0, 100 << 30), "device": (1 << 30, 4 << 30)}


@each_case("name", ["counting", "a phase whose name is longer than most, level 3"])
@each_case(("done", "total"), [(0, 10), (400_000, 1_000_000), (4 * 10**12, None)])
@each_case("unit", ["arcs", "bytes", "embeddings"])
@each_case("width", [20, 40, 58, 98, 200])
def test_a_live_line_fits_its_width(name, done, total, unit, width):
    left, bar, right = live_line(name, done, total, unit, 20.0, budgets=BUDGETS, width=width)
    whole = sum(2 + part for part in (bar, cell_len(right)) if part) + cell_len(left)
    assert whole <= width
    if width >= 58 and total and done:
        assert "left" in right
        assert "40%" in right
        assert "/s" in right or len(name) > 20
        assert "device" in right
        assert "host" in right
    if width == 200:
        assert f"{name}" == left
        assert "host 3 GiB of 8 GiB" in right
        assert "disk 0 B of 100 GiB" in right


def test_large_numbers_are_short():
    assert [compact(n) for n in (7, 999, 12_345, 450e6, 2e18)] == ["7", "999", "12.3k", "450M", "2,000P"]


def test_a_terminal_that_only_prints_has_lines(monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(choose_observer(quiet=False).observer, PlainObserver)


def test_the_choice(monkeypatch):
    assert isinstance(choose_observer(quiet=True), NullObserver)
    assert isinstance(choose_observer(quiet=False).observer, PlainObserver)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert isinstance(choose_observer(quiet=False).observer, TerminalObserver)


class Log:
    """A server's writer in place of standard error: it can only write, and fails once it is full."""

    def __init__(self):
        self.text, self.full = "", False

    def write(self, text):
        if self.full:
            raise BrokenPipeError
        self.text += text

    def flush(self): ...


def test_standard_error_may_be_anything(monkeypatch):
    monkeypatch.setattr("sys.stderr", None)
    assert isinstance(choose_observer(quiet=False), NullObserver)
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr("sys.stderr", closed)
    choose_observer(quiet=False).phase("counting", 3, "arcs")
    monkeypatch.setattr("sys.stderr", log := Log())
    observer = choose_observer(quiet=False)
    observer.phase("counting", 3, "arcs")
    assert "counting" in log.text
    log.full = True
    observer.phase("listing", 3, "arcs")
    assert "listing" not in log.text


def test_progress_that_cannot_be_shown_ends_nothing():
    class Broken(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    observer = LastingObserver(PlainObserver(Broken(), interval=0.0))
    observer.phase("mining", 400, "tasks")
    observer.advance(1)
    observer.note("a note")
    observer.close()
    assert isinstance(observer.observer, NullObserver)
