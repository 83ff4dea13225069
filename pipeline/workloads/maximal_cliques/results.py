"""The result tables of maximal cliques, from the phases that find them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.execution.environment import Environment, PatternCount
from longwall.pipeline.execution.rows.row_sink import row_sink
from longwall.pipeline.phases.count_per_vertex import CountPerVertex
from longwall.pipeline.phases.range_count import RangeCount
from longwall.pipeline.phases.search_list import rows_left
from longwall.pipeline.result_tables import TOO_LARGE
from longwall.pipeline.workloads.base import Output
from longwall.pipeline.workloads.maximal_cliques.limited import CliquesUpTo
from longwall.pipeline.workloads.maximal_cliques.listing import CliqueList, clique_schema
from longwall.pipeline.workloads.maximal_cliques.order import ordered_graph
from longwall.stages.base import Stage
from longwall.stages.cliques.maximal import CountMaximalCliques, CountMaximalCliquesOfVertices
from longwall.stages.export import WriterMemory
from longwall.storage.errors import FinalError
from longwall.storage.parquet_files import write_parquet
from longwall.storage.tables.arrow_columns import of_array


@dataclass(frozen=True)
class CliqueSizes(RangeCount):
    """Count maximal cliques by size."""

    def arrays(self, env: Environment) -> GraphArrays:
        """See `RangePhase`."""
        return ordered_graph(env)


@dataclass(frozen=True)
class CliquesPerVertex(CountPerVertex):
    """Count the maximal cliques of every vertex."""

    def arrays(self, env: Environment) -> GraphArrays:
        """See `RangePhase`."""
        return ordered_graph(env)


_STAGE = "maximal cliques"


def stages_of(output: Output, min_size: int, limit: int | None) -> tuple[Stage, ...]:
    """Return the stages that a search for maximal cliques sends ranges of vertices through."""
    if output == "count" and limit is not None:
        return CliquesUpTo(min_size, limit).stages
    if output == "embeddings":
        return CliqueList(min_size, None).stages
    count = CountMaximalCliques(min_size) if output == "count" else CountMaximalCliquesOfVertices(min_size)
    return count.source, count


def count_by_size(min_size: int, env: Coordinator) -> list[PatternCount]:
    """Write the number of maximal cliques of every size to ``sizes.parquet``, and return it."""
    if env.spec.limit is not None:
        began = time.perf_counter()
        counts = CliquesUpTo(min_size, env.spec.limit).run(env)
        env.metrics.record(_STAGE, 0, env.graph.num_vertices, sum(counts), time.perf_counter() - began)
        return _sizes(counts, env, lower_bound=sum(counts) >= env.spec.limit)
    return _sizes(CliqueSizes(CountMaximalCliques(min_size), 0.0).run(env), env)


def count_per_vertex(min_size: int, env: Coordinator) -> list[PatternCount]:
    """Write ``vertices.parquet``, and what `count_by_size` writes."""
    began = time.perf_counter()
    with CliquesPerVertex(CountMaximalCliquesOfVertices(min_size), 0.0).run(env) as (cliques, largest, sizes):
        counts = [0, *sizes[: int(largest.max(initial=0))].tolist()]
        env.metrics.record(_STAGE, 0, len(cliques), sum(counts), time.perf_counter() - began)
        columns = {"maximal_cliques": of_array(cliques), "largest": of_array(largest)}
        table = pa.table({"vertex": env.graph.all_ids()} | columns)
        write_parquet(table, env.results / "vertices.parquet")
    return _sizes(counts, env)


def list_cliques(min_size: int, env: Coordinator) -> PatternCount:
    """Write the cliques, and return how many there are."""
    began = time.perf_counter()
    phase = CliqueList(min_size, None)
    record = env.run(CliqueList(min_size, rows_left(env, phase.name, 0)))
    rows: int = sum(record.values)
    env.metrics.record(_STAGE, 0, record.total, rows, time.perf_counter() - began, 0, record.ranges)
    if not rows:
        row_sink(env, clique_schema(env.graph), WriterMemory.within(0, 1, 1)).write_empty()
    limit = env.spec.limit
    return PatternCount("maximal clique", None, rows, lower_bound=limit is not None and rows >= limit)


def _sizes(counts: Sequence[int], env: Coordinator, *, lower_bound: bool = False) -> list[PatternCount]:
    """Write the counts by size, and return them, those that are not 0.

    Raises
    ------
    FinalError
        If one does not fit 64-bit integers.
    """
    rows = [(size, count) for size, count in enumerate(counts) if count]
    for size, count in rows:
        if count >= TOO_LARGE:
            raise FinalError(f"about {count:.3g} maximal cliques of {size} vertices do not fit 64-bit integers")
    schema = pa.schema([("size", pa.int32()), ("count", pa.int64())])
    sizes, numbers = np.array(rows, np.int64).reshape(-1, 2).T
    columns = [of_array(sizes.astype(np.int32)), of_array(numbers)]
    write_parquet(pa.Table.from_arrays(columns, schema=schema), env.results / "sizes.parquet")
    return [
        PatternCount(f"maximal clique of {size} vertices", None, count, lower_bound=lower_bound) for size, count in rows
    ]
