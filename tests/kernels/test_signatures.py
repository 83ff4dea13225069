"""Kernels declare the types of their arguments: that suffices to compile them, beforehand and in other processes."""

from __future__ import annotations

import inspect
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longwall.kernels.jit.argument_types import accepts, text_of_types, types_of_text
from longwall.kernels.jit.compile import KERNELS, Kernel
from longwall.kernels.jit.compile_pool import declared_kernels

MODULE = """
from longwall.kernels.jit.compile import compiled

@compiled("i8[::1], i8")
def first(values, number):
    return values[0] + number

@compiled("const(u4[:]), i8", "none, i8")
def second(values, number):
    return number if values is None else values[0] + number
"""
CALLS = """
import sys, warnings
import numpy as np
from mine import first, second
from longwall.kernels.jit.compile_pool import CompilePool
from longwall.storage.observer import NullObserver
warnings.simplefilter("error")
with CompilePool(2) as pool:
    number = pool.add([first, second, first], every=True)
    if sys.argv[1] == "wait":
        pool.show(NullObserver())
    fixed = np.arange(3, 6, dtype=np.uint32)
    fixed.flags.writeable = False
    print(number, first(np.arange(7, 9), 1), second(fixed, 2), second(np.arange(4, dtype=np.uint32)[::2], 3), end=" ")
    print(second(None, 5), "numba" in sys.modules)
"""


def declarations() -> list[tuple[Kernel, str]]:
    return [(kernel, signature) for kernel in declared_kernels() for signature in kernel.signatures]


def test_every_declaration_names_a_type_of_every_argument_in_the_one_way_to_write_it() -> None:
    found = [(kernel, text) for kernel, text in declarations() if kernel.__module__.startswith("longwall.")]
    assert len(found) > 100
    for kernel, text in found:
        types = types_of_text(text, kernel._function.__globals__)
        assert text_of_types(types) == text, kernel
        assert len(types) == len(inspect.signature(kernel._function).parameters), kernel


@pytest.mark.slow
def test_every_kernel_compiles_from_its_declaration(tmp_path: Path) -> None:
    code = """
        from longwall.kernels.jit.compile_pool import CompilePool, declared_kernels
        from longwall.storage.observer import NullObserver
        kernels = declared_kernels()
        with CompilePool(2) as pool:
            assert pool.add(kernels, every=True) >= len(kernels)
            pool.show(NullObserver())
        print(*(one.__name__ for one in kernels for text in one.signatures if one.is_missing(text)))
    """
    assert run(textwrap.dedent(code), tmp_path, "") == ""


@pytest.mark.parametrize("how", ["wait", "call"])
def test_processes_compile_what_is_missing(tmp_path: Path, how: str) -> None:
    (tmp_path / "mine.py").write_text(MODULE)
    assert run(CALLS, tmp_path, how) == "3 8 5 3 5 False"
    assert run(CALLS, tmp_path, how) == "0 8 5 3 5 False"


def test_what_a_process_that_ends_leaves_is_compiled_by_the_caller(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MODULE)
    ends = f"import longwall.kernels.jit.compile_pool as pool\npool._SERVE = 'raise SystemExit(3)'\n{CALLS}"
    assert run(ends, tmp_path, "wait") == "3 8 5 3 5 True"


def test_a_pool_that_is_left_early_leaves_nothing_broken(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MODULE)
    leaves = """
from longwall.kernels.jit.compile import ELSEWHERE
from longwall.kernels.jit.compile_pool import CompilePool
from mine import first, second
with CompilePool(2) as pool:
    pool.add([first, second], every=True)
    while not pool._children:
        pass
print(ELSEWHERE, [one.poll() is not None for one in pool._children] != [])
"""
    assert run(leaves, tmp_path, "") == "[] True"
    assert run(CALLS, tmp_path, "wait").endswith(" 8 5 3 5 False")


def test_threads_name_the_same_kernel_at_the_same_time(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MODULE)
    names = """
import sys, threading
from longwall.kernels.jit.compile import Kernel
from longwall.kernels.jit.compile_pool import CompilePool
from mine import first, second
both = threading.Barrier(2)
with CompilePool(2) as pool:
    pool.add([first, second])
    Kernel.is_missing = lambda kernel, signature: both.wait(60) >= 0
    call = lambda: pool.compile(second, second.signatures[1])
    threads = [threading.Thread(target=call, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    print(*(thread.is_alive() for thread in threads))
"""
    assert run(names, tmp_path, "") == "False False"


def run(code: str, folder: Path, argument: str) -> str:
    """Run code in a process of its own, with the kernels of a folder."""
    done = subprocess.run(
        [sys.executable, "-c", code, argument],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def environment(folder: Path) -> dict[str, str]:
    import os

    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    return kept | {"XDG_CACHE_HOME": str(folder / "cache")}


@pytest.mark.parametrize(
    ("declared", "given", "fits"),
    [
        ("i8, u4[::1]", "i8, u4[::1]", True),
        ("i8, u4[::1]", "i8", False),
        ("u4[:]", "u4[::1]", True),
        ("u4[::1]", "u4[:]", False),
        ("const(u4[::1])", "u4[::1]", True),
        ("const(u4[:])", "const(u4[::1])", True),
        ("u4[::1]", "const(u4[::1])", False),
        ("Found(i8, const(u4[::1]))", "Found(i8, u4[::1])", True),
        ("i8", "u8", False),
    ],
)
def test_what_a_declaration_accepts(declared: str, given: str, fits: bool) -> None:
    assert accepts(declared, given) == fits


def test_a_call_with_other_types_is_told() -> None:
    def half(number: int) -> Any:
        return number // 2

    kernel = Kernel(half, ["i8"])
    KERNELS.remove(kernel)
    assert kernel(9) == 4
    with pytest.warns(ResourceWarning, match=r"half is called with types that it does not declare: f8"):
        assert kernel(9.0) == np.float64(4)
