"""The plots of a report: each is a picture, and its label is the sentence that stands for it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from longwall.pipeline.report import numbers
from longwall.pipeline.report.record import Heat
from longwall.storage.system.drawing import WIDTH, Drawing


class Logarithmic:
    """A scale on which every factor of ten is equally long, from 0.5 up to `top`.

    Parameters
    ----------
    top
        The largest value.
    length
        Of the scale in the picture.
    """

    def __init__(self, top: float, length: float):
        self._decades = max(math.log10(max(top, 1) * 2), 0.5)
        self._length = length
        self._top = top

    def __call__(self, value: float) -> float:
        """Return how long a value is."""
        return 0.0 if value <= 0 else max(math.log10(value * 2) / self._decades, 0) * self._length

    def ticks(self, most: int = 4) -> Iterator[int]:
        """Yield powers of ten, at most about the number given."""
        powers = int(math.log10(max(self._top, 1))) + 1
        return (10**power for power in range(0, powers, -(-powers // most)))


def even_ticks(top: float, most: int = 4) -> list[float]:
    """Return round values from 0 to at most `top`."""
    if top <= 0:
        return [0.0]
    power = 10.0 ** math.floor(math.log10(top / most))
    step = next(factor * power for factor in (1, 2, 5, 10) if top / (factor * power) <= most)
    return [step * number for number in range(int(top / step + 1e-9) + 1)]


_LEFT, _PLOT = 40.0, 120.0  # room for the numbers beside an axis, height of a plot without its own
_ROW = 30.0  # of a bar with its text above
_BINARY = 1024


class Bar(NamedTuple):
    """A bar of a plot."""

    name: str
    value: float
    hint: str = ""


class Span(NamedTuple):
    """Something with a beginning and an end, in seconds."""

    name: str
    begin: float
    end: float
    style: str = "bar"


def columns(label: str, bars: Sequence[Bar], below: str, beside: str) -> Drawing:
    """Draw bars that stand side by side, on a logarithmic scale; `below` and `beside` name the axes."""
    head = 18.0
    scene = Drawing(label, head + _PLOT + 48)
    scene.text(0, 10, f"{beside} (logarithmic)", "title")
    scale = Logarithmic(max((bar.value for bar in bars), default=1), _PLOT)
    floor = head + _PLOT + 12
    for tick in scale.ticks():
        y = floor - scale(tick)
        scene.line(_LEFT, y, WIDTH, y, "grid")
        scene.text(_LEFT - 5, y + 4, numbers.short(tick), anchor="end")
    step = (WIDTH - _LEFT) / max(len(bars), 1)
    every = max(-(-len(bars) * 34 // int(WIDTH - _LEFT)), 1)
    for at, bar in enumerate(bars):
        x = _LEFT + at * step
        if bar.value > 0:
            high = scale(bar.value)
            scene.rect(x + step * 0.1, floor - high, step * 0.8, high, "bar", hint=bar.hint)
        if at % every == 0:
            scene.text(x + step / 2, floor + 14, bar.name, anchor="middle")
    scene.line(_LEFT, floor, WIDTH, floor, "axis")
    scene.text((WIDTH + _LEFT) / 2, floor + 30, below, "title", anchor="middle")
    return scene


def pairs(label: str, rows: Sequence[tuple[str, float, float | None]], below: str) -> Drawing:
    """Draw a bar for each row on a logarithmic scale, and a mark where it was predicted to end."""
    scene = Drawing(label, len(rows) * _ROW + 40)
    top = max((max(actual, predicted or 0) for _, actual, predicted in rows), default=1)
    scale = Logarithmic(top, WIDTH - 2.0)
    floor = len(rows) * _ROW
    for tick in scale.ticks(5):
        x = scale(tick)
        scene.line(x, 0, x, floor, "grid")
        scene.text(x, floor + 14, numbers.short(tick), anchor=_anchor(x))
    for at, (name, actual, predicted) in enumerate(rows):
        y = at * _ROW
        scene.text(2, y + 12, f"{name}: {numbers.count(round(actual))}", "halo")
        scene.rect(0, y + 16, scale(actual), 10, "bar", hint=f"{name}: {numbers.count(round(actual))} rows")
        if predicted:
            x = min(scale(predicted), WIDTH - 2.0)
            scene.line(x, y + 13, x, y + 29, "mark")
    scene.text(WIDTH / 2, floor + 30, below, "title", anchor="middle")
    return scene


def bars(label: str, rows: Sequence[Bar]) -> Drawing:
    """Draw bars that lie one below the other, each with its name above."""
    scene = Drawing(label, len(rows) * _ROW)
    top = max((bar.value for bar in rows), default=0) or 1
    for at, bar in enumerate(rows):
        y = at * _ROW
        scene.text(0, y + 12, f"{bar.name[:34]}: {bar.hint}", "halo")
        scene.rect(0, y + 16, WIDTH, 10, "track")
        scene.rect(0, y + 16, bar.value / top * WIDTH, 10, "bar")
    return scene


def timeline(label: str, spans: Sequence[Span], total: float) -> Drawing:
    """Draw what began and ended when, a line each, with its name above."""
    scene = Drawing(label, len(spans) * _ROW + 24)
    total, floor = max(total, 1e-6), len(spans) * _ROW
    for tick in even_ticks(total):
        x = tick / total * WIDTH
        scene.line(x, 0, x, floor, "grid")
        scene.text(x, floor + 14, numbers.seconds(tick) if tick else "0 s", anchor=_anchor(x))
    for at, span in enumerate(spans):
        y, begin, length = at * _ROW, span.begin / total * WIDTH, (span.end - span.begin) / total * WIDTH
        words = f"{span.name[:36]}: {numbers.seconds(span.end - span.begin)}"
        right = begin > WIDTH * 0.5
        scene.text(WIDTH if right else begin, y + 12, words, "halo", anchor="end" if right else "start")
        scene.rect(min(begin, WIDTH - 1), y + 16, max(length, 1), 10, span.style, hint=words)
    return scene


def memory(
    label: str,
    at: Sequence[float],
    used: Sequence[float],
    peak: float,
    limit: float | None,
    process: Sequence[float] = (),
    process_peak: float | None = None,
) -> Drawing:
    """Draw the bytes that are reserved over time, those that the process has, and the budget where it is near."""
    head = 20.0
    scene = Drawing(label, head + _PLOT + 40)
    shown = limit if limit and limit <= 3 * max(peak, 1) else None
    top = max([*used, *process, peak, process_peak or 0, shown or 0, 1]) * 1.12
    unit = 1
    while top / unit >= _BINARY:
        unit *= _BINARY
    floor, left = head + _PLOT + 12, 58.0
    total = max(at[-1] if at else 0, 1e-6)
    for tick in even_ticks(top / unit, 3):
        y = floor - tick * unit / top * _PLOT
        scene.line(left, y, WIDTH, y, "grid")
        scene.text(left - 5, y + 4, numbers.size(tick * unit) if tick else "0 B", anchor="end")
    for tick in even_ticks(total, 4):
        x = left + tick / total * (WIDTH - left)
        scene.text(x, floor + 14, numbers.seconds(tick) if tick else "0 s", anchor=_anchor(x))
    names = [("area", f"reserved, at most {numbers.size(peak)}")] if peak else []
    names += [("process", f"process, at most {numbers.size(process_peak)}")] if process_peak else []
    for number, (style, name) in enumerate(names):
        scene.path([(number * WIDTH / 2, 6.0), (number * WIDTH / 2 + 14, 6.0)], f"{style} key")
        scene.text(number * WIDTH / 2 + 18, 10, name)

    def stairs(sizes: Sequence[float]) -> list[tuple[float, float]]:
        points = [
            (left + t / total * (WIDTH - left), floor - size / top * _PLOT) for t, size in zip(at, sizes, strict=True)
        ]
        return points[:1] + [place for (_, before), (x, y) in pairwise(points) for place in ((x, before), (x, y))]

    if at:
        line = stairs(used)
        scene.path([(line[0][0], floor), *line, (line[-1][0], floor)], "area", closed=True)
        scene.path(line, "curve")
    if at and process:
        scene.path(stairs(process), "process")
    if peak:
        scene.line(left, floor - peak / top * _PLOT, WIDTH, floor - peak / top * _PLOT, "peak")
    if shown:
        y = floor - shown / top * _PLOT
        scene.line(left, y, WIDTH, y, "limit")
        scene.text(WIDTH, y - 3, f"budget {numbers.size(shown)}", "halo", anchor="end")
    scene.line(left, floor, WIDTH, floor, "axis")
    return scene


def _anchor(x: float) -> str:
    """Return how a text lies around a place on an axis, so that none is cut at the sides."""
    return "start" if x < 16 else "end" if x > WIDTH - 24 else "middle"


def heat_map(label: str, heat: Heat) -> Drawing:
    """Draw a row of cells for each level: the more of the pages a level reads, the stronger the colour."""
    row, left = 22.0, 52.0
    scene = Drawing(label, len(heat.levels) * row + 22)
    top = max(max(cells) for cells in heat.levels.values()) or 1
    for at, (level, cells) in enumerate(sorted(heat.levels.items())):
        scene.text(0, at * row + 15, f"level {level}")
        wide = (WIDTH - left) / len(cells)
        for number, size in enumerate(cells):
            shade = -(-9 * size // top)  # 0: nothing was read; 1 to 9 else
            begin, end = (heat.pages * edge // len(cells) for edge in (number, number + 1))
            hint = f"level {level}, pages {begin:,} to {end - 1:,}: {numbers.size(size)}"
            scene.rect(left + number * wide, at * row + 2, wide - 0.4, row - 4, f"heat heat{shade}", hint=hint)
    floor = len(heat.levels) * row + 14
    scene.text(left, floor, "page 0: the largest degrees")
    scene.text(WIDTH, floor, f"page {heat.pages - 1:,}", anchor="end")
    return scene


def degree_bars(degrees: Sequence[Sequence[int]]) -> list[Bar]:
    """Return a bar for each power of two."""
    return [
        Bar(
            str(low) if low < 10_000 else f"{low // _BINARY}Ki" if low < _BINARY**2 else f"{low // _BINARY**2}Mi",
            vertices,
            f"degree {low:,}" + (f" to {2 * low - 1:,}" if low > 1 else "") + f": {vertices:,} vertices",
        )
        for low, vertices in degrees
    ]
