"""A package as a table of functions, each imported when it is first asked for."""

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any


def lazy_table(package: str) -> Callable[[str], Any]:
    """Make the ``__getattr__`` of a package that imports functions under ``if TYPE_CHECKING:``.

    These imports are the table: type checkers read them as they stand, and a program imports a module of them when it
    first asks for the function.

    Parameters
    ----------
    package
        Its name.
    """
    source = Path(str(sys.modules[package].__file__))
    table = {
        alias.asname or alias.name: (str(line.module), alias.name)
        for block in ast.parse(source.read_text()).body
        if isinstance(block, ast.If)
        for line in block.body
        if isinstance(line, ast.ImportFrom)
        for alias in line.names
    }

    modules: dict[str, ModuleType] = {}  # `import_module` takes 10 us even for a loaded module

    def find(name: str) -> Any:
        if name not in table:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, function = table[name]
        if module not in modules:
            modules[module] = import_module(module)
        found = getattr(modules[module], function)
        setattr(sys.modules[package], name, found)  # so that the next look-up takes 4 us less
        return found

    return find
