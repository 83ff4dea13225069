"""The keys of a config, as the descriptions of its fields have them: a page of the site."""

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

ORDER = ("graph", "workload", "export", "memory", "engine", "scheduler", "run")
INTRODUCTION = """# Config

A config is a TOML file of up to seven sections. The command line changes a key with `--set section.key=value`, and
`longwall.run` takes the same sections as a dictionary. A key that is unknown, misspelt or excluded by another one is
refused before anything is read, with exit code 2. [Configs with comments](configs.md) has an example for each workload.
"""
ABOUT = {
    "graph": "Where the data graph comes from. Give exactly one of `path`, `generator` and `example`.",
    "workload": "What is mined. `kind` is needed; which other keys there are depends on it.",
    "export": "How many rows and which columns are written.",
    "memory": "Budgets, and where the rest goes. See [Set budgets](../how-to/budgets.md).",
    "engine": "What computes. See [Choose an engine](../how-to/engines.md).",
    "scheduler": "One process or several. See [Several GPUs, or a cluster](../cluster.md).",
    "run": "The folder of the run. See [Limit and resume a run](../how-to/limit-and-resume.md).",
}


def page() -> str:
    """Return the site's page: a heading for each section and each key, so that the search finds them."""
    lines = [INTRODUCTION]
    section = ""
    for name, key, text, default in rows():
        if name != section:
            section = name
            lines += [f"## [{name}]", "", ABOUT[name], ""]
        lines += [f"### `{name}.{key}`", "", f"{text[:1].upper()}{text[1:]}.", ""]
        lines += [f"Default: {default}", ""] if default else []
        if key == "security":
            lines += [f"- `{one}`: {described(field)}" for one, field in SecuritySection.model_fields.items()] + [""]
    return "\n".join(lines)


def rows() -> Iterator[tuple[str, str, str, str]]:
    """Return section, key, description and default of every key."""
    for section in ORDER:
        if section == "workload":
            for key in dict.fromkeys(key for one in classes() for key in one.model_fields):
                yield section, key, *of_workloads(key)
        else:
            for key, field in fields(section):
                yield section, key, described(field), default_of(field)


def classes() -> list[type[BaseModel]]:
    """Return the sections of all workloads."""
    return list(dict.fromkeys(workload_kinds().values()))


def fields(section: str) -> list[tuple[str, FieldInfo]]:
    """Return the fields of any other section."""
    annotation: Any = RunSpec.model_fields[section].annotation
    return list(annotation.model_fields.items())


def of_workloads(key: str) -> tuple[str, str]:
    """Return what a key means to the workloads that have it; those that it means the same to are named together."""
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
    """Return the description of a field; every one has one."""
    assert field.description, f"{field} has no description"
    return field.description


def default_of(field: FieldInfo) -> str:
    """Return the default as TOML, where there is one that can be written."""
    if field.is_required() or field.default is None:
        return ""
    value = str(field.default) if isinstance(field.default, Path) else field.default
    text = tomli_w.dumps({"x": value}).removeprefix("x = ").strip()
    return f"`{text.strip(chr(34))}`"
