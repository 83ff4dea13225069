"""Count the matches of a labelled query as a sum of terms, modulo what its magnitude needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from longwall.kernels.exact_numbers import PRIMES, combine, moduli_for
from longwall.kernels.host.queries.candidate_space import QueryGraph
from longwall.kernels.host.queries.sums.counter import QueryAdder, QuerySum, bytes_for
from longwall.kernels.host.queries.sums.kernel import MOST_KNOWN
from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.execution.derived import made
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import (
    MakeWorker,
    NotEnoughMemory,
    Phase,
    Task,
    Worker,
    equal_tasks,
    host_threads,
)
from longwall.pipeline.phases.queries.candidates import STEPS, TASKS, Candidates, terms_of
from longwall.pipeline.run_store.commit_log import PartialResult
from longwall.stages.base import Aggregation
from longwall.stages.stage_timer import StageTimer
from longwall.storage.memory.reservations import BudgetExceeded

Sums = tuple[int, float]
"""A sum modulo a number, and the sum of the absolute values of its terms in floating point."""


_WORD = 1 << 64


@dataclass(frozen=True)
class QueryTerms(Phase):
    """Add up the terms of a query; every partial result is one of `Sums`. The work is done on the host.

    Attributes
    ----------
    query
        The query, which has a match.
    title
        What it is called.
    modulus
        What sums are modulo: a prime below 2**31; 0: 2**64.
    """

    on_host: ClassVar[bool] = True

    query: QueryGraph
    title: str
    modulus: int = 0
    activity = "counting"
    unit = "roots"

    @property
    def name(self) -> str:
        """See `Phase`."""
        return f"add up {self.title}" + (f", modulo {self.modulus}" if self.modulus else "")

    @property
    def aggregation(self) -> Aggregation[Sums, Sums]:
        """See `Phase`."""
        return Aggregation(_same, partial(_added, modulus=self.modulus or _WORD), _same)

    def prepare(self, env: Environment) -> None:
        """Find the candidates, and the terms."""
        terms_of(self.query, env)

    def tasks(self, env: Environment) -> Sequence[Task]:
        """Return tasks over the roots of all terms."""
        terms = made(env, Candidates(self.query)).terms
        assert terms is not None, "the phase is not prepared"
        return equal_tasks(terms.roots, TASKS * host_threads(env))

    @contextmanager
    def open(self, env: Environment) -> Iterator[MakeWorker]:
        """Share the terms."""
        sums = terms_of(self.query, env)
        yield lambda: _SumWorker(sums, self.modulus, env)

    def exact(self, env: Coordinator, record: Callable[[Sequence[PartialResult]], None]) -> int:
        """Add up, again and again until the number is exact, and hand the first partial results to `record`.

        Raises
        ------
        NotEnoughMemory
            If the host's budget has no room for the workers.
        """
        found = env.run(self)
        record(found.partials)
        number, magnitude = self.aggregation.result(found.values)
        if magnitude >= MOST_KNOWN:
            magnitude = terms_of(self.query, env).most
        residues = {_WORD: [number]}
        for prime in moduli_for(magnitude, PRIMES):
            again = replace(self, modulus=prime)
            residues[prime] = [again.aggregation.result(env.run(again).values)[0]]
        return combine(residues)[0]


def _same(value: Sums) -> Sums:
    return value


def _added(values: Sequence[Sums], modulus: int) -> Sums:
    return sum(number for number, _ in values) % modulus, sum(magnitude for _, magnitude in values)


class _SumWorker(Worker):
    def __init__(self, sums: QuerySum, modulus: int, env: Environment):
        try:
            self._memory = env.resources.host.reserve(bytes_for(sums), "a worker's sums")
        except BudgetExceeded as error:
            raise NotEnoughMemory(str(error)) from None
        self._adder, self._modulus, self._env = QueryAdder(sums, modulus), modulus or _WORD, env
        self._sums: Sums = 0, 0.0
        self._timer, self._level = StageTimer(), sums.space.query.size - 1

    def run(self, first: int, last: int) -> None:
        """See `Worker`."""
        self._adder.begin(first, last)
        with self._timer.time(self._level) as sample:
            sample.rows_in = last - first
            while not (self._adder.over or self._env.cancel.is_set()):
                self._sums = _added([self._sums, self._adder.advance(STEPS)], self._modulus)

    def take_partial(self) -> PartialResult:
        """See `Worker`."""
        found, self._sums = self._sums, (0, 0.0)
        return PartialResult(found, levels=self._timer.take())

    def close(self) -> None:
        """See `Worker`."""
        self._memory.release()
