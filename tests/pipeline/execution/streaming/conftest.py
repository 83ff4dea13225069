"""Devices of these tests do not hold all lists, unless a test says so."""

from __future__ import annotations

import pytest

from longwall.pipeline.execution.streaming import stream_phase


@pytest.fixture(autouse=True)
def lists_have_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_phase, "_LISTS_SHARE", 0.0)
