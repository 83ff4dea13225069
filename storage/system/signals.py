"""The signals that end work in order: SIGTERM and SIGHUP raise KeyboardInterrupt, as Ctrl-C does."""

import _thread
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from types import FrameType
from typing import Any

from longwall.storage.errors import InputError, RunError
from longwall.storage.system.first_signals import ENDING, PYTHONS, leave
from longwall.storage.system.plain_text import harmless_lines

_Handler = Callable[[int, FrameType | None], None]

_COMPILING = "numba:compiler_lock"  # a thread takes the lock, or frees it
_CALLBACKS = "_raw_object_cache_"  # of llvmlite
_IMPORTS, _CALLS_DEEP = "<frozen importlib", 4  # files of Python's own; the locks of modules call what is no deeper
_AGAIN_SECONDS = 0.01
_PATIENT_SECONDS = 4.0  # that work may take to end before a second signal ends the process
_later: object = None  # stands for a signal that came while Python imported, until it comes again
_last = signal.SIGINT
_raised = False  # one of the signals raised KeyboardInterrupt, since `interrupting` was entered
_holding = False  # see `held_back`
_held = False  # a signal came meanwhile
_handlers: list[_Handler] = []  # of contexts that have not ended, the innermost last
_before: dict[signal.Signals, Any] = {}  # the handlers that `_dispatch` replaces


def last_signal() -> signal.Signals:
    """Return the signal that raised KeyboardInterrupt last."""
    return _last


def exit_code() -> int:
    """Return the exit code of a program that this signal ended, as shells number it."""
    return 128 + _last


def _raise(number: int, frame: FrameType | None) -> None:
    global _last, _raised, _held
    _last = signal.Signals(number)
    _raised = True
    if _holding:
        _held = True
        return
    if _importing(frame):
        _raise_later(number)
        return
    _forget_later()  # the same interrupt for what is interrupted
    if _in_callback(frame):
        _raise_when_compiled()
    else:
        raise KeyboardInterrupt


def _importing(frame: FrameType | None) -> bool:
    """Say whether Python itself imports a module: an exception there may leave the module locked for other threads."""
    while frame is not None and frame.f_code.co_filename == __file__:  # a handler, which another signal interrupts
        frame = frame.f_back
    for _ in range(_CALLS_DEEP):
        if frame is None or frame.f_code.co_name == "<module>":  # what is imported, which an exception may end
            return False
        if frame.f_code.co_filename.startswith(_IMPORTS):
            return True
        frame = frame.f_back
    return False


def _raise_later(number: int) -> None:
    """Let a signal come again soon, once however many come until then."""
    global _later
    if _later is not None:
        return
    _later = this = object()
    main = threading.get_ident()

    def come_again() -> None:
        time.sleep(_AGAIN_SECONDS)
        if _forget_later(this):
            signal.pthread_kill(main, number)

    try:
        _thread.start_new_thread(come_again, ())  # a `Thread` takes locks, which the main thread may hold
    except RuntimeError as error:  # there is no room for a thread
        _later = None
        raise KeyboardInterrupt from error


def _forget_later(one: object = None) -> bool:
    """Forget the signal that is to come again, or that one; return whether there was one.

    Where `one` is not given, only the main thread does: the signal is for it.
    """
    global _later
    there = _later is not None and (_in_main_thread() if one is None else _later is one)
    if there:
        _later = None
    return there


def _in_callback(frame: FrameType | None) -> bool:
    """Say whether LLVM hands over a kernel: it swallows exceptions then, and the kernel stays half made."""
    while frame is not None:
        if frame.f_code.co_name.startswith(_CALLBACKS):
            return True
        frame = frame.f_back
    return False


@cache
def _raise_when_compiled() -> None:
    events: Any = import_module("numba.core.event")

    class Ending(events.Listener):  # type: ignore[misc]
        def on_start(self, event: object) -> None:
            """Let the compiler begin what belongs to the same kernel."""

        def on_end(self, event: object) -> None:  # noqa: ARG002 - the base class's signature
            if _in_main_thread() and not _in_callback(sys._getframe()):
                events.unregister(_COMPILING, self)
                _raise_when_compiled.cache_clear()
                raise KeyboardInterrupt

    events.register(_COMPILING, Ending())


@contextmanager
def interrupting() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise KeyboardInterrupt where they would end the process at once.

    Where the caller handles or ignores them (``nohup`` ignores SIGHUP), they stay as they are. Once one of the signals
    has come, finalizers that fail print nothing: the objects of a compiler that was interrupted are half made. Signals
    interrupt the main thread only; in others nothing is done.
    """
    global _last, _raised
    if not _in_main_thread():
        yield
        return
    _last = signal.SIGINT
    _raised = False
    report = sys.unraisablehook

    def report_before_a_signal(failure: "sys.UnraisableHookArgs") -> None:
        if not _raised:
            report(failure)

    sys.unraisablehook = report_before_a_signal
    try:
        with _handled(_raise, (*PYTHONS, leave)):
            yield
    finally:
        if sys.unraisablehook is report_before_a_signal:  # else `ignore` was called
            sys.unraisablehook = report


@contextmanager
def unwrapped() -> Iterator[None]:
    """Raise KeyboardInterrupt in place of what others make of it, once one of the signals has raised it.

    Pydantic, and Python 3.11 where it makes a class, raise an error of their own then.
    """
    try:
        yield
    except (InputError, RunError, MemoryError, OSError):
        raise
    except Exception as error:
        if _raised and _in_main_thread():
            raise KeyboardInterrupt from error
        raise


@contextmanager
def interrupted_by(interrupt: Callable[[], None], how_to_go_on: str | None = None) -> Iterator[None]:
    """Call `interrupt` at each signal; the first signal also raises KeyboardInterrupt.

    If a second signal raised it, too, threads could be left behind that the handling of the first one waits for.

    Parameters
    ----------
    interrupt
        Makes the work end soon that the main thread waits for.
    how_to_go_on
        The command that a second signal prints as it ends the process; "" where nothing is kept. A second signal ends
        the process only if the work had time to end: code of users may never return. None: no further signal ends the
        process.
    """
    raised = False
    waiting = None if how_to_go_on is None else _Waiting(how_to_go_on)

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal raised
        interrupt()
        if not raised:
            raised = not _importing(frame)  # else it comes again
            if raised and waiting is not None:
                waiting.begin()
            _raise(number, frame)
        elif waiting is not None:
            waiting.urge(number)

    try:
        with _handled(handle):
            yield
    except BaseException as error:
        if _forget_later() and not isinstance(error, KeyboardInterrupt):  # which it asked for
            raise KeyboardInterrupt from error
        raise
    finally:
        if waiting is not None:
            waiting.over = True
    if _forget_later():
        raise KeyboardInterrupt


@contextmanager
def held_back() -> Iterator[None]:
    """Delay KeyboardInterrupt to the end of the context; the function of `interrupted_by` is still called at once.

    That call tells the work inside, which must not be left in the middle, to end.
    In another such context, which an observer may enter by a count of its own, the outer one raises.
    """
    global _holding, _held
    if _holding or not _in_main_thread():
        yield
        return
    _holding, _held = True, False
    try:
        yield
    finally:
        _holding = False
        if _held:
            raise KeyboardInterrupt


class _Waiting:
    """The time within which work must end after a signal.

    Parameters
    ----------
    how_to_go_on
        The command that is printed if the process ends before the work has ended; "": none.

    Attributes
    ----------
    over
        Whether the work has ended.
    """

    def __init__(self, how_to_go_on: str) -> None:
        self.over = False
        self._how_to_go_on = how_to_go_on
        self._patient = True
        self._urged: int | None = None

    def begin(self) -> None:
        """Start the time."""
        with suppress(RuntimeError):  # there is no room for a thread: the next signal is as good
            _thread.start_new_thread(self._wait, ())

    def urge(self, number: int) -> None:
        """Take a further signal: the process ends at once if the time is over, else as soon as it is."""
        if hasattr(sys, "ps1") and number == signal.SIGINT:  # a person's session, which is more than this work
            return
        self._urged = number
        if not self._patient:
            self._leave(number)

    def _wait(self) -> None:
        time.sleep(_PATIENT_SECONDS)
        self._patient = False
        if self.over:
            return
        if self._urged is not None:
            self._leave(self._urged)
        self._say("\nwaiting for work that has not ended yet; interrupt again to end at once")

    def _leave(self, number: int) -> None:
        kept = f"; the finished part is kept; go on with: {self._how_to_go_on}" if self._how_to_go_on else ""
        self._say(f"\ninterrupted: ended at once{kept}")
        os._exit(128 + number)

    def _say(self, text: str) -> None:
        with suppress(OSError):  # not by `print`: the thread that this one interrupts may be printing
            os.write(2, f"{harmless_lines(text)}\n".encode(errors="backslashreplace"))


@contextmanager
def undisturbed() -> Iterator[None]:
    """Take none of the signals while an end is recorded or things are removed, which half done would be no end.

    It must be over soon.
    """
    with _handled(lambda number, frame: None):  # noqa: ARG005 - the signal module's signature
        yield


def ignore() -> None:
    """Take none of the signals any more: all is said, and Python's own end would end in a traceback."""
    for number in ENDING if _in_main_thread() else ():
        if signal.getsignal(number) in (signal.default_int_handler, _dispatch):
            signal.signal(number, signal.SIG_IGN)
    if _raised:
        sys.unraisablehook = lambda failure: None  # noqa: ARG005 - the hook's signature


@contextmanager
def _handled(handler: _Handler, replacing: tuple[object, ...] = (signal.default_int_handler,)) -> Iterator[None]:
    """Let a function handle signals that have a handler of `replacing`, or that a context around this one handles.

    After an exception of a user's handler, a context may not end before the exception is gone, and other contexts may
    have begun since. So each context removes its own entry, and `_dispatch` calls the last one that is left. Signals
    belong to the main thread; in other threads this does nothing.
    """
    if not _in_main_thread():
        yield
        return

    def entry(number: int, frame: FrameType | None) -> None:  # one of its own: contexts may share a handler
        handler(number, frame)

    try:
        _handlers.append(entry)
        for number in ENDING:
            if signal.getsignal(number) in replacing:
                _before[number] = signal.getsignal(number)
                signal.signal(number, _dispatch)
        yield
    finally:
        _handlers.remove(entry)  # first, and by one call: a signal may raise after any call
        if not _handlers:
            for number, was in _before.items():
                if signal.getsignal(number) is _dispatch:  # else `ignore` was called, or a user's `signal.signal`
                    signal.signal(number, was)


def _dispatch(number: int, frame: FrameType | None) -> None:
    if _handlers:
        _handlers[-1](number, frame)
        return
    was = _before[signal.Signals(number)]  # an exception of a user's handler kept it from being put back
    signal.signal(number, was)
    if callable(was):
        was(number, frame)
    else:
        signal.raise_signal(number)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
