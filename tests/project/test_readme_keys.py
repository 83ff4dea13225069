"""The README's table of keys, and the site's page, are made of the descriptions of the config's fields."""

from __future__ import annotations

from pathlib import Path

from config_keys import HEAD, ORDER, page, rows, table

from longwall.pipeline.config import RunSpec
from longwall.pipeline.workloads.sections import SecuritySection

README = Path(__file__).parents[2] / "README.md"


def test_the_table_of_keys_is_made_of_the_descriptions() -> None:
    lines = README.read_text().splitlines()
    begin = lines.index(HEAD[0])
    end = lines.index("", begin)
    assert lines[begin:end] == table(), "put what `python docs/generate/config_keys.py` prints into README.md"


def test_every_section_and_key_is_in_it() -> None:
    assert set(ORDER) == set(RunSpec.model_fields)
    keys = {(section, key) for section, key, _, _ in rows()}
    assert {("workload", "k"), ("scheduler", "security"), ("run", "overwrite")} <= keys
    assert all(field.description for field in SecuritySection.model_fields.values())


def test_the_page_of_the_site_has_every_section_and_key() -> None:
    lines = page().splitlines()
    assert [line for line in lines if line.startswith("## ")] == [f"## [{section}]" for section in ORDER]
    headings = [line for line in lines if line.startswith("### ")]
    assert headings == [f"### `{section}.{key}`" for section, key, _, _ in rows()]
