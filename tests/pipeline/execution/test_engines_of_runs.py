"""Which engines a run may go on with."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from longwall.pipeline.run import _settle
from longwall.storage.errors import InputError


def facts(engine: str) -> dict[str, Any]:
    return {"engine": {"name": engine}, "graph": {"hash": "abc"}, "question": {}}


@pytest.mark.parametrize(
    ("began", "goes_on"), [("cuda", "cpu+cuda"), ("cpu+cuda", "cuda"), ("cpu", "cpu"), ("cluster", "cluster")]
)
def test_the_host_may_join_or_leave_a_device(began: str, goes_on: str) -> None:
    directory: Any = SimpleNamespace(manifest=facts(began), where="runs/one")
    _settle(directory, facts(goes_on))
    assert directory.manifest["engine"]["name"] == goes_on


@pytest.mark.parametrize(("began", "goes_on"), [("cpu", "cuda"), ("cpu", "cpu+cuda"), ("cpu+cuda", "cpu")])
def test_another_engine_does_not_go_on(began: str, goes_on: str) -> None:
    directory: Any = SimpleNamespace(manifest=facts(began), where="runs/one")
    with pytest.raises(InputError, match="its engine is not the one"):
        _settle(directory, facts(goes_on))
