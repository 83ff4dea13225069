"""Rows, seconds and bytes per level of a plan: what a worker measures and a commit carries."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from longwall.pipeline.execution.environment import Coordinator
from longwall.pipeline.run_store.commit_log import LevelFigures, PartialResult


class StageSample:
    """The figures of a piece of work, which are set while its clock runs."""

    rows_in = rows_out = size = 0


class StageTimer:
    """Figures of one worker since they were last taken."""

    def __init__(self) -> None:
        self._levels: LevelFigures = {}

    @contextmanager
    def time(self, level: int) -> Iterator[StageSample]:
        """Time a piece of work for a level, and add its figures up."""
        sample, began = StageSample(), time.perf_counter()
        yield sample
        figures = [sample.rows_in, sample.rows_out, time.perf_counter() - began, sample.size, 1]
        add_figures(self._levels, level, figures)

    def take(self) -> LevelFigures:
        """Return the figures and begin anew."""
        taken, self._levels = self._levels, {}
        return taken


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
    levels: LevelFigures = {}
    for partial in partials:
        for level, figures in partial.levels.items():
            add_figures(levels, level, figures)
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


def add_figures(levels: LevelFigures, level: int, figures: list[float]) -> None:
    """Add figures to those of a level."""
    before = levels.setdefault(level, [0, 0, 0.0, 0, 0])
    levels[level] = [a + b for a, b in zip(before, figures, strict=True)]
