"""Run a row program over all vertices: sums of products of homomorphism counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from longwall.kernels.interface.engine import WorkspaceTooLarge
from longwall.kernels.interface.frontier import NeighbourRange
from longwall.kernels.interface.homomorphism_program import RowProgram
from longwall.kernels.interface.workspaces import RowCounter
from longwall.pipeline.execution.adaptive_batch import make_workspace
from longwall.pipeline.execution.device_graph import load_graph
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import DoesNotFit, MakeWorker, Phase, Task
from longwall.pipeline.execution.range_workers import RangeWorker
from longwall.pipeline.execution.task_ranges import prepare_range, range_memory, vertex_tasks
from longwall.pipeline.run_store.commit_log import PartialResult

Totals = tuple[list[int], list[float]]


@dataclass(frozen=True)
class HomomorphismCount(Phase):
    """Run a row program; a partial result has the sum of each product, modulo 2**64, and the same in floating point.

    Attributes
    ----------
    program
        The row program.
    pattern
        Edges of the pattern that it is for.
    cost
        Estimated number of elementary steps.
    exact
        Whether the integers are computed; the floating-point sums always are.
    """

    program: RowProgram
    pattern: str
    cost: float
    exact: bool

    @property
    def name(self) -> str:
        """See `Phase`."""
        return f"{'homomorphisms' if self.exact else 'magnitudes of homomorphisms'} for {self.pattern}"

    @property
    def activity(self) -> str:
        """See `Phase`."""
        return "counting"

    def tasks(self, env: Environment) -> Sequence[Task]:
        """Return tasks over the vertices."""
        return vertex_tasks(env, self.cost)

    @contextmanager
    def open(self, env: Environment) -> Iterator[MakeWorker]:
        """Load the graph."""
        graph, _ = load_graph(env)
        engine = env.engine

        def counter(memory: int) -> RowCounter:
            return engine.kernels.row_counter(engine.device, graph, self.program, memory, exact=self.exact)

        def make_worker() -> _RowWorker:
            try:
                return _RowWorker(env, make_workspace(engine, range_memory(env), counter), len(self.program.products))
            except WorkspaceTooLarge as error:
                raise DoesNotFit from error

        yield make_worker

    @staticmethod
    def totals(values: Sequence[Totals]) -> Totals:
        """Add the partial results up."""
        counts = [sum(column) % 2**64 for column in zip(*(counts for counts, _ in values), strict=True)]
        return counts, [sum(column) for column in zip(*(magnitudes for _, magnitudes in values), strict=True)]


class _RowWorker(RangeWorker):
    def __init__(self, env: Environment, counter: RowCounter, products: int):
        super().__init__(env, counter)
        self._counter = counter
        self._taken: Totals = ([0] * products, [0.0] * products)

    def run_part(self, first: int, last: int) -> None:
        prepare_range(self.env, first, last, NeighbourRange.ALL, vertices=True)
        self._counter.add(first, last)

    def take_partial(self) -> PartialResult:
        counts, magnitudes = (part.tolist() for part in self._counter.totals())
        before, self._taken = self._taken, (counts, magnitudes)
        return PartialResult((_new(counts, before[0]), _new(magnitudes, before[1])))


def _new(totals: list[Any], before: list[Any]) -> list[Any]:
    return [a - b for a, b in zip(totals, before, strict=True)]
