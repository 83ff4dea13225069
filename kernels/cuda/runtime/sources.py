"""The CUDA sources that a function of `Kernels` compiles: its code names them, or a query determines them."""

import re
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import cache
from inspect import signature
from types import FunctionType
from typing import Any, TypeVar

from longwall.kernels.cuda.runtime.compile import source_text
from longwall.kernels.jit.called import called_by, codes_of

Source = tuple[str, str]  # the file below ``kernels/cuda``, and its generated header

_MARK = "// generated"
_NAME = re.compile(r"[\w/]+\.cu")
_Made = TypeVar("_Made", bound=Callable[..., Any])


def compiles(sources: Callable[..., Iterable[Source]], /) -> Callable[[_Made], _Made]:
    """Declare the sources that a function compiles as a function of some of its arguments."""

    def mark(made: _Made) -> _Made:
        made.sources = sources  # type: ignore[attr-defined]
        return made

    return mark


def sources_of(function: Callable[..., Any], arguments: Mapping[str, Any]) -> AbstractSet[Source]:
    """Return the sources that a function of `Kernels` compiles: none if they depend on arguments that are missing."""
    declared = getattr(function, "sources", None)
    if declared is not None:
        names = signature(declared).parameters
        known = names.keys() <= arguments.keys()
        return set(declared(**{name: arguments[name] for name in names})) if known else set()
    return _named_sources(function)


@cache
def _named_sources(function: Callable[..., Any]) -> frozenset[Source]:
    """Return the sources that are named by a function, or by the functions and classes that it calls."""
    found: set[Source] = set()
    for one in called_by(function):
        texts = [text for code in codes_of(one) for text in code.co_consts] if isinstance(one, FunctionType) else [one]
        found |= {(text, "") for text in texts if isinstance(text, str) and _stands_alone(text)}
    return frozenset(found)


@cache
def _stands_alone(text: str) -> bool:
    """Return whether a text is the name of a source that needs no generated header."""
    return bool(_NAME.fullmatch(text)) and _MARK not in source_text(text, _MARK)[0]
