"""Pictures as data: shapes with coordinates, which a template writes as SVG. Colours are classes of the style sheet."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

WIDTH = 340
"""Of every picture, in units that are pixels on a narrow screen: text is readable there, and larger elsewhere."""


class Shape(NamedTuple):
    """One element of SVG."""

    kind: str
    """Its name."""
    attributes: str
    """As they stand in SVG: numbers and names of styles, nothing that comes from a run."""
    text: str = ""
    hint: str = ""
    """What a pointer on it shows."""


class Scene:
    """A picture.

    Parameters
    ----------
    label
        What is seen, for those who do not see it.
    height, width
        Its size.
    """

    def __init__(self, label: str, height: float, width: float = WIDTH):
        self.label, self.height, self.width = label, height, width
        self.shapes: list[Shape] = []

    def rect(self, x: float, y: float, width: float, height: float, style: str, *, hint: str = "") -> None:
        """Add a rectangle."""
        size = f'width="{_text(max(width, 0.5))}" height="{_text(max(height, 0.5))}"'
        self.shapes.append(Shape("rect", f'x="{_text(x)}" y="{_text(y)}" {size} class="{style}"', hint=hint))

    def line(self, x1: float, y1: float, x2: float, y2: float, style: str) -> None:
        """Add a straight line."""
        ends = f'x1="{_text(x1)}" y1="{_text(y1)}" x2="{_text(x2)}" y2="{_text(y2)}"'
        self.shapes.append(Shape("line", f'{ends} class="{style}"'))

    def path(self, points: list[tuple[float, float]], style: str, *, closed: bool = False) -> None:
        """Add a line through points."""
        text = "M" + "L".join(f"{_text(x)} {_text(y)}" for x, y in points) + ("Z" if closed else "")
        self.shapes.append(Shape("path", f'd="{text}" class="{style}"'))

    def circle(self, x: float, y: float, radius: float, style: str, *, hint: str = "") -> None:
        """Add a disc."""
        where = f'cx="{_text(x)}" cy="{_text(y)}" r="{_text(radius)}"'
        self.shapes.append(Shape("circle", f'{where} class="{style}"', hint=hint))

    def text(self, x: float, y: float, text: str, style: str = "", *, anchor: str = "start") -> None:
        """Add a line of text; `y` is its base line."""
        where = f'x="{_text(x)}" y="{_text(y)}" text-anchor="{anchor}"'
        self.shapes.append(Shape("text", f'{where} class="{style}"' if style else where, text))


def _text(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


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
        """Yield powers of ten, at most about so many."""
        powers = int(math.log10(max(self._top, 1))) + 1
        return (10**power for power in range(0, powers, -(-powers // most)))


def even_ticks(top: float, most: int = 4) -> list[float]:
    """Return round values from 0 to at most `top`."""
    if top <= 0:
        return [0.0]
    power = 10.0 ** math.floor(math.log10(top / most))
    step = next(factor * power for factor in (1, 2, 5, 10) if top / (factor * power) <= most)
    return [step * number for number in range(int(top / step + 1e-9) + 1)]
