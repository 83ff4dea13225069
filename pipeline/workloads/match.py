"""Subgraph matching: count or list the embeddings of any connected pattern."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from longwall.pipeline.execution.environment import PatternCount
from longwall.pipeline.label_names import placeholders, with_label_numbers
from longwall.pipeline.patterns.parse import is_pattern_file, parse_pattern
from longwall.pipeline.quoting import quote
from longwall.pipeline.workloads.base import Join, Workload, count_or_list, plan_pattern
from longwall.pipeline.workloads.sections import as_tuple
from longwall.storage.errors import InputError
from longwall.storage.paths import path_exists

if TYPE_CHECKING:
    from longwall.pipeline.execution.environment import Coordinator
    from longwall.pipeline.phases.count_plans import CountPlan
    from longwall.pipeline.planning.search_plan import MatchPlan
    from longwall.storage.graph.graph import Graph


def _labels(value: object) -> object:
    """Check labels of vertices, which are whole numbers or texts."""
    labels = as_tuple(value)
    for label in labels if isinstance(labels, tuple) else ():
        if type(label) is not str and (type(label) is not int or label < 0):
            raise ValueError(f"expected labels that are integers from 0 up, or texts, not {quote(label)}")
    return labels


class Match(Workload):
    """``kind = "match"``: the embeddings of a query graph."""

    kind: Literal["match"] = Field(description="the embeddings of any small pattern")
    pattern_labels: Annotated[tuple[int | str, ...] | None, BeforeValidator(_labels)] = Field(
        default=None,
        description="one label per pattern vertex, integers or texts as in the graph; by default labels do not matter",
    )
    pattern: str = Field(
        description="a name, an edge list, vertices with names and labels such as `(a:1)-(b:2)-(c), (a)-(c)`, a "
        "`.graph` (`t n m`, `t id n` or `t # id`, then `v` and `e` lines) or `.graphml` file; connected, at most 16 "
        "vertices"
    )
    induced: bool = Field(default=False, description="whether non-edges of the pattern must be non-edges of the graph")
    output: Literal["count", "embeddings", "edges"] = Field(
        default="count",
        description="`count`, `embeddings`, or, for triangles, 4-cliques and 4-cycles without labels, `edges`: the "
        "number of embeddings that contain each edge",
    )
    join: Join = Field(
        default="vertices",
        description="`vertices`: a vertex of the pattern at a time; or, for comparison, `edges`: an edge at a time, "
        "GAMMA's binary joins",
    )

    @field_validator("pattern")
    @classmethod
    def _pattern_can_be_searched_for(cls, pattern: str, info: ValidationInfo) -> str:
        try:
            parse_pattern(pattern, placeholders(info.data.get("pattern_labels") or None))
        except InputError as error:
            raise ValueError(str(error)) from None
        return pattern

    @field_validator("join")
    @classmethod
    def _joins_are_for_searches(cls, join: str, info: ValidationInfo) -> str:
        if join == "edges" and info.data.get("output") == "edges":
            raise ValueError("counts per edge are not taken by joins; remove it")
        return join

    @field_validator("pattern")
    @classmethod
    def _edges_are_of_known_shapes(cls, pattern: str, info: ValidationInfo) -> str:
        if info.data.get("output") != "edges":
            return pattern
        from longwall.pipeline.phases.count_per_edge import edge_shape

        parsed = parse_pattern(pattern, placeholders(info.data.get("pattern_labels") or None))
        labelled = parsed.labels is not None or parsed.edge_labels is not None
        if labelled or edge_shape(parsed) is None:
            raise ValueError("counts per edge are given for triangles, 4-cliques and 4-cycles without labels only")
        return pattern

    @field_validator("induced")
    @classmethod
    def _edges_have_chords(cls, induced: bool, info: ValidationInfo) -> bool:
        if induced and info.data.get("output") == "edges":
            raise ValueError("counts per edge are of embeddings that may have further edges; remove it")
        return induced

    @field_validator("count")
    @classmethod
    def _counts_what_it_can(cls, count: str, info: ValidationInfo) -> str:
        if count == "mappings" and info.data.get("output") == "edges":
            raise ValueError('counts per edge are of embeddings; use output = "count" to count mappings')
        if count == "mappings" and info.data.get("output") == "embeddings":
            raise ValueError('embeddings are written once each; use output = "count" to count mappings')
        return count

    @property
    def num_columns(self) -> int:
        """Number of columns of the embeddings."""
        return parse_pattern(self.pattern).num_vertices

    def with_absolute_paths(self) -> Match:
        """Return the section with the absolute path of the pattern's file, if it is in a file."""
        text = self.pattern.strip()
        if not is_pattern_file(text) or not path_exists(text):
            return self
        return self.model_copy(update={"pattern": str(Path(text).absolute())})

    def plan(self, graph: Graph) -> CountPlan | MatchPlan:
        """Plan the matching of the pattern."""
        pattern = parse_pattern(self.pattern, placeholders(self.pattern_labels))
        pattern = with_label_numbers(pattern, self.pattern_labels, graph)
        if self.output == "edges":
            from longwall.pipeline.phases.count_per_edge import edge_shape, plan_per_edge

            shape = edge_shape(pattern)
            assert shape is not None, "the config was checked"
            return plan_per_edge(pattern, shape, graph)
        return plan_pattern(pattern, graph, self.output, induced=self.induced, join=self.join)

    def execute(self, plan: CountPlan | MatchPlan, env: Coordinator) -> list[PatternCount]:
        """Count or list the embeddings."""
        found = count_or_list(plan, env)
        if self.count == "mappings" and found.count is not None:
            found = replace(found, count=found.count * plan.automorphisms)
        return [found]
