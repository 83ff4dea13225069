"""An algorithm of users' own: a Python class that a config names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, ValidatorFunctionWrapHandler, WrapValidator

from longwall.pipeline.execution.environment import PatternCount
from longwall.pipeline.workloads.base import Workload
from longwall.pipeline.workloads.custom.loading import AlgorithmClass, find_class, name_class
from longwall.storage.errors import InputError

if TYPE_CHECKING:
    from longwall.pipeline.execution.coordinator import Coordinator
    from longwall.pipeline.planning.planner import Planner
    from longwall.pipeline.workloads.custom.phase import RunAlgorithm
    from longwall.storage.graph.graph import Graph


@dataclass(frozen=True)
class CustomPlan:
    """How an algorithm is run: one phase."""

    phase: RunAlgorithm

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data."""
        phase = self.phase
        return {
            "kind": "custom",
            "algorithm": phase.algorithm.name,
            "sha256": phase.algorithm.sha256,
            "parameters": json.loads(phase.parameters),
        }

    def describe(self) -> str:
        """The plan as text."""
        parameters = ", ".join(f"{name} = {value!r}" for name, value in json.loads(self.phase.parameters).items())
        head = f"algorithm    {self.phase.algorithm.name}" + (f" ({parameters})" if parameters else "")
        return "\n".join([head, *(stage.describe() for stage in self.phase.stages)])


def _named(value: Any, check: ValidatorFunctionWrapHandler) -> Any:
    return name_class(value) if isinstance(value, type) else check(value)


class Custom(Workload):
    """``kind = "custom"``: an algorithm of your own."""

    kind: Literal["custom"] = Field(description="an algorithm of your own, a Python class")
    algorithm: Annotated[str, WrapValidator(_named)] = Field(
        description='the class: `"my_module.py:MyClass"`, a file beside the config, or `"package.module:MyClass"`'
    )
    parameters: dict[str, Any] | None = Field(default=None, description="a table of arguments for the class")
    output: Literal["count"] = Field(default="count", description="`count`; the class says which rows are written")

    def _faults(self) -> Iterator[tuple[str, str]]:
        try:
            find_class(self.algorithm)
        except InputError as error:
            yield "algorithm", str(error)
        if self.count != "embeddings":
            yield "count", "your class decides what to count: remove this key"

    def with_absolute_paths(self) -> Custom:
        """Return the section with the absolute path of the file, if the class is in a file."""
        place, colon, title = self.algorithm.rpartition(":")
        if not place.endswith(".py"):
            return self
        return self.model_copy(update={"algorithm": f"{Path(place).absolute()}{colon}{title}"})

    def plan(self, graph: Graph, planner: Planner | None = None) -> CustomPlan:  # noqa: ARG002
        """Plan the one phase; the algorithm's object is made, so that wrong parameters are found before the run."""
        from longwall.pipeline.workloads.custom.phase import RunAlgorithm, arrow_schema, stages_of

        found, sha256 = find_class(self.algorithm)
        parameters = self.parameters or {}
        named = AlgorithmClass(self.with_absolute_paths().algorithm, sha256)
        arrow_schema(named.make(parameters))
        cost = float(graph.stats.sum_degree_squared)
        return CustomPlan(RunAlgorithm(named, json.dumps(parameters), cost, stages_of(found)))

    def execute(self, plan: CustomPlan, env: Coordinator) -> list[PatternCount]:
        """Run the algorithm."""
        from longwall.pipeline.execution.stage_metrics import record_levels
        from longwall.pipeline.workloads.custom.phase import arrow_schema
        from longwall.storage.parquet_files import write_parquet

        algorithm = plan.phase.make()
        record = env.run(plan.phase)
        record_levels(env, record.partials, {0: "export", 1: "source"})
        aggregation = plan.phase.aggregation
        whole = aggregation.combine(record.values)
        if algorithm.schema and not whole["rows"]:  # so that a result without rows still has its columns
            write_parquet(arrow_schema(algorithm, env.graph.id_type).empty_table(), env.results / "rows-00000.parquet")
        answer = aggregation.finalize(whole)
        number = answer if isinstance(answer, int) and not isinstance(answer, bool) else None
        title = type(algorithm).__name__
        return [PatternCount(title, None, number, value=None if number is not None else answer)]
