"""Progress: lines when piped, a bar on a terminal, nothing when quiet."""

import io
import re
import threading

import pytest

from longwall.pipeline.progress.observers import LastingObserver, PlainObserver, choose_observer
from longwall.pipeline.progress.progress_bar import TerminalObserver
from longwall.pipeline.progress.progress_text import duration, progress_text
from longwall.storage.observer import NullObserver


@pytest.mark.parametrize(
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
    assert "0:00 left" in str(terminal._progress.columns[-1].render(task))
    terminal.close()


def test_the_choice(monkeypatch):
    assert isinstance(choose_observer(quiet=True), NullObserver)
    assert isinstance(choose_observer(quiet=False).observer, PlainObserver)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert isinstance(choose_observer(quiet=False).observer, TerminalObserver)


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
