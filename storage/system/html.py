"""Small tables of HTML, by which objects show themselves in notebooks: escaped, and complete in themselves."""

from collections.abc import Sequence
from html import escape
from typing import Any

_CELL = "text-align:left;padding:1px 8px"


def html_table(
    title: Sequence[str], rows: Sequence[Sequence[Any]], head: Sequence[str] = (), *, code: bool = False
) -> str:
    """Return a table.

    Parameters
    ----------
    title
        Lines above it.
    rows
        Its cells: any values, whose text is escaped here.
    head
        The names of the columns, where they have any.
    code
        Whether spaces count.
    """
    style = _CELL + (";white-space:pre;font-family:monospace" if code else "")
    above = "".join(f"<div><b>{escape(str(line))}</b></div>" for line in title)
    names = "".join(f'<th style="{_CELL}">{escape(str(name))}</th>' for name in head)
    lines = [f"<tr>{names}</tr>"] if names else []
    for row in rows:
        lines.append("<tr>" + "".join(f'<td style="{style}">{escape(_text(cell))}</td>' for cell in row) + "</tr>")
    return f"<div>{above}<table>{''.join(lines)}</table></div>"


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
