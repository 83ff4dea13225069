"""Arguments of the public functions that are of another type than they should be."""

from collections.abc import Sequence
from importlib import import_module
from numbers import Number
from types import ModuleType
from typing import Any

from longwall.storage.errors import InputError

_LONGEST_QUOTED = 80
_MOST_BITS = 1000  # Python refuses to write down numbers of more than 4,300 digits


def require_type(name: str, value: object, kinds: type | tuple[type, ...], expected: str, advice: str = "") -> None:
    """Refuse an argument of another type.

    Parameters
    ----------
    name
        The argument's.
    value
        What was given.
    kinds
        Types that it may have; no number may be a bool instead.
    expected
        What to pass, for the message.
    advice
        What to do otherwise, for the message.

    Raises
    ------
    InputError
        Naming the argument, its type, and what to pass.
    """
    allowed = kinds if isinstance(kinds, tuple) else (kinds,)
    if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
        raise wrong_type(name, value, expected, advice)


def wrong_type(name: str, value: object, expected: str, advice: str = "") -> InputError:
    """Return the error for an argument of another type; parameters as in `require_type`."""
    return InputError(f"{name}: expected {expected}, not {type_name(value)}" + (f"; {advice}" if advice else ""))


def require_package(package: str, call: str) -> ModuleType:
    """Return a package that is not among the dependencies, or say how to install it (InputError).

    Parameters
    ----------
    package
        Its name.
    call
        What needs it.
    """
    try:
        return import_module(package)
    except ImportError:
        raise InputError(f"{call} needs {package}: pip install {package}") from None


def brief(value: object) -> str:
    """A value as a message quotes it: cut where it is long, and only the type of what is no text or number."""
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return f"a number of {value.bit_length():,} bits"
    if value is not None and not isinstance(value, str | bytes | Number):
        return f"a {type_name(value)}"
    text = repr(value)
    return text if len(text) <= _LONGEST_QUOTED else f"{text[: _LONGEST_QUOTED - 20]}...{text[-17:]}"


def type_name(value: object) -> str:
    """Name the type of a value as its users know it."""
    kind = type(value)
    if value is None:
        return "None"
    package = kind.__module__.partition(".")[0]
    return kind.__qualname__ if package in ("builtins", "pathlib") else f"{package}.{kind.__qualname__}"


def require_texts(name: str, value: object, example: str) -> None:
    """Refuse what is no list of texts; parameters as in `require_type`.

    Raises
    ------
    InputError
        Naming the argument and its type.
    """
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise wrong_type(name, value, f"a list of texts such as {example}")
    for at, text in enumerate(value):
        require_type(f"{name}[{at}]", text, str, "a text")


def require_methods(name: str, value: Any, methods: Sequence[str], expected: str) -> None:
    """Refuse an object that lacks methods; parameters as in `require_type`.

    Raises
    ------
    InputError
        Naming the argument, its type, and what to pass.
    """
    if not all(callable(getattr(value, method, None)) for method in methods):
        raise wrong_type(name, value, expected)
