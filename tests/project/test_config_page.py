"""The site's page of keys is made of the descriptions of the config's fields."""

from __future__ import annotations

from config_keys import ORDER, page, rows

from longwall.pipeline.config import RunSpec
from longwall.pipeline.workloads.sections import SecuritySection


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
