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
| c | 6 | 0.1 | over 10 |
| d | 7 | 0.1 | |
"""


def test_a_chart_has_a_bar_for_each_figure() -> None:
    drawn = with_charts(TABLE)
    assert drawn.endswith(TABLE.partition("-->\n")[2])
    assert "<!--" not in drawn
    bars = re.findall(r'<rect class="(bar-\d(?: open)?)" x="170" y="\d+" width="([\d.]+)" height="9">', drawn)
    assert [kind for kind, _ in bars] == ["bar-0", "bar-1", "bar-0", "bar-1 open", "bar-0"]
    lengths = [float(length) for _, length in bars]
    decade = (720 - 170 - 60) / 3
    assert lengths == pytest.approx([1, 2 * decade, decade, 3 * decade, decade], abs=0.1)
    assert "ours, a &amp; b: 0.01 s" in drawn


def test_pages_have_charts() -> None:
    pages = [path for path in DOCS.rglob("*.md") if "<!-- bars:" in path.read_text()]
    assert len(pages) >= 2
    for page in pages:
        assert "<!-- bars:" not in with_charts(page.read_text()), page
