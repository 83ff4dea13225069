"""Cases in one test: each is checked, and the wrong ones are listed."""

from pathlib import Path
from typing import Any

import pytest
from cases import each_case


@each_case("number", [1, 2, 3])
def some_cases(tmp_path: Path, number: int, odd: int) -> None:
    (tmp_path / "own").touch(exist_ok=False)
    assert number % 2 == odd


@each_case("one", "ab")
@each_case("number, other", [(1, 1), (2, 3)], ids=["first", "second"])
def two_by_two(one: str, number: int, other: int) -> None:
    assert number == other, one
    if one == "b":
        pytest.skip("no b")


def test_all_wrong_cases_are_listed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"^2 of 3 cases are wrong:\n- 1: AssertionError.*\n(.*\n)*- 3: Asser"):
        some_cases(tmp_path=tmp_path, odd=0)


def test_cases_of_two_kinds_are_listed_with_both_names() -> None:
    with pytest.raises(AssertionError) as fault:
        two_by_two()
    lines = [line for line in str(fault.value).splitlines() if line.startswith("- ")]
    assert [line.split(":")[0] for line in lines] == ["- 'a'", "- second", "- 'b'", "- first", "- second"]
    assert "Skipped: no b" in lines[3]


@each_case("text", ["one", "two"])
def test_a_case_has_its_own_output_and_patches(text: str, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    assert "LONGWALL_OF_A_CASE" not in os.environ
    monkeypatch.setenv("LONGWALL_OF_A_CASE", text)
    print(text)
    if text == "two":
        assert capsys.readouterr().out == "two\n"
