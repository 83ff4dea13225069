"""Calls of users' own methods; what they raise becomes one line that says where."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

from longwall.kernels.interface.engine import EngineLost, ShortOfMemory, WorkspaceTooLarge
from longwall.pipeline.workloads.custom.error_text import line_of, said
from longwall.storage.errors import FinalError, InputError, RunError

if TYPE_CHECKING:
    from longwall.pipeline.workloads.custom.algorithm import Algorithm

# What is said of these is right already, or other places know what to do.
_OURS = (InputError, RunError, ShortOfMemory, WorkspaceTooLarge, EngineLost, MemoryError)


def call(
    algorithm: Algorithm,
    method: str,
    *arguments: Any,
    faults: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Any:
    """Call a method of an algorithm.

    Parameters
    ----------
    algorithm, method, *arguments
        What is called.
    faults
        Raises errors of the engine's libraries as the engine's; see `Engine`.

    Raises
    ------
    FinalError
        If the method raises an error; it would again if the run was resumed.
    """
    try:
        with faults():
            return getattr(algorithm, method)(*arguments)
    except _OURS:
        raise
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # SystemExit, too: it would end a worker, or the program, without a message
        title = f"{type(algorithm).__name__}.{method}"
        raise FinalError(f"{_place(error, getattr(type(algorithm), method))}{title} raised {said(error)}") from error


def _place(error: BaseException, function: Any) -> str:
    if not isinstance(function, FunctionType):
        return ""
    file = function.__code__.co_filename
    line = line_of(error, file)
    return "" if line is None else f"{Path(file).name}, line {line}: "
