"""Kernels that kernels call: what Numba need not do for them.

Numba makes of each function a library that is whole: optimized, as machine code, with two wrappers through which Python
and C call it, and once more for each constant that it is called with. All this is done again for the kernel that the
library is linked into. Here a library ends with the code that Numba hands to LLVM, and the kernel that it is linked
into is optimized as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

_OPTIONS: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def callee_type(njit: Callable[..., Any], function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Return Numba's type of a function that kernels call.

    Parameters
    ----------
    njit
        Of Numba.
    function
        In the part of Python that Numba compiles.
    options
        Of ``numba.njit``.
    """
    return _callee()(njit(function, pipeline_class=_compiler(), **(options | _OPTIONS)))


@cache
def _callee() -> Callable[[Any], Any]:
    """Return the class of types; Numba is imported by those who compile only."""
    from numba.core import types

    class Callee(types.Dispatcher):
        """The type of a function that is compiled once, for a constant and for a variable."""

        def __init__(self, dispatcher: Any):
            super().__init__(dispatcher)
            self._dispatcher = dispatcher  # the base class would let it go

        def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
            plain = {name: types.unliteral(one) for name, one in kws.items()}
            return super().get_call_type(context, tuple(map(types.unliteral, args)), plain)

    return Callee


@cache
def _compiler() -> Any:
    """Return the class of compilers."""
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler

    class NoEnvironments:
        """In place of a code generator: there is no machine code that could know its environment."""

        def set_env(self, name: str, environment: object) -> None:
            """No kernel raises what is read from there."""

    class Library(JITCodeLibrary):
        """Code that is linked into other code only."""

        codegen = NoEnvironments()

        def _optimize_final_module(self) -> None:
            pass

        def _finalize_final_module(self) -> None:
            self._finalized = True

        def get_pointer_to_function(self, name: str) -> int:  # noqa: ARG002
            return 0

    class CalleeCompiler(Compiler):
        """Numba's compiler, into such a library."""

        def __init__(self, typing: Any, target: Any, library: Any, *rest: Any):
            super().__init__(typing, target, library, *rest)
            self.state.library = Library(target.codegen(), "callee")

    return CalleeCompiler
