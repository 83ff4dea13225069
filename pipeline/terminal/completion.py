"""What shells offer to complete words with; nothing heavy is imported, and nothing fails."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice

import typer

from longwall.pipeline.run_store.run_names import MANIFEST

_MOST = 500
_MOST_LOOKED_AT = 5000

Complete = Callable[[str], list[str]]


def config_files(incomplete: str) -> list[str]:
    """Return the TOML files that a word may become, in its folder and those just below."""
    return _some(incomplete, lambda entry: entry.name.endswith(".toml") and entry.is_file())


def run_folders(incomplete: str) -> list[str]:
    """Return the runs that a word may become."""
    return _some(incomplete, _is_run)


def unfinished_runs(incomplete: str) -> list[str]:
    """Return the runs that a word may become which are not done."""
    return [path for path in run_folders(incomplete) if _manifest(path).get("status") != "done"]


def tables_of_run(context: typer.Context, incomplete: str) -> list[str]:
    """Return the tables of the run that the command line names."""
    results = _manifest(str(context.params.get("run") or "")).get("results")
    files = results if isinstance(results, dict) else {}
    names = {name.rpartition("/")[2].partition(".")[0].partition("-")[0] for name in files if isinstance(name, str)}
    return sorted(name for name in names if name.startswith(incomplete))


def pattern_names(incomplete: str) -> list[str]:
    """Return the names of patterns; of a family those of its first sizes."""
    from longwall.pipeline.patterns.parse import family_names, named_patterns

    names = [name for name, edges, _ in named_patterns() if edges] + family_names()
    return [name for name in names if name.startswith(incomplete)]


def settings(incomplete: str) -> list[str]:
    """Return ``section.key=value`` for keys with few values, and ``section.key=`` for the others."""
    from longwall.pipeline.config.run_spec import RunSpec
    from longwall.pipeline.workloads import workload_kinds

    key, equals, _ = incomplete.partition("=")
    if not equals:
        keys = {f"{name}.{one}=" for name, section in _sections(RunSpec) for one in section}
        keys |= {f"workload.{one}=" for workload in workload_kinds().values() for one in workload.model_fields}
        return sorted(one for one in keys if one.startswith(incomplete))
    values: dict[str, Callable[[], list[str]]] = {
        "workload.kind": lambda: sorted(workload_kinds()),
        "workload.pattern": lambda: pattern_names(""),
    }
    known = values[key]() if key in values else _choices(RunSpec, key)
    return [f"{key}={value}" for value in known if f"{key}={value}".startswith(incomplete)]


def shipped_configs(incomplete: str) -> list[str]:
    """Return the configs that come with Longwall which a word may become."""
    from longwall.pipeline.terminal.shipped_configs import shipped_configs as all_configs

    return [name for name in all_configs() if name.startswith(incomplete)]


def one_of(*words: str) -> Complete:
    """Return what completes one of a few words."""
    return lambda incomplete: [word for word in words if word.startswith(incomplete)]


def _sections(spec: type) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield the sections of a config that have the same keys for every workload."""
    for name, field in spec.model_fields.items():  # type: ignore[attr-defined]
        if hasattr(field.annotation, "model_fields"):
            yield name, field.annotation.model_fields


def _choices(spec: type, key: str) -> list[str]:
    """Return the values of a key that has only a few."""
    from typing import get_args

    section, _, name = key.partition(".")
    for found, keys in _sections(spec):
        if found == section and name in keys:
            annotation = keys[name].annotation  # type: ignore[attr-defined]
            if annotation is bool:
                return ["true", "false"]
            return [value for value in get_args(annotation) if isinstance(value, str)]
    return []


def _some(incomplete: str, wanted: Callable[[os.DirEntry[str]], bool]) -> list[str]:
    folder, _, start = incomplete.rpartition("/")
    prefix = incomplete[: len(incomplete) - len(start)]
    found: list[str] = []
    for entry in _entries(folder or ("/" if prefix else ".")):
        if not entry.name.startswith(start) or (entry.name.startswith(".") and not start):
            continue
        with suppress(OSError):
            if wanted(entry):
                found.append(prefix + entry.name)
            elif entry.is_dir():
                below = (one for one in _entries(entry.path) if not one.name.startswith(".") and wanted(one))
                found += [f"{prefix}{entry.name}/{one.name}" for one in below]
    return sorted(found)[:_MOST]


def _entries(folder: str) -> list[os.DirEntry[str]]:
    with suppress(OSError), os.scandir(os.path.expanduser(folder)) as entries:  # noqa: PTH111 - a word of a shell
        return list(islice(entries, _MOST_LOOKED_AT))
    return []


def _is_run(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir() and os.path.isfile(f"{entry.path}/{MANIFEST}")  # noqa: PTH113 - as entries of a folder are


def _manifest(run: str) -> dict[str, object]:
    with suppress(OSError, ValueError):
        with open(f"{os.path.expanduser(run)}/{MANIFEST}", encoding="utf-8") as file:  # noqa: PTH111, PTH123
            facts = json.load(file)
        return facts if isinstance(facts, dict) else {}
    return {}
