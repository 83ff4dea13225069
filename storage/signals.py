"""The signals that end work in order: SIGTERM and SIGHUP raise KeyboardInterrupt, as Ctrl-C does."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_last = signal.SIGINT
_in_place: list[Callable[[int, FrameType | None], None]] = []  # handlers of `_handled`, the innermost last


def last_signal() -> signal.Signals:
    """Return the signal that raised KeyboardInterrupt last."""
    return _last


def exit_code() -> int:
    """Return the exit code of a program that this signal ended, as shells number it."""
    return 128 + _last


def _raise(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signal module's signature
    global _last
    _last = signal.Signals(number)
    raise KeyboardInterrupt


@contextmanager
def interrupting() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise KeyboardInterrupt where they would end the process at once.

    Where the caller handles or ignores them (``nohup`` ignores SIGHUP), they stay as they are.
    """
    global _last
    _last = signal.SIGINT  # which Python's own handler takes, and does not set
    main = threading.current_thread() is threading.main_thread()
    taken = [number for number in _ENDING if main and signal.getsignal(number) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, _raise)
    try:
        yield
    finally:
        for number in taken:
            if signal.getsignal(number) is _raise:  # else `ignore` was called
                signal.signal(number, signal.SIG_DFL)


@contextmanager
def interrupted_by(interrupt: Callable[[], None]) -> Iterator[None]:
    """Call a function before one of the signals raises KeyboardInterrupt, which only the first one does.

    A second one could leave threads behind that the first one's handling waits for.

    Parameters
    ----------
    interrupt
        Makes what the main thread waits for end soon.
    """
    raised = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal raised
        interrupt()
        if not raised:
            raised = True
            _raise(number, frame)

    with _handled(handle):
        yield


@contextmanager
def undisturbed() -> Iterator[None]:
    """Take none of the signals while an end is recorded or things are removed, which half done would be no end.

    It must be over soon.
    """
    with _handled(lambda number, frame: None):  # noqa: ARG005 - the signal module's signature
        yield


def ignore() -> None:
    """Take none of the signals any more: all is said, and Python's own end would end in a traceback."""
    for number in _ours():
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def _handled(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in _ours()}
    _in_place.append(handler)
    try:
        yield
    finally:
        _in_place.remove(handler)
        for number, was in before.items():
            signal.signal(number, was)


def _ours() -> list[signal.Signals]:
    """Return those that raise KeyboardInterrupt here: they belong to the main thread, and to a caller with handlers."""
    if threading.current_thread() is not threading.main_thread():
        return []
    return [
        number for number in _ENDING if signal.getsignal(number) in (signal.default_int_handler, _raise, *_in_place)
    ]
