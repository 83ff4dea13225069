"""Aggregating the rows of a level by pattern and rightmost extension, before anything is grown."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from longwall.stages.base import Aggregation, Stage
from longwall.stages.extension.pattern_rows import GrowerContext, RowRange

Array = Any  # a NumPy or a CuPy array


class AggregateContext(GrowerContext):
    """What the stages of one worker aggregate with.

    Parameters
    ----------
    *given
        As of `GrowerContext`.
    record
        What is aggregated.
    into
        What its `chunk` takes beside a grower, rows and a batch of patterns: where the worker's partial value is.
    left : int32[1 or more] or None
        First, how many extensions are still looked at, where that is counted.
    """

    def __init__(self, *given: Any, record: Aggregation[Array, Any], into: tuple[Any, ...], left: Array | None = None):
        super().__init__(*given)
        self.record, self._into, self._left = record, into, left

    @property
    def done(self) -> bool:
        """Whether the worker has found all that is wanted."""
        return self._left is not None and int(self._left[0]) == 0

    def add(self, rows: Array) -> Array:
        """Add flat rows to the worker's partial value."""
        return self.record.chunk(self.grower, rows, self.growth, *self._into)


class _Aggregate(Stage):
    verb = "aggregate"

    def run(self, chunk: RowRange, context: AggregateContext) -> Iterable[Any]:
        """Add rows to the worker's partial value."""
        for _ in context.by_parts(chunk, context.add):
            pass
        return ()


@dataclass(frozen=True)
class CountExtensions(_Aggregate):
    """Count the rows that each rightmost extension would have (:data:`longwall.stages.aggregation.support.ROWS`)."""

    def describe(self) -> str:
        """See `Stage`."""
        return "aggregate    by pattern and rightmost extension: count the rows that each would have"


@dataclass(frozen=True)
class MarkSupport(_Aggregate):
    """Mark what supports extensions (:meth:`longwall.stages.aggregation.support.Support.aggregation`).

    Attributes
    ----------
    of
        Transactions, or the images of pattern vertices.
    """

    of: Literal["groups", "images"]

    def describe(self) -> str:
        """See `Stage`."""
        what = "transactions" if self.of == "groups" else "images of pattern vertices"
        return f"aggregate    by pattern and rightmost extension: mark the {what}, as sets of bits"
