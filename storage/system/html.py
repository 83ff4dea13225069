"""Small tables of HTML, by which objects show themselves in notebooks: escaped, and complete in themselves."""

from collections.abc import Collection, Sequence
from html import escape
from typing import Any, NamedTuple

from longwall.storage.system.drawing import Drawing

_CELL = "padding:1px 8px"


class Link(NamedTuple):
    """A cell that leads to another page."""

    text: str
    target: str


def html_table(
    title: Sequence[str],
    rows: Sequence[Sequence[Any]],
    head: Sequence[str] = (),
    *,
    code: bool = False,
    right: Collection[int] = (),
) -> str:
    """Return a table.

    Parameters
    ----------
    title
        Lines above it.
    rows
        Its cells: drawings, links, or any values, whose text is escaped here.
    head
        The names of the columns, where they have any.
    code
        Whether spaces count.
    right
        The numbers of the columns that are aligned at the right.
    """
    fixed = ";white-space:pre-wrap;font-family:monospace" if code else ""
    width = max(map(len, (head, *rows)), default=0)
    styles = [f"text-align:{'right' if at in right else 'left'};{_CELL}" for at in range(width)]
    above = "".join(f"<div><b>{escape(str(line))}</b></div>" for line in title)
    names = "".join(f'<th style="{style}">{escape(str(name))}</th>' for style, name in zip(styles, head, strict=False))
    lines = [f"<tr>{names}</tr>"] if names else []
    for row in rows:
        cells = (f'<td style="{style}{fixed}">{_html(cell)}</td>' for style, cell in zip(styles, row, strict=False))
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f"<div style='max-width:100%;overflow-x:auto'>{above}<table>{''.join(lines)}</table></div>"


def _html(cell: Any) -> str:
    if isinstance(cell, Link):
        return f'<a href="{escape(cell.target)}" target="_blank">{escape(cell.text)}</a>'
    return cell._repr_html_() if isinstance(cell, Drawing) else escape(_text(cell))


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
