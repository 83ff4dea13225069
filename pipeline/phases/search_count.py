"""Count the embeddings of a pattern by search.

Where the graph lies in one place, only the edges of the graph are made into a table, and one kernel walks depth-first
through all later levels. Where the pages of the graph come and go, levels are extended chunk by chunk: what each reads
is known before it is extended, so that its pages can be chosen. In both, the suffix of the matching order is only
counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from longwall.kernels.interface.engine import ShortOfMemory
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.execution.device_graph import load_graph, loaded_edge_labels, loaded_graph
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import MakeWorker, Phase, Task
from longwall.pipeline.execution.search_context import SearchContext, SearchShare
from longwall.pipeline.execution.stage_metrics import record_levels
from longwall.pipeline.execution.task_ranges import is_brief, pieces_of
from longwall.pipeline.execution.worker_memory import WorkerMemory
from longwall.pipeline.phases.search_list import load_searched
from longwall.pipeline.planning.prediction import estimate_levels, predicted_rows
from longwall.pipeline.planning.search.search_plan import MatchPlan
from longwall.pipeline.run_store.commit_log import PartialResult
from longwall.stages.base import Aggregation, Stage
from longwall.stages.counting import CountEdges
from longwall.stages.export import RowLimit
from longwall.storage.errors import InputError, RunError

_PREDICTION_SHARE, _LEAST_EFFORT, _MOST_EFFORT = 0.01, 1e5, 1e7  # in steps, as the planner estimates them
_SAMPLE_BYTES = 1 << 28
_LONG_COUNT = 1e11  # steps: the kernels that sample would have to be compiled besides those that count


@dataclass(frozen=True)
class SearchCount(Phase):
    """Count the matches of a plan: embeddings times the plan's redundancy; every partial result is a number.

    Attributes
    ----------
    plan
        The pattern's.
    limit
        Matches that are wanted, None: all.
    """

    plan: MatchPlan
    limit: int | None = None
    activity = "counting"

    @property
    def name(self) -> str:
        """See `Phase`."""
        return f"search {self.plan.title}"

    @property
    def wanted_rows(self) -> int | None:
        """See `Phase`."""
        return self.limit

    @property
    def aggregation(self) -> Aggregation[int, int]:
        """See `Phase`."""
        return self.plan.fused_count.aggregation

    @property
    def keeps_workers(self) -> bool:
        """See `Phase`; not where they know how many matches are still wanted."""
        return self.limit is None

    def brief(self, env: Environment) -> bool:
        """See `Phase`; degrees bound the steps: the search takes at most a vertex's neighbours below each row.

        Rows of two vertices are edges, so all of them together take at most the sum of the squared degrees.
        """
        if self.limit is not None or not self._fused(loaded_graph(env)):
            return False
        stats, levels = env.graph.stats, len(self.plan.program.levels)
        return is_brief(env, stats.sum_degree_squared * stats.max_degree ** (levels - 2))

    def prepare(self, env: Environment) -> None:
        """Bring what the search reads to the engine."""
        load_searched(self.plan, env)

    def tasks(self, env: Environment) -> Sequence[Task]:
        """Return tasks over the arcs."""
        return self._share(env).tasks(pieces_of(env, self.plan.cost))

    @contextmanager
    def open(self, env: Environment) -> Iterator[MakeWorker]:
        """Reserve the workers' tables."""
        share = self._share(env)
        fused = self._fused(share.graph)  # one kernel walks through all levels behind the source
        stages = (CountEdges(self.plan.edge_source, self.plan.fused_count),) if fused else self.plan.stages
        limit = RowLimit(self.limit)
        with share.memory.reserved(env, share.tasks(pieces_of(env, self.plan.cost))):
            yield lambda: _CountWorker(share, stages, limit)

    def _fused(self, graph: GraphArrays) -> bool:
        """Return whether one kernel walks through all levels."""
        return graph.pages is None and not self.plan.joined

    def _share(self, env: Environment) -> SearchShare:
        edge_labels = loaded_edge_labels(env) if self.plan.has_edge_labels else None
        graph, memory = loaded_graph(env), env.resources.work.free
        program = self.plan.program
        if self._fused(graph):
            return SearchShare(program, env, graph, WorkerMemory.for_edges(env, memory))
        of_worker = WorkerMemory.within(program.depth, graph, env, memory, exporting=False)
        return SearchShare(program, env, graph, of_worker, edge_labels)


class _CountWorker(SearchContext):
    def __init__(self, share: SearchShare, stages: Sequence[Stage], limit: RowLimit):
        super().__init__(share, stages)
        self.most_rows, self._sum, self._limit = share.memory.rows, 0, limit

    @property
    def done(self) -> bool:
        """Whether no more matches are wanted, or the run is to end."""
        return self._limit.reached or super().done

    @property
    def wanted(self) -> int | None:
        """How many matches are still wanted; None: all."""
        return self._limit.left

    def add(self, number: int) -> None:
        """Add to the count."""
        self._sum += self._limit.take(number)

    def take_partial(self) -> PartialResult:
        found, self._sum = self._sum, 0
        return PartialResult(found, levels=self.timer.take())


def count_matches(plan: MatchPlan, env: Coordinator, limit: int | None = None) -> int:
    """Count the embeddings of a plan; nothing but the source's edges is ever written.

    With a limit, the search ends once it has found that number.
    """
    predicted = predict(plan, env) if plan.cost > _LONG_COUNT and limit is None else {}
    phase = SearchCount(plan)
    if limit is not None:
        phase = SearchCount(plan, wanted_left(limit * plan.redundancy, env, phase))
    record = env.run(phase)
    record_levels(env, record.partials, {1: "source", plan.pattern.num_vertices - 1: "count"}, predicted)
    return phase.aggregation.result(record.values)


def wanted_left(limit: int, env: Coordinator, phase: Phase) -> int:
    """Return how many a phase shall still find, of a limit; an earlier attempt may have found some."""
    found: int = sum(env.values(phase))
    return limit - found


def predict(plan: MatchPlan, env: Coordinator) -> dict[int, float]:
    """Predict the rows of every level by sampling, for a small share of what the search is estimated to take.

    Returns
    -------
    dict of int to float
        Level, as the metrics know it, to rows; empty where sampling has too little memory.
    """
    if plan.joined:  # a sample would be of the rows before they are verified
        return {}
    graph, memory = load_graph(env, copies=plan.reads_whole_lists)
    env.observer.phase("sampling", None, "steps")
    effort = min(_MOST_EFFORT, max(plan.cost * _PREDICTION_SHARE, _LEAST_EFFORT))
    memory = min(memory, _SAMPLE_BYTES)
    try:
        with env.engine.faults(), env.resources.work.reserve(memory, "a sample"):
            return predicted_rows(plan, estimate_levels(plan, graph, env.resources, memory, effort=effort))
    except (InputError, RunError, ShortOfMemory):
        return {}
