"""Find the class of an algorithm: in a file beside the config, on the import path, or as it was given to Longwall.

A file that a config names is code. It is loaded once in each process, when the config is checked; its checksum goes
into the plan, so that all processes of a run, and all its attempts, have the same.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from longwall.pipeline.workloads.custom.error_text import line_of, said
from longwall.storage.errors import InputError

if TYPE_CHECKING:
    from longwall.pipeline.workloads.custom.algorithm import Algorithm

_given: dict[str, type[Algorithm]] = {}
"""The classes that were given to `longwall.run` in this process, by name."""


@dataclass(frozen=True)
class AlgorithmClass:
    """The class of an algorithm, by name: what a request to another process carries.

    Attributes
    ----------
    name
        ``"<file>.py:<class>"`` or ``"<module>:<class>"``.
    sha256
        Of the file; empty where there is none, as in a notebook.
    """

    name: str
    sha256: str

    def make(self, parameters: dict[str, Any]) -> Algorithm:
        """Make an object of the class in this process.

        Raises
        ------
        InputError
            If the class is not there, is another one, or does not take these parameters.
        """
        made, sha256 = find_class(self.name)
        if sha256 != self.sha256:
            raise InputError(f"{self.name}: this file is another one here than where the run was started: copy it")
        try:
            return made(**parameters)
        except (Exception, SystemExit) as error:
            raise InputError(
                f"workload.parameters: {made.__name__} does not take them ({type(error).__name__}: {error})"
            ) from error


class GivenName(str):
    """The name of a class that was given itself, not by name: other processes get the plain name.

    Several classes may have one name, for example if a function makes them, or a cell of a notebook runs again.
    """

    given: type[Algorithm]

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)


def name_class(given: type[Algorithm]) -> GivenName:
    """Return the name of a class that was given itself; a run that is resumed uses the last class of this name."""
    name = GivenName(f"{given.__module__}:{given.__qualname__}")
    name.given = _given[str(name)] = given
    return name


def split_name(name: str) -> tuple[str, str]:
    """Return the file or the module, and the class, that a name has.

    Raises
    ------
    InputError
        If the name has another form.
    """
    place, colon, title = name.rpartition(":")
    if not colon or not place or not title.isidentifier():
        raise InputError('write it as "my_module.py:MyClass" or "package.module:MyClass"')
    return place, title


def find_class(name: str) -> tuple[type[Algorithm], str]:
    """Return the class of a name, and the checksum of its file.

    Raises
    ------
    InputError
        If it cannot be loaded, or is no `longwall.Algorithm`.
    """
    from longwall.pipeline.workloads.custom.algorithm import Algorithm

    if name in _given:
        given = name.given if isinstance(name, GivenName) else _given[name]
        return given, _sha256(getattr(sys.modules.get(given.__module__), "__file__", None))
    place, title = split_name(name)
    if place == "__main__":
        raise InputError(
            f"{title} is defined in a script or a notebook, which other processes cannot load: put it into a file, and "
            'write "file.py:' + title + '"'
        )
    module, sha256 = _load_file(place) if place.endswith(".py") else _load_module(place)
    found = getattr(module, title, None)
    if found is None:
        raise InputError(f"{place} has no class {title}")
    if not (isinstance(found, type) and issubclass(found, Algorithm)):
        raise InputError(f"{place}: {title} must be a class that is derived from longwall.Algorithm")
    if found.__abstractmethods__:
        raise InputError(f"{place}: {title} lacks the method {', '.join(sorted(found.__abstractmethods__))}")
    return found, sha256


def _load_file(place: str) -> tuple[ModuleType, str]:
    path = Path(place)
    if not path.is_file():
        raise InputError(f"there is no file {place}; it must lie beside the config")
    content = path.read_bytes()
    return _executed(path, content), hashlib.sha256(content).hexdigest()


@cache
def _executed(path: Path, content: bytes) -> ModuleType:
    """Execute the content of a file as a module, once."""
    name = f"longwall_algorithm_{path.stem}_{hashlib.sha256(content).hexdigest()[:16]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None, "its name ends with .py"
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # classes of the file can be pickled, and Numba finds its functions
    try:
        exec(compile(content, str(path), "exec"), module.__dict__)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise InputError(f"{path} cannot be loaded: {_fault(error, path)}") from error
    return module


@cache
def _load_module(name: str) -> tuple[ModuleType, str]:
    try:
        module = importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise InputError(f"the module {name} cannot be imported: {type(error).__name__}: {error}") from error
    return module, _sha256(module.__file__)


def _fault(error: BaseException, path: Path) -> str:
    """Return what went wrong, and in which line of the file."""
    line = line_of(error, str(path))
    return said(error) if line is None else f"line {line}: {said(error)}"


def _sha256(file: str | None) -> str:
    """Return the checksum of a module's file; empty where there is none."""
    path = None if file is None else Path(file)
    return hashlib.sha256(path.read_bytes()).hexdigest() if path is not None and path.is_file() else ""
