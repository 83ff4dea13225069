"""List the embeddings of a pattern, in the order that the config asks for."""

from __future__ import annotations

from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.execution.phase import NotEnoughMemory
from longwall.pipeline.phases.by_label.laid_out import laid_out
from longwall.pipeline.phases.by_label.layouts import layout_of
from longwall.pipeline.phases.list_by_levels import list_by_levels
from longwall.pipeline.phases.search_count import predict
from longwall.pipeline.phases.search_list import SearchList, embedding_writer, record_search, rows_left
from longwall.pipeline.planning.search.search_plan import MatchPlan
from longwall.stages.export import RowLimit, WriterMemory
from longwall.storage.errors import InputError
from longwall.storage.graph.derived.label_layout import LabelLayout


def list_matches(plan: MatchPlan, env: Coordinator, *, written: int = 0) -> int:
    """Write the embeddings of a plan as Parquet, and return how many it has written.

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
    names = plan.pattern.columns
    unknown = sorted(set(env.spec.export.columns or ()) - set(names))
    if unknown:
        raise InputError(f"export.columns: the pattern has no column {unknown[0]!r}, only {', '.join(names)}")
    if (layout := _layout(plan, env)) is not None:
        try:
            there = laid_out(env, layout)
            return _listed(plan, there if there.graph.num_edges else env, written)
        except NotEnoughMemory:
            env.forget_layout()
            env.observer.note("the budget has no room for the graph by label: searching the whole graph instead")
    return _listed(plan, env, written)


def _layout(plan: MatchPlan, env: Coordinator) -> LabelLayout | None:
    """Return the layout to list on, if any: not for a few rows, nor where an earlier attempt did without."""
    begun = env.values(SearchList(plan, None))
    if begun or env.spec.limit is not None or env.spec.scheduler.order == "levels":
        return None
    return layout_of(plan, env.graph.stats)


def _listed(plan: MatchPlan, env: Coordinator, written: int) -> int:
    predicted = predict(plan, env)
    if env.spec.scheduler.order == "levels":
        record = list_by_levels(plan, env, written, predicted)
    else:
        phase = SearchList(plan, None)
        record = env.run(SearchList(plan, rows_left(env, phase.name, written)))
    record_search(plan, env, record, predicted)
    rows: int = sum(record.values)
    if not rows:
        embedding_writer(plan, env, WriterMemory.within(0, 1, 1), RowLimit(None)).sink.write_empty()
    return rows
