"""What every workload is: a section of the config that plans the work that it describes, and executes the plan."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, model_validator

from longwall.pipeline.execution.environment import PatternCount
from longwall.pipeline.label_names import label_texts
from longwall.pipeline.patterns.pattern import numbered_columns
from longwall.pipeline.workloads.sections import Section

if TYPE_CHECKING:
    from longwall.pipeline.execution.coordinator import Coordinator
    from longwall.pipeline.patterns.pattern import Pattern
    from longwall.pipeline.planning.plan import Choice, CountPlan
    from longwall.pipeline.planning.planner import Planner
    from longwall.pipeline.planning.query import Join, Want
    from longwall.storage.graph.graph import Graph

Output = Literal["count", "embeddings", "vertices", "edges"]

WANTS: dict[Output, Want] = {"count": "count", "embeddings": "rows", "vertices": "per_vertex", "edges": "per_edge"}
"""The want of a query for each output."""


class Workload(Section, ABC):
    """``[workload]`` of one kind: its keys, its plan, and what executing the plan gives.

    A subclass names its `kind` and the outputs that it can give, and adds its own keys. It is imported to read a
    config, so it imports libraries that take time in its methods.
    """

    rows_are_lists: ClassVar[bool] = False
    """Whether rows are lists of vertices: they can be limited, but have neither columns nor levels."""

    kind: str = Field(description="what to mine")
    output: Output = Field(default="count", description="in which form to give it")
    count: Literal["embeddings", "mappings", "subgraphs"] = Field(
        default="embeddings",
        description="`embeddings` (mappings up to the automorphisms of the pattern with its labels), `subgraphs` "
        "(distinct ones: fewer if only some vertices or edges of the pattern have a label) or, for `match`, "
        "`mappings`",
    )

    @model_validator(mode="before")
    @classmethod
    def _drop_what_says_nothing(cls, data: Any) -> Any:
        """Take ``induced = false`` away where it is no key: it may be in the section of any kind."""
        if isinstance(data, dict) and "induced" not in cls.model_fields and data.get("induced") is False:
            return {key: value for key, value in data.items() if key != "induced"}
        return data

    def _faults(self) -> Iterator[tuple[str, str]]:
        if self.count == "mappings":
            yield "count", f'{self.kind} counts distinct subgraphs; use kind = "match" for mappings'

    @property
    def adds_up(self) -> bool:
        """Whether the counts of the patterns add up to the answer; False: the answer is a table of patterns."""
        return True

    @property
    def most_embeddings(self) -> int | None:
        """After how many embeddings the search ends, where the workload's own section says so."""
        return None

    @property
    def input_format(self) -> str | None:
        """The format of the graph's file, where the workload determines it."""
        return None

    @property
    def num_columns(self) -> int | None:
        """Number of columns of the embeddings, one per pattern vertex; None where columns and rows are not chosen."""
        return None

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns of the embeddings."""
        return numbered_columns(self.num_columns or 0)

    @property
    def kernels(self) -> tuple[Any, ...]:
        """The kernels of the host, and functions of `Kernels`, that every graph needs."""
        return ()

    def with_absolute_paths(self) -> Workload:
        """Return the section with absolute paths."""
        return self

    @abstractmethod
    def plan(self, graph: Graph, planner: Planner | None = None) -> Any:
        """Plan the work for a graph; a plan has `describe()` and `to_dict()`.

        Parameters
        ----------
        graph
            The graph.
        planner
            Plans counts of patterns; None: by all methods.

        Raises
        ------
        InputError
            If the graph does not have what the workload needs.
        """

    @abstractmethod
    def execute(self, plan: Any, env: Coordinator) -> list[PatternCount]:
        """Do the work of a plan."""


def plan_pattern(
    pattern: Pattern,
    graph: Graph,
    output: Output,
    planner: Planner | None,
    *,
    induced: bool = False,
    join: Join = "vertices",
    limit: int | None = None,
) -> Choice:
    """Plan how to give an output for the embeddings of a pattern; counts may end at a limit."""
    from longwall.pipeline.planning.facts import Facts
    from longwall.pipeline.planning.planner import PLANNER
    from longwall.pipeline.planning.query import Query

    query = Query(pattern, induced, limit if output == "count" else None, join, WANTS[output])
    return (planner or PLANNER).plan(query, Facts.of(graph))


def answer_pattern(plan: CountPlan, env: Coordinator, *, written: int = 0, limit: int | None = None) -> PatternCount:
    """Count or write what a plan for a pattern says, a second time by another method if the config asks for that.

    Parameters
    ----------
    plan
        For the pattern.
    env
        The run.
    written
        Embeddings of other patterns that the run has written: ``export.limit`` is for all of them.
    limit
        Embeddings after which a count ends.
    """
    from longwall.pipeline.planning.plan import Choice

    rows = isinstance(plan, Choice) and plan.query.want == "rows"
    if rows:
        env.rows_written, limit = written, None if env.spec.limit is None else max(env.spec.limit - written, 0)
    count = plan.count(env) if rows or limit is None else min(plan.count_up_to(limit, env), limit)
    method = None
    if isinstance(plan, Choice):
        method = env.counted_by or None
        if env.spec.run.verify:
            plan.verify([count], env, limit)
    return PatternCount(
        plan.pattern.edge_text,
        label_texts(plan.pattern.labels, env.graph.label_names),
        count,
        lower_bound=limit is not None and count >= limit,
        edge_labels=label_texts(plan.pattern.edge_labels, env.graph.edge_label_names),
        method=method,
    )


def answer_several(plan: Choice, env: Coordinator) -> tuple[list[int], str | None]:
    """Count each pattern of a plan for several patterns; return the counts, and the name of the method."""
    counts = plan.counts(env)
    method = env.counted_by or None
    if env.spec.run.verify:
        plan.verify(counts, env)
    return counts, method
