"""Rows, seconds and bytes per level of a plan, as the stages of one worker measure them."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

LevelFigures = dict[int, list[float]]
"""Level -> rows in, rows out, seconds, bytes, chunks."""


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
        _add_figures(self._levels, level, figures)

    def take(self) -> LevelFigures:
        """Return the figures and begin anew."""
        taken, self._levels = self._levels, {}
        return taken


def sum_figures(found: Iterable[LevelFigures]) -> LevelFigures:
    """Add figures up, level by level."""
    levels: LevelFigures = {}
    for some in found:
        for level, figures in some.items():
            _add_figures(levels, level, figures)
    return levels


def _add_figures(levels: LevelFigures, level: int, figures: list[float]) -> None:
    before = levels.setdefault(level, [0, 0, 0.0, 0, 0])
    levels[level] = [a + b for a, b in zip(before, figures, strict=True)]
