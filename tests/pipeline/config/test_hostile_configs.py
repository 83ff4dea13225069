"""What no config can be, however odd, is refused in a short message."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from cases import each_case
from config_faults import TRIANGLES, faults, write

from longwall.pipeline.config import load_config
from longwall.storage.errors import InputError


@pytest.mark.parametrize("config", [None, 3, ["run.toml"], b"run.toml"])
def test_what_is_no_config(config):
    expected = "config: expected the path of a TOML file, or a mapping of sections, not "
    assert faults(config) == [expected + ("None" if config is None else type(config).__name__)]


def test_unreadable_configs(tmp_path):
    assert "no such config file" in faults(tmp_path / "none.toml")[0]
    assert "this is a folder" in faults(tmp_path)[0]
    path = write(tmp_path, "[graph\n")
    assert "not valid TOML" in faults(path)[0]
    assert "line 1" in faults(path)[0]
    path.write_bytes(b"\xff\xfe\x00")
    assert "not a text file" in faults(path)[0]
    assert "has a NUL character" in faults("a\0b.toml")[0]
    assert "is too long for a path" in faults("x" * 5000)[0]


def test_only_a_small_regular_file_is_a_config(tmp_path):
    """Neither a pipe without a writer nor an endless device is waited for."""
    os.mkfifo(tmp_path / "pipe.toml")
    for path in (tmp_path / "pipe.toml", Path("/dev/zero"), Path("/dev/null")):
        assert faults(path) == [f"{path}: this is a pipe or a device, not a file; give the TOML file itself"]
    large = write(tmp_path, "# " + "x" * 2**20)
    assert faults(large) == [f"{large}: this file has more than 1,048,576 bytes; give the TOML file of a run"]
    with large.open("r+b") as file:
        file.truncate(2**40)
    assert "more than 1,048,576 bytes" in faults(large)[0]


@each_case(
    ("text", "said"),
    [
        ("[engine]\nthreads = " + "9" * 5000, "a whole number has thousands of digits"),
        ("[engine]\nthreads = " + "9" * 400, "engine.threads: a whole number has at most 64 bits"),
        ("[engine]\nthreads = 0x" + "f" * 6000, "engine.threads: a whole number has at most 64 bits"),
        ("[graph]\npath = " + "[" * 3000, "tables or lists in one another, too many"),
        ("[graph]\npath = " + "{a = " * 3000, "tables or lists in one another, too many"),
        ("[graph]\npath = " + "[" * 50 + "]" * 50, "graph.path[0]"),
        ("graph." + "a." * 100 + "b = 1", "more than 8 tables or lists in one another"),
        ("a." * 200_000 + "b = 1", "more than 256 dots (at line 1)"),
        ('[graph]\npath = "a\\u0000b"', "has a NUL character"),
        ('"a\\u0000b" = 1', "has a NUL character"),
        ('[graph]\npath = "' + "x" * 5000 + '"', "graph.path: 'xxx"),
        ('[run]\ndirectory = "' + "x" * 300 + '"', "run.directory: 'xxx"),
        ('[memory]\nspill = "' + "x/" * 3000 + '"', "memory.spill: 'x/x/"),
        ('[run]\nname = "' + "x" * 300 + '"', "too long to name a folder; use at most 200"),
        ('[memory]\nhost = "' + "9" * 5000 + '"', "is not a size"),
        ('[workload]\nkind = "match"\npattern = "' + "x" * 5000 + '.graph"', "is too long for a path"),
        ("x" * 5000 + " = 1", "there is no such section"),
    ],
)
def test_values_that_no_config_can_have_are_named_briefly(tmp_path, text, said):
    lines = faults(write(tmp_path, text + "\n"))
    assert any(said in line for line in lines), lines
    assert max(map(len, lines)) < 500


def test_a_mapping_may_be_anything():
    """Of a program: values that no TOML file has."""
    endless: dict = {}
    endless["a"] = endless
    deep: list = []
    for _ in range(3000):
        deep = [deep]
    for value, said in (
        (endless, "more than 8 tables"),
        (deep, "more than 8 tables"),
        (10**5000, "at most 64 bits"),
        ({1: 2}, "a key must be a text, not int"),
        (object(), "expected"),
        (float("nan"), "expected"),
        (np.array([object()]), "expected"),
        (Path("a\0b"), "has a NUL character"),
        ("\ud800", "is not UTF-8"),
    ):
        for section, key in (("graph", "path"), ("engine", "threads"), ("export", "columns")):
            lines = faults(TRIANGLES | {section: {key: value}})
            assert any(said in line or "expected" in line for line in lines), (lines, value)
            assert max(map(len, lines)) < 500
    assert faults({1: {}})[0] == "config: a key must be a text, not int"
    assert len(faults(TRIANGLES | {f"x{number}": 1 for number in range(1000)})) == 21


@each_case("text", ["nan", "inf", "-inf"])
@each_case(
    ("section", "key"),
    [
        ('[graph.generator]\nkind = "rmat"\nscale = 4\nedge_factor = 4\n', "graph.generator.a"),
        ('[workload]\nkind = "custom"\nalgorithm = "mine.py:Mine"\n[workload.parameters]\n', "workload.parameters.x"),
        ("[memory]\n", "memory.host"),
        ("[engine]\n", "engine.threads"),
    ],
)
def test_a_number_that_is_not_finite_is_named_by_its_key(tmp_path, section, key, text):
    said = f"{key}: expected a finite number, not {text}"
    path = write(tmp_path, f"{section}{key.split('.')[-1]} = {text}\n")
    assert f"{path}: {said}" in faults(path)
    assert f"--set: {said}" in faults(TRIANGLES, [f"{key}={text}"])
    *above, last = key.split(".")
    nested: dict = {last: np.float64(text)}
    for one in reversed(above):
        nested = {one: nested}
    assert f"config: {said}" in faults(nested)
    assert any("expected a finite number" in line for line in faults(TRIANGLES, [f"{key}=[0.5, {text}]"]))


def test_a_path_that_is_not_utf_8_cannot_be_written_down(tmp_path, monkeypatch):
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/odd \xff"))
    folder.mkdir()
    monkeypatch.chdir(folder)
    spec = load_config(TRIANGLES).with_absolute_paths()
    with pytest.raises(InputError, match=r"^'path = .*odd .udcff/graph.txt.*: this path is not UTF-8; rename"):
        spec.to_toml()
