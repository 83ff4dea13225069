"""Where compiled kernels are kept: Numba's cache holds pickles and machine code, so it lies in a private folder.

Numba itself would keep them beside the sources, in the user's cache folder, or where ``NUMBA_CACHE_DIR`` says, also in
places that others can write to, and would raise where it cannot write.
"""

import fcntl
import inspect
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from longwall.kernels.jit import machine_code
from longwall.kernels.jit.argument_types import text_of_types
from longwall.kernels.jit.private_folder import CacheFolder, cache_folder, cache_notes

_KERNELS = Path(__file__).parents[1]
_IMPORTED = re.compile(rb"^from longwall\.kernels\.([\w.]+) import", re.MULTILINE)
_STATE = re.compile(r"\w+_[0-9a-f]{16}")
_STATES = 8  # of the sources of a folder: of several versions and checkouts, whose kernels are kept


def _folder() -> CacheFolder:
    found = _opened_folder()
    if not found.is_open():
        _opened_folder.cache_clear()
        found = _opened_folder()
    return found


@cache
def _opened_folder() -> CacheFolder:
    return cache_folder("NUMBA_CACHE_DIR", "kernels")


def cache_note() -> str:
    """Return why compiled kernels are not kept where one would expect it, for the user; else nothing."""
    _folder()
    return cache_notes()


def cached(dispatcher: Any) -> Any:
    """Let a Numba dispatcher keep its machine code on disk where that can be done; else it is kept in memory only.

    Parameters
    ----------
    dispatcher
        What ``numba.njit`` returns without ``cache=True``.
    """
    source = Path(inspect.getfile(dispatcher.py_func))
    if _folder().path is not None and source.exists():
        dispatcher._cache = _cache_class()(dispatcher.py_func)
    return dispatcher


def load_machine_code(function: Callable[..., Any], kinds: str) -> Callable[..., Any] | None:
    """Return a kernel whose machine code is on disk; None where it is not there, or cannot be used without Numba."""
    path = machine_code_path(function, kinds)
    return None if path is None else machine_code.load(path, function)


def machine_code_path(function: Callable[..., Any], kinds: str) -> str | None:
    """Return where the machine code of a kernel lies once it is compiled; None where it is not kept apart from Numba.

    Parameters
    ----------
    function
        The source of the kernel.
    kinds
        Of the arguments; see :mod:`longwall.kernels.jit.argument_types`.
    """
    source = Path(inspect.getfile(function))
    if _folder().path is None or not source.exists():
        return None
    name = machine_code.file_name(_base(function), kinds)
    return None if name is None else f"{_place(source)}/{name}"


def _place(source: Path) -> str:
    """Return the cache folder of the kernels of a source folder: its name depends on the content, not on the path."""
    sources = source.absolute().parent
    return f"/proc/self/fd/{_folder().descriptor}/{sources.name}_{_stamp(sources)}"


def _base(function: Callable[..., Any]) -> str:
    """Return how the names of a kernel's files begin; the stamp lets none be of other sources."""
    source = Path(inspect.getfile(function))
    return f"{source.stem}.{function.__qualname__}-{function.__code__.co_firstlineno}.{_stamp(source.parent)}"


@cache
def _stamp(folder: Path) -> str:
    """Return a hash of a folder's sources and all that they import: compiled kernels contain those that they call."""
    found = [*sorted(folder.parent.glob("*.py")), *sorted(folder.glob("*.py"))]
    for path in found:  # which grows meanwhile
        found += [imported for imported in _source(path)[1] if imported not in found]
    return sha256(b"".join(_source(path)[0] for path in found)).hexdigest()[:16]


@cache
def _source(path: Path) -> tuple[bytes, list[Path]]:
    """Return a hash of a module with its name, and the modules below ``kernels`` that it imports."""
    content = path.read_bytes()
    names = [name.decode().split(".") for name in _IMPORTED.findall(content)]
    imported = [_KERNELS.joinpath(*name).with_suffix(".py") for name in names]
    return sha256(path.name.encode() + b" " + content).digest(), [one for one in imported if one.exists()]


@cache
def _cache_class() -> Callable[[Any], Any]:
    """Return the class of caches; Numba is imported by those who compile only."""
    from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator

    class Locator(_CacheLocator):
        """Says where the kernels of a source file lie."""

        def __init__(self, function: Any, source: str):
            self._line, self._py_file = function.__code__.co_firstlineno, source
            self._path = _place(Path(inspect.getfile(function)))

        def get_cache_path(self) -> str:
            return self._path

        def get_source_stamp(self) -> str:
            return _stamp(Path(self._py_file).parent)

        def get_disambiguator(self) -> str:
            # Part of the name, so that no index ever names the data of other sources.
            return f"{self._line}.{self.get_source_stamp()}"

        @classmethod
        def from_function(cls, function: Any, source: str) -> "Locator":
            return cls(function, source)

    class Implementation(CompileResultCacheImpl):
        _locator_classes = [Locator]  # noqa: RUF012 - as in its base class

    class KernelCache(FunctionCache):
        """Numba's cache of a function, which may fail: the function is compiled then, or stays in memory."""

        _impl_class = Implementation

        def load_overload(self, signature: Any, target: Any) -> Any:
            path = self._machine_code(signature)
            if self._is_elsewhere():
                return None
            if path is not None and not os.path.exists(path):  # noqa: PTH110 - never raises
                return None  # both are written then
            try:
                return super().load_overload(signature, target)
            except MemoryError:
                raise
            except Exception:  # whatever reading damaged pickles raises
                self._forget()
                return None

        def save_overload(self, signature: Any, result: Any) -> None:
            if self._is_elsewhere():
                return
            try:
                path = Path(self.cache_path)
                is_new = not path.exists()
                path.mkdir(mode=0o700, exist_ok=True)
                with _locked(path):
                    super().save_overload(signature, result)
                    if (file := self._machine_code(signature)) is not None:
                        machine_code.save(file, result)
                if is_new:
                    _remove_old(path)
            except OSError:  # a full disk, or no locks: it stays in memory
                return

        def _is_elsewhere(self) -> bool:
            """Return whether the program has closed the descriptor in the path, which may now refer to any folder."""
            return bool(self.cache_path != _place(Path(inspect.getfile(self._py_func))))

        def _machine_code(self, signature: Any) -> str | None:
            """Return the path of the file with the machine code alone, if there is to be one."""
            kinds = text_of_types(signature)
            name = None if kinds is None else machine_code.file_name(_base(self._py_func), kinds)
            return None if name is None else f"{self.cache_path}/{name}"

        def _forget(self) -> None:
            try:
                self.flush()
            except OSError:
                self.disable()

    return KernelCache


def unused_states(packages: Iterable[Path]) -> list[Path]:
    """Return the folders of compiled kernels whose sources are not those in given packages: no run here reads them."""
    folder = _folder().path
    if folder is None:
        return []
    sources = {path.parent for package in packages for path in package.rglob("*.py")}
    used = {f"{one.name}_{_stamp(one)}" for one in sources}
    found = (one for one in sorted(folder.iterdir()) if _STATE.fullmatch(one.name) and one.name not in used)
    return [one for one in found if one.is_dir() and not one.is_symlink()]


def remove_state(state: Path) -> None:
    """Remove a folder of compiled kernels, when no process is writing to it."""
    with _locked(state):
        shutil.rmtree(state, ignore_errors=True)


def _remove_old(place: Path) -> None:
    """Remove the kernels of all but the newest states of the sources of a folder."""
    states = sorted(
        place.parent.glob(f"{place.name.rpartition('_')[0]}_{'[0-9a-f]' * 16}"), key=lambda state: state.stat().st_mtime
    )
    for state in states[:-_STATES]:
        shutil.rmtree(state, ignore_errors=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other processes from changing an index at the same time: each would lose what the other adds."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
