"""Frequent patterns of one graph, by the images of their vertices, their instances, or the transactions they lie in."""

from contextlib import nullcontext

import numpy as np

from longwall.pipeline.config import WorkloadSection
from longwall.pipeline.execution.environment import Environment, PatternCount
from longwall.pipeline.workloads.frequent.embedding_files import write_empty
from longwall.pipeline.workloads.frequent.levels import mine_frequent
from longwall.pipeline.workloads.frequent.pattern_table import PatternTable
from longwall.pipeline.workloads.frequent.plan import FrequentPlan, plan_frequent
from longwall.storage.graph.graph import Graph


def plan(section: WorkloadSection, graph: Graph) -> FrequentPlan:
    """Plan for the config's support and threshold."""
    return plan_frequent(section, graph, section.support or "mni")


def execute(plan: FrequentPlan, context: Environment) -> list[PatternCount]:
    """Mine, and write ``patterns.parquet`` and, if asked for, ``embeddings-*.parquet``."""
    first = 0  # row of the level's first pattern in the table
    path = context.results / "patterns.parquet"
    exported = 0
    with PatternTable(path, plan) if context.is_coordinator else nullcontext() as table:
        for found, embeddings in mine_frequent(plan, context):
            frequent = found.supports >= plan.min_support
            numbers = np.where(frequent, first + np.cumsum(frequent) - 1, -1)
            first += int(frequent.sum())
            if table is not None:
                table.write(found.selected(frequent))
            if plan.embeddings and embeddings is not None:
                exported += embeddings.export(found, numbers)
    if plan.embeddings and not exported and context.is_coordinator:
        write_empty(context.results / "embeddings-00001.parquet", plan)
    return [] if table is None else table.counts
