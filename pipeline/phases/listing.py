"""List the embeddings of a pattern, in the order that the config asks for."""

from __future__ import annotations

from typing import NamedTuple

from longwall.pipeline.execution.environment import Coordinator
from longwall.pipeline.phases.list_by_levels import list_by_levels
from longwall.pipeline.phases.search_count import predict
from longwall.pipeline.phases.search_list import SearchList, embedding_writer, record_search, rows_left, search_share
from longwall.pipeline.planning.search_plan import MatchPlan
from longwall.stages.export import RowLimit
from longwall.storage.errors import InputError


class Listed(NamedTuple):
    """The result of a listing.

    Attributes
    ----------
    rows
        Rows written.
    lower_bound
        Whether there may be more embeddings: the limit was reached.
    """

    rows: int
    lower_bound: bool


def list_matches(plan: MatchPlan, env: Coordinator, *, written: int = 0) -> Listed:
    """Write the embeddings of a plan as Parquet.

    Parameters
    ----------
    plan
        The pattern's.
    env
        The run.
    written
        Rows that other listings of the run wrote: ``export.limit`` is for all of them.

    Raises
    ------
    InputError
        If a chunk of one row's extensions does not fit a budget, or a column does not exist.
    """
    names = [f"v{vertex}" for vertex in range(plan.pattern.num_vertices)]
    unknown = sorted(set(env.spec.export.columns or ()) - set(names))
    if unknown:
        raise InputError(f"export.columns: the pattern has no column {unknown[0]!r}, only {', '.join(names)}")
    predicted = predict(plan, env)
    if env.spec.scheduler.order == "levels":
        record = list_by_levels(plan, env, written, predicted)
    else:
        phase = SearchList(plan, None)
        record = env.run(SearchList(plan, rows_left(env, phase.name, written)))
    record_search(plan, env, record, predicted)
    rows: int = sum(record.values)
    if not rows:
        embedding_writer(plan, search_share(plan, env), RowLimit(None)).write_empty()
    limit = env.spec.limit
    return Listed(rows, limit is not None and written + rows >= limit)
