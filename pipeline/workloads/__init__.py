"""The workloads, one module each: how the plan is made, and what executing it gives.

A workload module has `plan(section, graph)`, which gives a plan with `describe()` and `to_dict()`, and
`execute(plan, context)`, which gives the counts per pattern.
"""

from importlib import import_module
from typing import Any, Protocol

from longwall.pipeline.config import WorkloadSection
from longwall.pipeline.execution.environment import Environment, PatternCount
from longwall.storage.graph.graph import Graph

_MODULES = {"motifs": "motifs.workload", "frequent": "frequent.workload", "transactions": "frequent.transactions"}
"""Of workloads that have more than a module."""


class Workload(Protocol):
    """What a workload module holds."""

    def plan(self, section: WorkloadSection, graph: Graph) -> Any:
        """Plan the work; a plan has `describe()` and `to_dict()`."""
        ...

    def execute(self, plan: Any, context: Environment) -> list[PatternCount]:
        """Do the work of a plan."""
        ...


def get_workload(kind: str) -> Workload:
    """Give the workload of a kind that the config has accepted."""
    workload: Workload = import_module(f"longwall.pipeline.workloads.{_MODULES.get(kind, kind)}")
    return workload
