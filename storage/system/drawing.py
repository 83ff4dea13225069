"""Drawings as data: shapes with coordinates, which are written as SVG."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import NamedTuple

from longwall.storage.errors import InputError, not_written
from longwall.storage.system.paths import require_path, user_path

WIDTH = 340
"""Of every plot, in units that are pixels on a narrow screen: text is readable there, and larger elsewhere."""

_COLOURS = ("#cfe2f3", "#fce5cd", "#d9ead3", "#f4cccc", "#d9d2e9", "#fff2cc", "#d0e0e3", "#ead1dc")
_INK = 'stroke="currentColor" stroke-width="1.6"'
_LOOKS = {
    "edge": _INK,
    "vertex": f'fill="none" {_INK}',
    "point": 'fill="currentColor"',
    "number": 'font-size="10"',
    "inked": 'fill="#1b1f24"',
} | {f"kind{number}": f'fill="{colour}"' for number, colour in enumerate(_COLOURS)}
"""Name of a style -> its attributes, where no style sheet says them; a later style of a shape goes before."""
KINDS = len(_COLOURS)
"""Number of colours for labels."""
_SCHEMES = (
    "<style>.longwall{color-scheme:light dark;color:#1b1f24}"
    "@media(prefers-color-scheme:dark){.longwall{color:#e6e9ed}}</style>"
)


class Shape(NamedTuple):
    """One element of SVG."""

    kind: str
    """Its name."""
    attributes: str
    """As they stand in SVG: numbers, nothing that comes from a run."""
    style: str = ""
    """Names of styles."""
    text: str = ""
    hint: str = ""
    """What a pointer on it shows."""


class Drawing:
    """A picture. A notebook shows it in the colour of its text, so that it is as readable on a dark page.

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
        self.shapes.append(Shape("rect", f'x="{_text(x)}" y="{_text(y)}" {size}', style, hint=hint))

    def line(self, x1: float, y1: float, x2: float, y2: float, style: str) -> None:
        """Add a straight line."""
        ends = f'x1="{_text(x1)}" y1="{_text(y1)}" x2="{_text(x2)}" y2="{_text(y2)}"'
        self.shapes.append(Shape("line", ends, style))

    def path(self, points: list[tuple[float, float]], style: str, *, closed: bool = False) -> None:
        """Add a line through points."""
        text = "M" + "L".join(f"{_text(x)} {_text(y)}" for x, y in points) + ("Z" if closed else "")
        self.shapes.append(Shape("path", f'd="{text}"', style))

    def circle(self, x: float, y: float, radius: float, style: str, *, hint: str = "") -> None:
        """Add a disc."""
        where = f'cx="{_text(x)}" cy="{_text(y)}" r="{_text(radius)}"'
        self.shapes.append(Shape("circle", where, style, hint=hint))

    def text(self, x: float, y: float, text: str, style: str = "", *, anchor: str = "start") -> None:
        """Add a line of text; `y` is its base line."""
        where = f'x="{_text(x)}" y="{_text(y)}" text-anchor="{anchor}"'
        self.shapes.append(Shape("text", where, style, text))

    def svg(self) -> str:
        """Return a file of SVG, which is light or dark as the page or the screen that shows it."""
        return self._svg('class="longwall" ', _SCHEMES)

    def savefig(self, path: str | Path) -> None:
        """Write a file of SVG; an older one is replaced.

        Raises
        ------
        InputError
            If the name does not end in ``.svg``, or the file cannot be written.
        """
        require_path("path", path, "the path of an .svg file")
        target = user_path(path)
        if target.suffix.lower() != ".svg":
            raise InputError(f"{target}: drawings are written as SVG: let the name end in .svg")
        try:
            target.write_text(self.svg(), encoding="utf-8")
        except OSError as error:
            raise not_written(f"{target}: the drawing cannot be written", error, "choose another place") from None

    def __repr__(self) -> str:
        return f'<longwall.Drawing: {self.label}; a notebook shows it, savefig("NAME.svg") writes it>'

    def _repr_html_(self) -> str:
        return self._svg()

    def _svg(self, attributes: str = "", style: str = "") -> str:
        size = f"{_text(self.width)} {_text(self.height)}"
        width, _, height = size.partition(" ")
        label = escape(self.label)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {attributes}role="img" aria-label="{label}" viewBox="0 0 {size}" '
            f'width="{width}" height="{height}" font-family="sans-serif" font-size="11">{style}'
            f"<title>{label}</title>{''.join(map(_element, self.shapes))}</svg>"
        )


def _element(shape: Shape) -> str:
    looks: dict[str, str] = {"fill": '"currentColor"'} if shape.kind == "text" else {}
    for name in shape.style.split():
        looks |= dict(look.split("=", 1) for look in _LOOKS.get(name, "").split())
    attributes = "".join(f" {name}={value}" for name, value in looks.items())
    hint = f"<title>{escape(shape.hint)}</title>" if shape.hint else ""
    return f"<{shape.kind} {shape.attributes}{attributes}>{escape(shape.text)}{hint}</{shape.kind}>"


def _text(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
