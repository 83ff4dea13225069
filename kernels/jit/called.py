"""The functions and classes of the kernels that a function calls, by the names in its code."""

from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType
from typing import Any


def called_by(function: Any) -> Iterator[Any]:
    """Yield a function or class of the kernels, and those that it calls, directly or through objects that it makes."""
    seen, waiting = {id(function)}, [function]
    while waiting:
        one = waiting.pop()
        yield one
        others: Iterable[Any] = ()
        if str(getattr(one, "__module__", "")).startswith("longwall.kernels."):
            if isinstance(one, type):
                others = [member for base in one.__mro__ for member in vars(base).values()]
            elif isinstance(one, FunctionType):
                names = [name for code in codes_of(one) for name in code.co_names]
                others = [one.__globals__[name] for name in names if name in one.__globals__]
        for other in others:
            if id(other) not in seen:
                seen.add(id(other))
                waiting.append(other)


def codes_of(function: FunctionType) -> list[CodeType]:
    """Return the code of a function and of the functions inside it."""
    found = [function.__code__]
    for code in found:
        found += [one for one in code.co_consts if isinstance(one, CodeType)]
    return found
