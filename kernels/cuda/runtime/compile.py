"""Compile the CUDA sources of this package: in one place, once per device, source and generated header."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import cache, partial
from importlib.resources import files
from threading import Lock
from typing import Any

from longwall.kernels.cuda.runtime.constants import constants_header
from longwall.kernels.jit.compile_clock import COMPILING

OPTIONS = ("-std=c++17",)
_INCLUDE = re.compile(r'^#include "([\w/]+\.cuh)"\n', re.MULTILINE)


def source_text(name: str, generated: str = "") -> tuple[str, tuple[str, ...]]:
    """Return the whole source text of a compilation unit.

    CuPy's cache on disk knows a kernel by its text, so headers must be part of it.

    Parameters
    ----------
    name
        File below this package, for example ``"search/count_rows.cu"``.
    generated
        What stands for ``generated.cuh``.

    Returns
    -------
    text : str
        C++17 source; every header stands where it is first included.
    options : tuple of str
        Options for NVRTC or nvcc.
    """
    folder = files("longwall.kernels.cuda")
    written = {"constants.cuh": constants_header(), "generated.cuh": generated}
    seen: set[str] = set()

    def read(file: str) -> str:
        if file in seen:
            return ""
        seen.add(file)
        if file in written:
            text = written[file]
        else:
            text = folder.joinpath("include" if "/" not in file and file.endswith(".cuh") else "", file).read_text()
        return _INCLUDE.sub(lambda match: read(match[1]), text.replace("#pragma once\n", ""))

    return read(name), OPTIONS


_listeners: list[Callable[[], None]] = []


@contextmanager
def watch_compilation(report: Callable[[], None]) -> Iterator[None]:
    """Call `report` once if a source is compiled, or loaded from CuPy's cache, while the context is open."""

    def once() -> None:
        _listeners.remove(once)
        report()

    _listeners.append(once)
    try:
        yield
    finally:
        if once in _listeners:
            _listeners.remove(once)


_modules: dict[tuple[int, str, str], Future[Any]] = {}
_guard = Lock()


def _module(device: int, name: str, generated: str, waits: Callable[[], None]) -> Any:
    """Return a module, which one thread compiles, and others wait for."""
    key = device, name, generated
    with _guard:
        others = _modules.get(key)
        mine = _modules[key] = others or Future()
    if others is not None:
        if not others.done():
            waits()
        if isinstance(others.exception(), Exception | None):
            return others.result()
        return _module(*key, waits)  # the interrupt was meant for the thread that compiled, not for this one
    COMPILING.begin()
    try:
        waits()
        mine.set_result(_compiled(*key))
    except BaseException as error:  # the next one tries again
        with _guard:
            del _modules[key]
        mine.set_exception(error)
    finally:
        COMPILING.end()
    return mine.result()


def _compiled(device: int, name: str, generated: str) -> Any:
    import cupy

    text, options = source_text(name, generated)
    with cupy.cuda.Device(device):
        made = cupy.RawModule(code=text, options=options, backend="nvrtc")
        made.compile()  # else it would be done where a kernel of it is first asked for
    return made


def _report() -> None:
    for report in list(_listeners):
        report()


def kernel(name: str, function: str, generated: str = "", device: int | None = None) -> Any:
    """Return a kernel, compiled if it is not in the cache.

    Parameters
    ----------
    name, generated
        See :func:`source_text`.
    function
        Name of the kernel.
    device
        Number of its device; None: the current one.

    Returns
    -------
    cupy.RawKernel
    """
    if device is None:
        import cupy

        device = cupy.cuda.Device().id
    return _function(device, name, function, generated)


def compilations(device: int, sources: Iterable[tuple[str, str]]) -> list[Callable[[], object]]:
    """Return a function for each source that is not loaded on a device, the longest generated headers first.

    The function compiles its source. An error is left to the launch, which compiles the source again.
    """

    def compile_one(name: str, generated: str) -> None:
        with suppress(Exception):
            _module(device, name, generated, lambda: None)

    missing = [source for source in sources if (device, *source) not in _modules]
    missing.sort(key=lambda source: (-len(source[1]), source))
    return [partial(compile_one, *source) for source in missing]


@cache
def _function(device: int, name: str, function: str, generated: str) -> Any:
    return _module(device, name, generated, _report).get_function(function)


def forget() -> None:
    """Let every source be compiled again, or loaded from CuPy's cache."""
    with _guard:
        _modules.clear()
        _function.cache_clear()


def constants(values: Mapping[str, int]) -> str:
    """Write integers as C++ constants, for a generated header."""
    return "".join(f"constexpr int {name} = {value};\n" for name, value in values.items())


def array(declaration: str, rows: Sequence[Sequence[int | str]]) -> str:
    """Write a C++ array of integers, enumerators or aggregates of them, for a generated header.

    Parameters
    ----------
    declaration
        Type, name and extents, for example ``"Level kLevels[]"``.
    rows
        The elements' fields; one element of zeros stands in for none, since C++ has no empty arrays.
    """
    body = ", ".join("{" + ", ".join(map(str, row)) + "}" for row in rows)
    return f"constexpr {declaration} = {{{body or '{}'}}};\n"
