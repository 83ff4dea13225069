"""Numbers that Python and the CUDA sources share are written once, in Python, and are part of every source text."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

from longwall.kernels.cuda.runtime import constants
from longwall.kernels.cuda.runtime.compile import source_text
from longwall.kernels.cuda.runtime.constants import ENUMERATIONS, constants_header, cpp_constants
from longwall.kernels.interface.homomorphism_program import Op

FOLDER = Path(str(files("longwall.kernels.cuda")))
SOURCES = {
    path.relative_to(FOLDER).as_posix(): path.read_text() for end in ("*.cu", "*.cuh") for path in FOLDER.rglob(end)
}
CODES = {code.name for parts in ENUMERATIONS.values() for part in parts for code in part}


def defined(text: str) -> set[str]:
    """Return the names of constants and enumerators that a source defines by hand."""
    plain = re.sub(r"//[^\n]*", "", text)
    written = {name or macro for name, macro in re.findall(r"\b(k[A-Z]\w*)\s*=[^=]|#define\s+(\w+)", plain)}
    enumerators = {
        name for body in re.findall(r"\benum\b[^{;]*\{([^}]*)\}", plain) for name in re.findall(r"[A-Za-z_]\w*", body)
    }
    return written | enumerators


def test_definitions_are_found() -> None:
    text = "constexpr int kOne = 1, kTwo = kOne;  // kThree = 3\nenum { FIRST, kOther = 4 };\nif (kFour == 4) return;\n"
    assert defined(text + "#define SIX 6\n") == {"kOne", "kTwo", "FIRST", "kOther", "SIX"}


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_no_source_defines_a_shared_constant(name: str) -> None:
    assert not defined(SOURCES[name]) & (cpp_constants().keys() | CODES)


def test_no_shared_constant_is_left_over() -> None:
    text = "\n".join(SOURCES.values())
    unused = {name for name in cpp_constants() if not re.search(rf"\b{name}\b", text)}
    assert not unused


def test_the_header_has_every_number_and_code() -> None:
    header = constants_header()
    assert "constexpr u32 kNoVertex = 4294967295u;" in header
    assert "constexpr i64 kNoExtension = -9223372036854775807ll - 1;" in header
    assert f"PUSH_EDGES = {Op.PUSH_EDGES.value}," in header
    assert defined(header) == cpp_constants().keys() | CODES


def test_codes_of_different_operations_differ() -> None:
    """Kernels that know several kinds of operations must not take one for another; C++ has no two of the same name."""
    assert sum(len(part) for parts in ENUMERATIONS.values() for part in parts) == len(CODES)
    for parts in ENUMERATIONS.values():
        values = [code.value for part in parts for code in part]
        assert values == list(range(len(values)))


def test_compiled_kernels_depend_on_the_header(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text of a source is the key of its compiled kernels."""
    sources = [name for name in SOURCES if name.endswith(".cu")]
    assert len(sources) > 30
    before = {name: source_text(name)[0] for name in sources}
    monkeypatch.setattr(constants, "BLOCK_VALUES", constants.BLOCK_VALUES + 1)
    for name in sources:
        assert before[name].count("constexpr u32 kBlockValues = 2048;") == 1
        assert source_text(name)[0] != before[name]
