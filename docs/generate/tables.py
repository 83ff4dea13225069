"""Tables of the site: long names in code break where a reader expects it, and wide tables give text its room."""

from __future__ import annotations

import re
from html import escape, unescape

_TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
_ROW = re.compile(r"<tr\b.*?</tr>", re.DOTALL)
_CELL = re.compile(r"(<t[hd]\b)([^>]*>)(.*?)</t[hd]>", re.DOTALL)
_CODE = re.compile(r"(?<=<code>)[^<]+(?=</code>)")
_JOINTS = re.compile(r"(?<=[/_.,(=])(?=\w)")
_TAG = re.compile(r"<[^>]*>")
_WIDE = 5
"""Tables of at least this many columns scroll on a telephone: their columns keep a least width."""
_CARDS = 7
"""Tables of at least this many columns have a card for each row there: cells below each other, each with its name."""


def fitted(html: str) -> str:
    """Return a page whose tables can be read on narrow screens."""
    return _TABLE.sub(lambda table: _with_widths(_with_joints(table[0])), html)


def _with_joints(table: str) -> str:
    return _CODE.sub(lambda code: _JOINTS.sub("<wbr>", code[0]), table)


def _with_widths(table: str) -> str:
    head, *rows = _ROW.findall(table)
    columns = list(zip(*([_length(cell[2]) for cell in _CELL.findall(row)] for row in (head, *rows)), strict=False))
    if len(columns) < _WIDE:
        return table
    widths = iter(min(16, (max(column) + 1) // 2) for column in columns)
    wider = _CELL.sub(lambda cell: f'{cell[1]} style="min-width:{next(widths)}ch;{_style(cell[2])}{cell[3]}</th>', head)
    if len(columns) >= _CARDS:
        names = [escape(unescape(_TAG.sub("", cell[2])).strip()) for cell in _CELL.findall(head)]
        for row in rows:
            table = table.replace(row, _named(row, names), 1)
        table = table.replace("<table>", '<table data-cards="">', 1)
    return table.replace(head, wider, 1)


def _named(row: str, names: list[str]) -> str:
    """Give each cell of a row the name of its column, and an element around what it holds."""
    left = iter(names)
    return _CELL.sub(lambda cell: f'{cell[1]} data-name="{next(left)}"{cell[2]}<span>{cell[3]}</span></td>', row)


def _style(rest: str) -> str:
    found = re.match(r' style="([^"]*)"(.*)', rest)
    return f'{found[1]}"{found[2]}' if found else f'"{rest}'


def _length(cell: str) -> int:
    return len(unescape(_TAG.sub("", cell)))
