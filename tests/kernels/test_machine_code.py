"""Machine code on disk is loaded without Numba, and does what the kernel does that Numba compiles."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cases import each_case

from longwall.kernels.cpu.local_counts.triangles import count_triangles
from longwall.kernels.jit.argument_types import kind_of, text_of_kinds, text_of_types
from longwall.kernels.jit.compile import Kernel

KERNELS = """
from collections import namedtuple
from longwall.kernels.jit.compile import compiled

Pair = namedtuple("Pair", "first second")

@compiled
def total(values):
    found = 0
    for value in values:
        found += value
    return found

@compiled
def weighed(values, table, factor, offset, negative):
    found = total(values) * factor + offset + table[1, 0]
    return -found if negative else found, values.size

@compiled
def inverse(number):
    return 1 // number

@compiled
def of_pair(pair):
    return pair.first[0] + pair.second

@compiled
def nothing(missing, number):
    return number if missing is None else 0
"""
CALLS = """
import sys
import numpy as np
from mine import Pair, inverse, nothing, of_pair, weighed
table = np.arange(4.0).reshape(2, 2)
print(weighed(np.arange(10)[::2], table.T, 3, 0.5, True))
print(weighed(np.arange(5, dtype=np.uint8), table[:, ::-1], np.int32(2), np.float32(0.5), False))
fixed = np.arange(5)
fixed.flags.writeable = False
print(weighed(fixed, table, 7, 1.0, False))
print(of_pair(Pair(np.arange(3, 5), 4)), nothing(None, 7), inverse(1))
loaded = "numba" not in sys.modules
try:
    inverse(0)
except ZeroDivisionError as error:
    print(error)
print(loaded)
"""


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A folder with kernels, and calls of them for all kinds of arguments."""
    folder = tmp_path / "sources"
    folder.mkdir()
    (folder / "mine.py").write_text(KERNELS)
    (folder / "calls.py").write_text(CALLS)
    return folder


def call(sources: Path, **environment: str | Path) -> tuple[str, bool]:
    """Call the kernels in a process of their own: what they return, and whether all were loaded without Numba."""
    named = {"XDG_CACHE_HOME": sources.parent} | environment
    done = subprocess.run(
        [sys.executable, "calls.py"],
        cwd=sources,
        env=os.environ | {name: str(value) for name, value in named.items()},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    answers, loaded = done.stdout.rsplit("\n", 2)[:2]
    return answers, loaded == "True"


def files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.nbo"))


def test_kernels_are_loaded_without_numba_and_do_the_same(sources: Path, tmp_path: Path) -> None:
    compiled, loaded = call(sources)
    assert not loaded
    assert "division by zero" in compiled
    assert call(sources) == (compiled, True)


@pytest.mark.slow
def test_what_is_damaged_or_made_otherwise_is_not_loaded(sources: Path, tmp_path: Path) -> None:
    compiled, _ = call(sources)
    assert call(sources, NUMBA_OPT="1") == (compiled, False)
    assert call(sources) == (compiled, True)
    for path in files(tmp_path):
        path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert call(sources) == (compiled, False)
    assert call(sources) == (compiled, True)


@pytest.mark.slow
def test_machine_code_of_other_sources_is_not_loaded(sources: Path, tmp_path: Path) -> None:
    before, _ = call(sources)
    names = set(files(tmp_path))
    (sources / "mine.py").write_text(KERNELS.replace("found += value", "found += 2 * value"))
    after, loaded = call(sources)
    assert (after != before, loaded) == (True, False)
    assert call(sources) == (after, True)
    assert len(files(tmp_path)) == 2 * len(names)
    (sources / "mine.py").write_text(KERNELS)
    assert call(sources) == (before, True)


@each_case(
    "value",
    [
        3,
        2**62,
        -(2**63),
        True,
        1.5,
        None,
        np.uint8(3),
        np.int64(3),
        np.float32(3),
        np.bool_(1),
        np.arange(3),
        np.arange(6)[::2],
        np.zeros((2, 3), np.int32),
        np.zeros((2, 3), np.int32).T,
        np.zeros((2, 3, 4), bool)[:, ::2],
        np.zeros((1, 3)),
        np.zeros(9, np.uint8)[1:].view(np.uint32),
        np.broadcast_to(np.zeros(1), 3),
        (np.arange(2), 3, (1.0, None)),
    ],
    ids=repr,
)
def test_kinds_are_named_as_numba_s_types(value: object) -> None:
    from numba import typeof

    text = text_of_kinds([kind_of(value)])
    assert text is not None
    assert text == text_of_types([typeof(value)])


@pytest.mark.parametrize("value", [2**63, "text", np.zeros(1, "M8[s]"), np.zeros(1, ">i8"), [1], (1, "text")])
def test_other_kinds_are_left_to_numba(value: object) -> None:
    assert text_of_kinds([kind_of(value)]) is None


def test_a_kernel_is_documented_as_its_function() -> None:
    assert isinstance(count_triangles, Kernel)
    assert count_triangles.__name__ == "count_triangles"
    assert count_triangles.__doc__ is not None
