"""Exceptions. Every message is one line for the user, never a traceback."""

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

_Arguments = ParamSpec("_Arguments")
_Found = TypeVar("_Found")
_NO_FOLDER = "the working folder of this process was removed: change to another one"
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Numbers of the system's errors for a disk, a quota or a file that takes no more."""


class InputError(Exception):
    """The user's input (config, file, argument) is wrong: exit code 2.

    The message says what is wrong, where (file, line, key) and what to do.
    """

    keys: tuple[str, ...] = ()
    """The keys of a config that are wrong; empty if the error is not about the keys of a config."""


class StillNeeded(InputError):
    """One way to read an input failed and another follows, so the copy of an input at a URL must stay on disk."""


class RunError(Exception):
    """A valid run could not finish (memory, disk, device): exit code 1."""

    run = ""
    """The folder or URL of the run, if it can be resumed."""


class Interrupted(KeyboardInterrupt):
    """A run was interrupted; its message says how to go on with it."""

    run = ""
    """The folder or URL of the run."""


class ArgumentError(TypeError):
    """A function has no argument of the name that a call gives."""


class FinalError(RunError):
    """A run could not finish, and resuming it would not help."""


def not_written(what: str, error: OSError, advice: str) -> InputError | FinalError:
    """Return the error for something that cannot be written; if the disk is full, no input is wrong."""
    reason = error.strerror or error
    if error.errno in FULL:
        return FinalError(f"{what} ({reason}): free some space there, or {advice}")
    return InputError(f"{what} ({reason}): {advice}")


def _is_without_folder(error: OSError) -> bool:
    """Say whether an error, which names no file, comes from a process whose working folder was removed."""
    if error.filename is not None:
        return False
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


def reason_of(error: BaseException) -> str:
    """Return why something failed, as a clause without a full stop."""
    if isinstance(error, MemoryError):
        return f"out of memory ({error or 'allocation failed'}): lower memory.host or use a machine with more"
    if isinstance(error, OSError):
        if _is_without_folder(error):
            return _NO_FOLDER
        where = f" at {error.filename}" if error.filename else ""
        return f"the system refused to go on{where}: {error.strerror or error}"
    return str(error)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add the path of the file that is written to errors of the system: those of a full disk lack it.

    Parameters
    ----------
    path
        Of the file.
    """
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def one_frame(function: Callable[_Arguments, _Found]) -> Callable[_Arguments, _Found]:
    """Let a function that users call raise without the frames below it if the message says it all.

    That holds for wrong input and for an interrupt. Other errors keep their frames: those of a run that fails, and of
    a fault of our own.
    """

    @wraps(function)
    def call(*arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Found:
        try:
            return function(*arguments, **named)
        except (InputError, ArgumentError, KeyboardInterrupt) as error:
            raise error.with_traceback(None) from None
        except FileNotFoundError as error:
            if _is_without_folder(error):
                raise InputError(_NO_FOLDER) from None
            raise

    return call
