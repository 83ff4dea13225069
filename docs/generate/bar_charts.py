"""Bar charts of tables of seconds, for pages of the site: a comment before a table names its columns.

``<!-- bars: Longwall; igraph -->`` becomes a drawing with a bar for each of these columns in each row. The axis is
logarithmic; ``over 60`` is a bar with an open end, and an empty field has none. A figure is in seconds unless ``ms``
stands behind it; of ``7.0 to 7.4`` the bar has the last. Letters keep their size on a narrow screen: it is HTML.
"""

from __future__ import annotations

import re
from html import escape
from math import ceil, floor, log10

_MARK = re.compile(r"^<!-- bars: (.+) -->\n((?:\|.*\n)+)", re.MULTILINE)
_FIGURE = re.compile(r"(?P<open>(?:over|more than) )?(?:\d[\d.,]* to )?(?P<number>\d[\d.,]*)(?P<unit> ms\b| s\b)?")


def with_charts(markdown: str) -> str:
    """Put a drawing before each table that asks for one."""
    return _MARK.sub(lambda found: f"{chart(found[1], found[2])}\n\n{found[2]}", markdown)


def chart(columns: str, table: str) -> str:
    """Return the drawing of columns of a table in Markdown."""
    head, _, *rows = ([cell.strip() for cell in line.strip()[1:-1].split("|")] for line in table.splitlines())
    names = columns.split("; ")
    at = [head.index(name) for name in names]
    found = [(row[0], [_FIGURE.match(row[place]) for place in at]) for row in rows]
    seconds = [_seconds(one) for _, some in found for one in some if one]
    low, high = floor(log10(min(seconds))), ceil(log10(max(seconds)))

    def share(value: float) -> str:
        return f"{100 * (value - low) / (high - low):.1f}%"

    legend = "".join(f'<span><i class="bar-{at}"></i>{escape(name)}</span>' for at, name in enumerate(names))
    parts = [f"<p>{legend}</p>"]
    for label, some in found:
        bars = "".join(
            f'<i class="bar-{number}{" open" if one["open"] else ""}" style="width:{share(log10(_seconds(one)))}" '
            f'title="{escape(f"{names[number]}, {label}: {_text(one)}")}"></i>'
            for number, one in enumerate(some)
            if one
        )
        parts.append(f"<div><b>{escape(label)}</b><span>{bars}</span></div>")
    ticks = "".join(f'<u style="left:{share(power)}">{_tick(power)}</u>' for power in range(low, high + 1))
    parts.append(f"<div><b></b><span>{ticks}</span></div>")
    return (
        f'<div class="bars" style="--decades:{high - low}" role="img" aria-label="Time, logarithmic: '
        f'{escape(columns)}; the table below has the figures">{"".join(parts)}</div>'
    )


def _seconds(found: re.Match[str]) -> float:
    return float(found["number"].replace(",", "")) / (1000 if found["unit"] == " ms" else 1)


def _text(found: re.Match[str]) -> str:
    return found[0] if found["unit"] else f"{found[0]} s"


def _tick(power: int) -> str:
    return f"{10**power:,g} s" if power > -2 else f"{10 ** (power + 3):,g} ms"
