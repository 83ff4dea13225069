"""Bar charts have a bar for each figure of the table that they stand above, as long as its logarithm says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bar_charts import with_charts

DOCS = Path(__file__).parents[2] / "docs"
TABLE = """Before.

<!-- bars: ours; theirs -->
| work | count | ours | theirs |
|---|---:|---:|---:|
| a & b | 5 | 0.01 | 1 |
| c | 6 | 90 to 100 ms | over 10 |
| d | 7 | 0.1 (another) | |
"""


def test_a_chart_has_a_bar_for_each_figure() -> None:
    drawn = with_charts(TABLE)
    assert drawn.endswith(TABLE.partition("-->\n")[2])
    assert "<!--" not in drawn
    bars = re.findall(r'<i class="(bar-\d(?: open)?)" style="width:([\d.]+)%"', drawn)
    assert [kind for kind, _ in bars] == ["bar-0", "bar-1", "bar-0", "bar-1 open", "bar-0"]
    decade = 100 / 3
    assert [float(length) for _, length in bars] == pytest.approx([0, 2 * decade, decade, 3 * decade, decade], abs=0.1)
    assert re.findall(r'<u style="left:([\d.]+)%">([^<]*)', drawn) == [
        ("0.0", "10 ms"),
        ("33.3", "0.1 s"),
        ("66.7", "1 s"),
        ("100.0", "10 s"),
    ]
    assert "ours, a &amp; b: 0.01 s" in drawn
    assert "ours, c: 90 to 100 ms" in drawn


def test_every_page_of_benchmarks_has_a_chart_before_its_details() -> None:
    pages = [DOCS / "benchmarks.md", *(DOCS / "benchmarks").glob("*.md")]
    assert len(pages) > 8
    for page in pages:
        text = page.read_text()
        assert "<!-- bars:" not in with_charts(text), page
        top = text if page.name == "benchmarks.md" else text.partition("\n## ")[0]
        assert '<div class="bars"' in with_charts(top), page
