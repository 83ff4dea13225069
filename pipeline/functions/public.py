"""How users see the public functions: options by name in their signatures, and wrong input as an error of one frame."""

from __future__ import annotations

import difflib
import inspect
from contextlib import nullcontext
from functools import wraps
from typing import TYPE_CHECKING, Any, get_type_hints

from longwall.kernels.jit.compile_notice import noticed_compiling
from longwall.storage.errors import ArgumentError, one_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


class _Text(str):
    """An annotation that shows itself without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def public(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a function as users see it, by its public name, whose home is the package."""
    signature = inspect.signature(function)
    shown = [one for parameter in signature.parameters.values() for one in _shown(parameter, function)]
    returned = _resolved(signature.return_annotation, function)
    seen = signature.replace(parameters=shown, return_annotation=returned)

    @wraps(function)
    def checked(*arguments: Any, **named: Any) -> Any:
        try:
            seen.bind(*arguments, **named)
        except TypeError as error:
            raise ArgumentError(_misfit(name, named, list(seen.parameters.values()), str(error))) from None
        shown = named.get("progress") or named.get("observer") is not None
        with nullcontext() if shown else noticed_compiling():
            return function(*arguments, **named)

    call = one_frame(checked)
    call.__signature__ = seen  # type: ignore[attr-defined]
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


def _misfit(name: str, named: Mapping[str, Any], parameters: list[inspect.Parameter], reason: str) -> str:
    """Say which argument of a call does not fit a function, and which arguments the function has."""
    known = [one.name for one in parameters]
    unknown = next((one for one in named if one not in known), None)
    if unknown is not None and not any(one.kind is one.VAR_KEYWORD for one in parameters):
        near = difflib.get_close_matches(unknown, known, n=1)
        reason = f"there is no argument {unknown}" + (f", did you mean {near[0]}?" if near else "")
    return f"{name}: {reason}{'' if reason.endswith('?') else '.'} The arguments are {', '.join(known)}"


def _resolved(annotation: Any, function: Callable[..., Any]) -> Any:
    """Return the type that an annotation names, or its text where only type checkers know the names in it."""
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, function.__globals__)
    except (NameError, TypeError):
        return _Text(annotation)
