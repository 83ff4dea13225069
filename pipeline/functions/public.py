"""How users see the public functions: options by name in their signatures, and wrong input as an error of one frame."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, get_type_hints

from longwall.storage.errors import one_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class _Text(str):
    """An annotation that shows itself without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def public(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a function as users see it, by its public name, whose home is the package."""
    call = one_frame(function)
    signature = inspect.signature(function)
    shown = [one for parameter in signature.parameters.values() for one in _shown(parameter, function)]
    returned = _resolved(signature.return_annotation, function)
    call.__signature__ = signature.replace(parameters=shown, return_annotation=returned)  # type: ignore[attr-defined]
    call.__module__, call.__name__, call.__qualname__ = "longwall", name, name
    return call


def _shown(parameter: inspect.Parameter, function: Callable[..., Any]) -> Iterator[inspect.Parameter]:
    """Yield a parameter with its type; for the options, each of them."""
    if parameter.annotation != "Unpack[Options]":
        yield parameter.replace(annotation=_resolved(parameter.annotation, function))
        return
    from longwall.pipeline.functions.one_run import DEFAULTS, Options

    defaults: dict[str, Any] = {**DEFAULTS}
    for name, kind in get_type_hints(Options).items():
        yield inspect.Parameter(name, parameter.KEYWORD_ONLY, default=defaults[name], annotation=kind)


def _resolved(annotation: Any, function: Callable[..., Any]) -> Any:
    """Return the type that an annotation names, or its text where only type checkers know the names in it."""
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, function.__globals__)
    except (NameError, TypeError):
        return _Text(annotation)
