"""Frequent patterns of one graph, by the images of their vertices, their instances, or the transactions they lie in."""

import numpy as np

from longwall.pipeline.config import WorkloadSection
from longwall.pipeline.context import PatternCount, RunContext
from longwall.pipeline.frequent import mine_frequent
from longwall.pipeline.frequent_export import write_embeddings
from longwall.pipeline.frequent_plan import FrequentPlan, plan_frequent
from longwall.pipeline.pattern_table import PatternTable
from longwall.storage.graph import Graph


def plan(section: WorkloadSection, graph: Graph) -> FrequentPlan:
    """Plan for the config's support and threshold."""
    return plan_frequent(section, graph, section.support or "mni")


def execute(plan: FrequentPlan, context: RunContext) -> list[PatternCount]:
    """Mine, and write ``patterns.parquet`` and, if asked for, ``embeddings-*.parquet``."""
    with PatternTable(context.results / "patterns.parquet", plan) as table:
        for found, rows in mine_frequent(plan, context):
            frequent = found.supports >= plan.min_support
            numbers = np.full(len(frequent), -1)
            numbers[frequent] = table.write(found.selected(frequent))
            if plan.embeddings and rows is not None:
                write_embeddings(found, numbers, rows, plan, context)
    return table.counts
