"""The README's table of keys is made of the descriptions of the config's fields.

``python tests/project/test_readme_keys.py`` prints the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import tomli_w
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from longwall.pipeline.config import RunSpec
from longwall.pipeline.workloads import workload_kinds
from longwall.pipeline.workloads.sections import SecuritySection

README = Path(__file__).parents[2] / "README.md"
ORDER = ("graph", "workload", "export", "memory", "engine", "scheduler", "run")
HEAD = ["| key | values | default |", "|---|---|---|"]


def table() -> list[str]:
    """The lines of the table."""
    return [*HEAD, *(f"| `{section}.{key}` | {text} | {default} |" for section, key, text, default in rows())]


def rows() -> Iterator[tuple[str, str, str, str]]:
    """Section, key, description and default of every key."""
    for section in ORDER:
        if section == "workload":
            for key in dict.fromkeys(key for one in classes() for key in one.model_fields):
                yield section, key, *of_workloads(key)
        else:
            for key, field in fields(section):
                yield section, key, described(field), default_of(field)


def classes() -> list[type[BaseModel]]:
    return list(dict.fromkeys(workload_kinds().values()))


def fields(section: str) -> list[tuple[str, FieldInfo]]:
    annotation: Any = RunSpec.model_fields[section].annotation
    return list(annotation.model_fields.items())


def of_workloads(key: str) -> tuple[str, str]:
    """What a key means to the kinds of workloads that have it; those that it means the same to are named together."""
    meanings: dict[str, list[str]] = {}
    users = [one for one in classes() if key in one.model_fields]
    for one in users:
        kinds = [f"`{kind}`" for kind in get_args(one.model_fields["kind"].annotation)]
        meanings.setdefault(described(one.model_fields[key]), []).extend(kinds)
    defaults = list(dict.fromkeys(default_of(one.model_fields[key]) for one in users))
    assert len(defaults) == 1, f"{key} has the defaults {defaults}: the table has room for one"
    if len(meanings) == 1 and len(users) == len(classes()):
        return next(iter(meanings)), defaults[0]
    return "; ".join(f"{', '.join(kinds)}: {text}" for text, kinds in meanings.items()), defaults[0]


def described(field: FieldInfo) -> str:
    assert field.description, f"{field} has no description"
    return field.description


def default_of(field: FieldInfo) -> str:
    """The default as TOML, where there is one that can be written."""
    if field.is_required() or field.default is None:
        return ""
    value = str(field.default) if isinstance(field.default, Path) else field.default
    text = tomli_w.dumps({"x": value}).removeprefix("x = ").strip()
    return f"`{text.strip(chr(34))}`"


def test_the_table_of_keys_is_made_of_the_descriptions() -> None:
    lines = README.read_text().splitlines()
    begin = lines.index(HEAD[0])
    end = lines.index("", begin)
    assert lines[begin:end] == table(), f"put what `python {Path(__file__).name}` prints into README.md"


def test_every_section_and_key_is_in_it() -> None:
    assert set(ORDER) == set(RunSpec.model_fields)
    keys = {(section, key) for section, key, _, _ in rows()}
    assert {("workload", "k"), ("scheduler", "security"), ("run", "overwrite")} <= keys
    assert all(field.description for field in SecuritySection.model_fields.values())


if __name__ == "__main__":
    print("\n".join(table()))
