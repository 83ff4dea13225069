"""The plans that the planner chooses are those of `choices.txt`; `tests/support/plan_choices.py` writes that file."""

import random

import pytest
from plan_choices import FILE, Question, line_of, questions

_ASKED = questions()
_WRITTEN = [line for line in FILE.read_text().splitlines() if not line.startswith("#")]
_LINES = dict(zip((question.text for question in _ASKED), _WRITTEN, strict=True))
_DRAWN = sorted(random.Random(3).sample(range(len(_ASKED)), len(_ASKED) // 10))
_ANEW = "the planner chooses other plans: if that is right, write the file again as tests/support/plan_choices.py says"


@pytest.mark.parametrize("question", [_ASKED[at] for at in _DRAWN], ids=lambda question: question.text)
def test_drawn_patterns_have_the_plans_of_the_file(question: Question) -> None:
    assert line_of(question) == _LINES[question.text], _ANEW


@pytest.mark.slow
def test_all_patterns_have_the_plans_of_the_file() -> None:
    assert [line_of(question) for question in _ASKED] == _WRITTEN, _ANEW


def test_the_file_shows_every_kind_of_plan() -> None:
    text = "\n".join(_WRITTEN)
    kinds = ("clique bitmaps", "degrees", "homomorphisms", "induced sum", "search", "triangle pairs")
    kinds += ("wedge aggregation", "wedge pairs", "or core", "or hubs", "or stars", "by labels")
    assert [kind for kind in kinds if kind not in text] == []
