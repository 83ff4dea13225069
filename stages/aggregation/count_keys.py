"""Sort the keys of rows, and count equal ones, in bounded memory."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from longwall.stages.base import Stage, WorkerContext
from longwall.storage.sorting.key_sorter import KeySorter

Array = Any  # a NumPy or a CuPy array


@dataclass(frozen=True)
class CountKeys(Stage):
    """Count how often each key stands.

    Attributes
    ----------
    sorter
        Where keys go: uint64[n], or uint64[2, n] of high and low words, in arrays of the engine.
    """

    sorter: KeySorter

    verb = "aggregate"

    def describe(self) -> str:
        """See `Stage`."""
        return "aggregate    sort the keys, count equal ones"

    def run(self, chunk: Array, context: WorkerContext) -> Iterable[Any]:  # noqa: ARG002 - a `Stage`
        """Add keys."""
        self.sorter.add(chunk)
        return ()
