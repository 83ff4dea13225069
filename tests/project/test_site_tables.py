"""Names in tables may be broken between their words, and columns of wide tables are as wide as their text needs."""

from __future__ import annotations

import re

from tables import fitted


def table(*rows: list[str]) -> str:
    lines = ["".join(f"<td>{cell}</td>" for cell in row) for row in rows[1:]]
    head = "".join(f'<th style="text-align: right;">{cell}</th>' for cell in rows[0])
    return f"<table><thead><tr>{head}</tr></thead>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def test_names_break_between_their_words_in_tables_only() -> None:
    name = "<code>memory.host_bytes</code>"
    shown = fitted(f"<p>{name}</p>{table(['a', 'b'], [name, 'memory.host'])}")
    assert f"<p>{name}</p>" in shown
    assert "<td><code>memory.<wbr>host_<wbr>bytes</code></td><td>memory.host</td>" in shown
    assert "min-width" not in shown


def test_links_in_code_are_left_alone() -> None:
    linked = '<code><a href="x/y.html#a.b">longwall.run</a></code>'
    assert linked in fitted(table(["a", "b"], [linked, ""]))


def test_columns_of_wide_tables_have_room_for_their_longest_text() -> None:
    text = "<b>twenty letters</b> &amp; more"
    shown = fitted(table(["a", "b", "c", "d", "e"], ["1", text, "x" * 90, "", "12345"]))
    styles = re.findall(r'<th style="min-width:(\d+)ch;text-align: right;">', shown)
    assert styles == ["1", "11", "16", "1", "3"]
    assert text in shown
