"""Processes of this Python import what it imports."""

import subprocess
import sys
from pathlib import Path

import pytest

from longwall.kernels.jit.child_process import python_words


def test_modules_are_found_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "found.py").write_text("")
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "json.py").write_text("raise SystemExit(3)")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "seen.py").write_text("")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(sys, "path", [*sys.path, "", tmp_path / "other", None])
    words = [*python_words("import found, seen; print(*sys.argv[1:])"), "a", "b"]
    assert subprocess.check_output(words, cwd=tmp_path / "there", text=True) == "a b\n"


@pytest.mark.parametrize("executable", [None, ""])
def test_an_interpreter_without_executable_starts_none(monkeypatch: pytest.MonkeyPatch, executable: str | None) -> None:
    monkeypatch.setattr(sys, "executable", executable)
    with pytest.raises(OSError, match="does not know its executable"):
        python_words("")
