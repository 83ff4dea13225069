"""The plots of a report: each is a picture, and its label is the sentence that stands for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from longwall.pipeline.report import numbers
from longwall.pipeline.report.record import Heat
from longwall.pipeline.report.scales import Logarithmic, even_ticks
from longwall.storage.system.drawing import WIDTH, Drawing

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


def columns(label: str, bars: Sequence[Bar], below: str) -> Drawing:
    """Draw bars that stand side by side, on a logarithmic scale; `below` says what they are."""
    scene = Drawing(label, _PLOT + 48)
    scale = Logarithmic(max((bar.value for bar in bars), default=1), _PLOT)
    floor = _PLOT + 12
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


def pairs(label: str, rows: Sequence[tuple[str, float, float | None]]) -> Drawing:
    """Draw a bar for each row on a logarithmic scale, and a mark where it was predicted to end."""
    scene = Drawing(label, len(rows) * _ROW + 26)
    top = max((max(actual, predicted or 0) for _, actual, predicted in rows), default=1)
    scale = Logarithmic(top, WIDTH - 2.0)
    floor = len(rows) * _ROW
    for tick in scale.ticks(5):
        x = scale(tick)
        scene.line(x, 0, x, floor, "grid")
        scene.text(x, floor + 14, numbers.short(tick), anchor="middle" if tick > 1 else "start")
    for at, (name, actual, predicted) in enumerate(rows):
        y = at * _ROW
        scene.text(2, y + 12, f"{name}: {numbers.count(round(actual))}", "halo")
        scene.rect(0, y + 16, scale(actual), 10, "bar", hint=f"{name}: {numbers.count(round(actual))} rows")
        if predicted:
            x = scale(predicted)
            scene.line(x, y + 13, x, y + 29, "mark")
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
        anchor = "start" if x < 12 else "end" if x > WIDTH - 16 else "middle"
        scene.text(x, floor + 14, numbers.seconds(tick) if tick else "0", anchor=anchor)
    for at, span in enumerate(spans):
        y, begin, length = at * _ROW, span.begin / total * WIDTH, (span.end - span.begin) / total * WIDTH
        words = f"{span.name[:36]}: {numbers.seconds(span.end - span.begin)}"
        right = begin > WIDTH * 0.5
        scene.text(WIDTH if right else begin, y + 12, words, "halo", anchor="end" if right else "start")
        scene.rect(min(begin, WIDTH - 1), y + 16, max(length, 1), 10, span.style, hint=words)
    return scene


def memory(label: str, at: Sequence[float], used: Sequence[float], peak: float, limit: float | None) -> Drawing:
    """Draw the bytes in use over time, with their peak, and the budget where it is near."""
    scene = Drawing(label, _PLOT + 40)
    shown = limit if limit and limit <= 3 * max(peak, 1) else None
    top = max([*used, peak, shown or 0, 1]) * 1.08
    unit = 1
    while top / unit >= _BINARY:
        unit *= _BINARY
    floor, left = _PLOT + 12, 58.0
    total = max(at[-1] if at else 0, 1e-6)
    for tick in even_ticks(top / unit, 3):
        y = floor - tick * unit / top * _PLOT
        scene.line(left, y, WIDTH, y, "grid")
        scene.text(left - 5, y + 4, numbers.size(tick * unit) if tick else "0", anchor="end")
    for tick in even_ticks(total, 4):
        x = left + tick / total * (WIDTH - left)
        anchor = "middle" if x < WIDTH - 16 else "end"
        scene.text(x, floor + 14, numbers.seconds(tick) if tick else "0 s", anchor=anchor)
    points = [(left + t / total * (WIDTH - left), floor - size / top * _PLOT) for t, size in zip(at, used, strict=True)]
    if points:
        stairs = [points[0]]
        for x, y in points[1:]:
            stairs += [(x, stairs[-1][1]), (x, y)]
        scene.path([(stairs[0][0], floor), *stairs, (stairs[-1][0], floor)], "area", closed=True)
        scene.path(stairs, "curve")
    for value, name, style in ((peak, "peak", "peak"), (shown, "budget", "limit")):
        if value:
            y = floor - value / top * _PLOT
            scene.line(left, y, WIDTH, y, style)
            near = style == "peak" and shown is not None and abs(shown - value) < 0.15 * top  # the other one's text
            x, anchor = (left + 4, "start") if near else (WIDTH, "end")
            scene.text(x, y - 3, f"{name} {numbers.size(value)}", "halo", anchor=anchor)
    scene.line(left, floor, WIDTH, floor, "axis")
    return scene


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
