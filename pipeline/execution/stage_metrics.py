"""Put what the stages of a phase measured into the metrics of a run."""

from collections.abc import Iterable

from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.run_store.commit_log import PartialResult
from longwall.stages.stage_timer import sum_figures


def record_levels(
    env: Coordinator,
    partials: Iterable[PartialResult],
    names: dict[int, str],
    predicted: dict[int, float] | None = None,
) -> None:
    """Sum up the figures of a phase's commits and put them into the run's metrics.

    Parameters
    ----------
    env
        The run.
    partials
        The commits.
    names
        Level to the name of its stage; levels without one are called ``extend``.
    predicted
        Level to the rows that were predicted.
    """
    levels = sum_figures(partial.levels for partial in partials)
    for level, (rows_in, rows_out, seconds, size, chunks) in sorted(levels.items()):
        env.metrics.record(
            names.get(level, "extend"),
            level,
            int(rows_in),
            int(rows_out),
            seconds,
            int(size),
            int(chunks),
            predicted=(predicted or {}).get(level),
        )
