"""Bar charts of tables of seconds, for pages of the site: a comment before a table names its columns.

``<!-- bars: Longwall; igraph -->`` becomes a drawing with a bar for each of these columns in each row. The axis is
logarithmic; ``over 60`` is a bar with an open end, and an empty field has none.
"""

from __future__ import annotations

import re
from html import escape
from math import ceil, floor, log10

_MARK = re.compile(r"^<!-- bars: (.+) -->\n((?:\|.*\n)+)", re.MULTILINE)
_SECONDS = re.compile(r"(over )?(\d[\d.,]*)")
_LABELS, _WIDTH, _BAR, _GAP = 170, 720, 11, 10


def with_charts(markdown: str) -> str:
    """Put a drawing before each table that asks for one."""
    return _MARK.sub(lambda found: f"{chart(found[1], found[2])}\n\n{found[2]}", markdown)


def chart(columns: str, table: str) -> str:
    """Return the drawing of columns of a table in Markdown."""
    head, _, *rows = ([cell.strip() for cell in line.strip()[1:-1].split("|")] for line in table.splitlines())
    names = columns.split("; ")
    at = [head.index(name) for name in names]
    found = {row[0]: [_SECONDS.match(row[place]) for place in at] for row in rows}
    values = [_value(one) for some in found.values() for one in some if one]
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    scale = (_WIDTH - _LABELS - 60) / (high - low)
    top = 30
    height = top + sum(len(names) * _BAR + _GAP for _ in found) + 20
    parts = [
        f'<text x="{_LABELS + 130 * number + 16}" y="14">{escape(name)}</text>'
        f'<rect class="bar-{number}" x="{_LABELS + 130 * number}" y="5" width="{_BAR}" height="{_BAR}"/>'
        for number, name in enumerate(names)
    ]
    for power in range(low, high + 1):
        x = _LABELS + (power - low) * scale
        parts.append(f'<line x1="{x:.1f}" y1="{top - 4}" x2="{x:.1f}" y2="{height - 18}"/>')
        parts.append(f'<text x="{x:.1f}" y="{height - 4}" text-anchor="middle">{10**power:,g} s</text>')
    y = top
    for label, some in found.items():
        middle = y + len(names) * _BAR / 2 + 4
        parts.append(f'<text x="{_LABELS - 8}" y="{middle:.1f}" text-anchor="end">{escape(label)}</text>')
        for number, one in enumerate(some):
            if one:
                length = max((log10(_value(one)) - low) * scale, 1)
                kind = f"bar-{number} open" if one[1] else f"bar-{number}"
                parts.append(
                    f'<rect class="{kind}" x="{_LABELS}" y="{y + number * _BAR}" width="{length:.1f}" '
                    f'height="{_BAR - 2}"><title>{escape(f"{names[number]}, {label}: {one[0]} s")}</title></rect>'
                )
        y += len(names) * _BAR + _GAP
    return (
        f'<svg class="bars" viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="Seconds, logarithmic: '
        f'{escape(columns)}; the table below has the figures">{"".join(parts)}</svg>'
    )


def _value(found: re.Match[str]) -> float:
    return float(found[2].replace(",", ""))
