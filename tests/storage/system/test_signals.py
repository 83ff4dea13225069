"""Handlers of signals: the innermost context's is called, and the caller's own are back at the end."""

import signal
import subprocess
import sys

import pytest

from longwall.storage.system import signals

# At one moment after another, an exception of a user's handler ends contexts that handle the other signals.
STRIKE = """
import gc, signal
from longwall.storage.system.signals import interrupted_by, interrupting, undisturbed
class Late(Exception):
    pass
def raise_late(number, frame):
    raise Late
signal.signal(signal.SIGALRM, raise_late)
ours = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
before = [signal.getsignal(number) for number in ours]
heard = []
def interrupted():
    try:
        with interrupted_by(lambda: heard.append(True)):
            signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        return heard.pop()
struck = 0
for microseconds in [*range(1, 200), *range(1, 200)]:
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, microseconds * 1e-6)
            for _ in range(4):
                with interrupting(), interrupted_by(lambda: None, ""):
                    with undisturbed():
                        pass
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except Late:
        struck += 1
        gc.collect()  # a context of contextlib may keep its exception in a circle
    assert interrupted()
    with undisturbed():
        pass
    assert [signal.getsignal(number) for number in ours] == before, microseconds
print(struck)
"""


def test_a_strangers_exception_leaves_no_handler_in_place():
    done = subprocess.run([sys.executable, "-c", STRIKE], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10


def test_the_innermost_context_is_called_even_after_one_that_ended_late():
    heard = []
    late = signals.interrupted_by(lambda: heard.append("late"))
    inner = signals.interrupted_by(lambda: heard.append("inner"))
    before = signal.getsignal(signal.SIGINT)
    late.__enter__()
    inner.__enter__()
    late.__exit__(None, None, None)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    inner.__exit__(None, None, None)
    assert heard == ["inner"]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_handler_of_the_user_inside_stays_in_place():
    def own(number, frame):
        raise AssertionError

    before = signal.getsignal(signal.SIGINT)
    try:
        with signals.undisturbed():
            signal.signal(signal.SIGINT, own)
        assert signal.getsignal(signal.SIGINT) is own
    finally:
        signal.signal(signal.SIGINT, before)
