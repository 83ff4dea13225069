"""Many small cases in one test: it checks all of them, and lists the wrong ones."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from reprlib import Repr
from typing import Any

import pytest

_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = 60
_FAULTS = (Exception, pytest.fail.Exception, pytest.skip.Exception)  # a case that is skipped would hide the others


def each_case(
    names: str | tuple[str, ...],
    values: Iterable[Any] | Callable[[], Iterable[Any]],
    ids: Callable[[Any], object] | Sequence[str] | None = None,
) -> Any:
    """Call the test below with each of the values, as `pytest.mark.parametrize` does, but in one test.

    It is for cases of milliseconds, which cost less than pytest takes for a test, and starts no processes. Each case
    has a folder `tmp_path`, a `monkeypatch` and a `capsys` of its own; all other fixtures are shared. Values that take
    time to make are a function.
    """
    arguments = [name.strip() for name in (names.split(",") if isinstance(names, str) else names)]
    given_values = values if callable(values) else list(values)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def all_cases(**fixtures: Any) -> None:
            made = given_values() if callable(given_values) else given_values
            cases = [_case(arguments, value, at, ids) for at, value in enumerate(made)]
            assert cases, "a test without cases says nothing"
            faults: list[tuple[str, BaseException]] = []
            for at, (name, given) in enumerate(cases):
                with ExitStack() as stack:
                    try:
                        test(**given, **_own(fixtures, at, stack))
                    except _FAULTS as fault:
                        faults.append((name, fault))
            if faults:
                lines = "\n".join(f"- {name}: {type(fault).__name__}: {fault}" for name, fault in faults)
                raise AssertionError(f"{len(faults)} of {len(cases)} cases are wrong:\n{lines}") from faults[0][1]

        signature = inspect.signature(test)
        kept = [wanted for name, wanted in signature.parameters.items() if name not in arguments]
        all_cases.__signature__ = signature.replace(parameters=kept)
        return all_cases

    return decorate


def _case(names: list[str], value: Any, at: int, ids: Any) -> tuple[str, dict[str, Any]]:
    """The name and the arguments of a case."""
    values = (value,) if len(names) == 1 else tuple(value)
    if ids is None:
        name = ", ".join(map(_SHORT.repr, values))
    else:
        name = ", ".join(str(ids(part)) for part in values) if callable(ids) else ids[at]
    return name, dict(zip(names, values, strict=True))


def _own(fixtures: dict[str, Any], at: int, stack: ExitStack) -> dict[str, Any]:
    """The fixtures, those of a case of its own among them."""
    own = dict(fixtures)
    if "tmp_path" in own:
        folder: Path = own["tmp_path"] / str(at)
        folder.mkdir()
        own["tmp_path"] = folder
    if "monkeypatch" in own:
        own["monkeypatch"] = stack.enter_context(pytest.MonkeyPatch.context())
    if "capsys" in own:
        own["capsys"].readouterr()
    return own
