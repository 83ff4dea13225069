"""The machine code of kernels on disk, as it is loaded without Numba, whose import takes longer than a small run.

What Numba compiles for one kind of arguments is one ELF object that needs nothing else of Numba than two of its
extension modules, which are helpers in C. LLVM's linker, in `llvmlite`, loads it. Where anything is not as expected,
`load` finds nothing, and the kernel takes the way through Numba.
"""

from __future__ import annotations

import builtins
import ctypes
import json
import os
import sys
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ENDING = ".nbo"
_HARMLESS = {"NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS", "NUMBA_THREADING_LAYER"}  # others may change what Numba makes


def file_name(base: str, kinds: str) -> str | None:
    """Return the name of the file for a kernel and kinds of arguments; None where Numba must make it each time.

    Parameters
    ----------
    base
        Which function of which sources it is.
    kinds
        Of the arguments; see `argument_types.text_of_types`.
    """
    machine = _machine()
    if machine is None:
        return None
    digest = sha256(f"{machine} {kinds}".encode()).hexdigest()
    return f"{base}.{digest[:20]}{ENDING}"


def load(path: str, function: Callable[..., Any]) -> Callable[..., Any] | None:
    """Load a kernel that `save` has written; None where that cannot be done. What is damaged is removed.

    Parameters
    ----------
    path
        Of the file, in a folder that only this user can write to.
    function
        Whose module and name the kernel has.
    """
    try:
        content = Path(path).read_bytes()
    except OSError:
        return None
    digest, _, rest = content.partition(b"\n")
    if digest != sha256(rest).hexdigest().encode():
        Path(path).unlink(missing_ok=True)
        return None
    head, _, code = rest.partition(b"\n")
    facts = json.loads(head)
    try:
        return _linked(facts, code, function) if facts and _provide(facts["symbols"]) else None
    except (AttributeError, ImportError, LookupError, StopIteration, TypeError, ValueError, RuntimeError):
        return None  # another release of Numba or LLVM has other parts


def save(path: str, compiled: Any) -> None:
    """Write what Numba has compiled, or that it cannot be loaded without Numba.

    Parameters
    ----------
    path
        Of the file, which appears as a whole.
    compiled
        Numba's ``CompileResult``, before its machine code is loaded.
    """
    rest = b"null"
    with suppress(AttributeError, LookupError, TypeError, ValueError, RuntimeError):  # of another release of Numba
        if facts := facts_of(compiled):
            code = compiled.library._get_compiled_object()
            rest = json.dumps(facts | {"symbols": undefined_symbols(code)}).encode() + b"\n" + code
    beside = f"{path}.{os.getpid()}.tmp"
    try:
        Path(beside).write_bytes(sha256(rest).hexdigest().encode() + b"\n" + rest)
        Path(beside).replace(path)
    except OSError:
        Path(beside).unlink(missing_ok=True)


def facts_of(compiled: Any) -> dict[str, Any] | None:
    """Return the names that Numba gave to the parts of a kernel; None where only Numba can load it."""
    environments = [compiled.environment, *compiled._find_referenced_environments()]
    if compiled.objectmode or compiled.lifted or compiled.reload_init or any(one.consts for one in environments):
        return None
    names = sorted({compiled.fndesc.env_name, *(one.env_name for one in environments)} - {None})
    return {"wrapper": compiled.fndesc.llvm_cpython_wrapper_name, "environments": names}


def undefined_symbols(code: bytes) -> list[str]:
    """Return the symbols that an ELF object of 64 bits needs from elsewhere."""
    import numpy as np

    section = np.dtype([("name", "u4"), ("type", "u4"), ("flags", "u8"), ("address", "u8"), ("offset", "u8"),
                        ("size", "u8"), ("link", "u4"), ("info", "u4"), ("align", "u8"), ("entry", "u8")])  # fmt: skip
    symbol = np.dtype(
        [("name", "u4"), ("info", "u1"), ("other", "u1"), ("section", "u2"), ("value", "u8"), ("size", "u8")]
    )
    first, number = int.from_bytes(code[40:48], "little"), int.from_bytes(code[60:62], "little")
    sections = np.frombuffer(code, section, number, first)
    (table,) = sections[sections["type"] == 2]  # SHT_SYMTAB
    symbols = np.frombuffer(code, symbol, int(table["size"]) // symbol.itemsize, int(table["offset"]))
    names = int(sections[int(table["link"])]["offset"])
    starts = (names + int(one) for one in symbols["name"][1:][symbols["section"][1:] == 0])  # SHN_UNDEF
    return sorted(code[start : code.index(b"\0", start)].decode() for start in starts)


def _linked(facts: dict[str, Any], code: bytes, function: Callable[..., Any]) -> Callable[..., Any]:
    """Link an object in an engine of its own, and wrap it as Numba does."""
    functions, engine = _extension("_dynfunc"), _engine()
    engine.add_object_file(import_linker().ObjectFileRef.from_data(code))
    engine.finalize_object()
    module = sys.modules[function.__module__]
    environment = functions.Environment(vars(module))
    for name in facts["environments"]:
        if address := engine.get_global_value_address(name):
            ctypes.c_void_p.from_address(address).value = id(environment)
    address = engine.get_function_address(facts["wrapper"])
    kept = (engine, environment)  # as long as the function lives
    name, text = function.__name__, function.__doc__ or ""
    found: Callable[..., Any] = functions.make_function(module, name, text, address, environment, kept)
    return found


def _provide(symbols: Sequence[str]) -> bool:
    """Let the linker know the symbols that a kernel needs. Return whether it knows all, without which it would exit."""
    llvm, known = import_linker(), _symbols()
    _symbols_of_the_process()
    for name in symbols:
        if name in known:
            llvm.add_symbol(name, known[name])
        elif not llvm.address_of_symbol(name):
            return False
    return True


@cache
def _symbols() -> dict[str, int]:
    """Return the addresses by which Numba's code names things of its own, and of Python."""
    helpers, functions = _extension("_helperlib").c_helpers, _extension("_dynfunc").c_helpers
    errors = {one for one in vars(builtins).values() if isinstance(one, type) and issubclass(one, BaseException)}
    return (
        dict(helpers)  # functions of C's library of mathematics
        | {f"numba_{name}": address for name, address in (helpers | functions).items()}
        | {f"PyExc_{error.__name__}": id(error) for error in errors}
        | {"_Py_NoneStruct": id(None)}
    )


def _engine() -> Any:
    """Make a linker and loader."""
    llvm = import_linker()
    target = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(jit=True)
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)


@cache
def _symbols_of_the_process() -> Any:
    """Let LLVM look symbols up in this process, as it does once there is an engine."""
    return _engine()


@cache
def import_linker() -> Any:
    """Return LLVM's linker; importing it takes as long as loading many kernels."""
    llvm = import_module("llvmlite.binding")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@cache
def _numba_folder() -> Path | None:
    found = find_spec("numba")  # which imports nothing
    folders = None if found is None else found.submodule_search_locations
    return Path(folders[0]) if folders else None


@cache
def _extension(name: str) -> Any:
    """Load an extension module of Numba without the package around it."""
    folder = _numba_folder()
    assert folder is not None
    path = next(path for ending in EXTENSION_SUFFIXES if (path := folder / f"{name}{ending}").exists())
    spec = spec_from_file_location(f"numba.{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def _machine() -> str | None:
    """Describe what machine code depends on, besides its sources; None where that is more than this."""
    folder = _numba_folder()
    if folder is None or sys.byteorder != "little" or sys.maxsize < 2**62 or Path(".numba_config.yaml").exists():
        return None
    if any(name.startswith("NUMBA_") for name in os.environ.keys() - _HARMLESS):
        return None
    try:
        version = sha256((folder / "_version.py").read_bytes()).hexdigest()
        llvm = import_linker()
        features = llvm.get_host_cpu_features().flatten()
        return f"{version} {sys.version} {llvm.get_process_triple()} {llvm.get_host_cpu_name()} {features}"
    except (OSError, RuntimeError, ImportError):
        return None
