"""A config from a file or a mapping, with what the command line sets, checked."""

from __future__ import annotations

import os
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from glob import escape, iglob
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from longwall.pipeline.config.messages import explain, location_of
from longwall.pipeline.config.raw import parse_toml, read_toml, to_plain
from longwall.pipeline.config.run_spec import RunSpec, spec_of
from longwall.pipeline.quoting import cut, dotted, quote
from longwall.pipeline.workloads import workload_kinds
from longwall.pipeline.workloads.sections import CLUSTER_KEYS, MOST_NAME_BYTES
from longwall.storage.errors import InputError
from longwall.storage.system.arguments import brief, require_texts, wrong_type
from longwall.storage.system.paths import path_exists, user_path

if TYPE_CHECKING:
    from longwall.storage.graph.graph import Graph

DEFAULT_SEED = 1
_MOST_FAULTS = 20  # that are listed
_SOURCES = {"path", "generator", "example"}  # keys of [graph], of which one is given


def load_config(
    source: Mapping[str, Any] | str | Path, overrides: Sequence[str] = (), *, of_run: bool = False
) -> RunSpec:
    """Read, override and check a config.

    Parameters
    ----------
    source
        A TOML file, or the same sections as a mapping of mappings, in which a `longwall.Graph` may stand for the
        section of the graph. Input paths in a file are relative to the file's folder if they exist
        there, else to the working directory.
    overrides
        ``"section.key=value"`` each, applied before the check. A value is read as TOML; what is not TOML is a string;
        an empty value removes the key. Setting one of ``graph.path``, ``graph.generator`` and ``graph.example``
        replaces the others; setting the kind, the address or the workers of a cluster removes the keys of `source`
        that are for another cluster.
    of_run
        Whether it is the config in the folder of a run, which names files by absolute paths. In another file, the file
        of an algorithm must lie beside it or on the import path: it is code.

    Returns
    -------
    RunSpec
        With every default filled in.

    Raises
    ------
    InputError
        Naming every fault: file, key, what is wrong, and the nearest valid name.
    """
    require_texts("overrides", overrides, '["workload.k=5"]')
    graph = None
    if isinstance(source, Mapping):
        if (graph := graph_in(source)) is not None:
            source = {**source, "graph": {"in_memory": graph.content_hash}}
        data = to_plain(source, "config")
        kind = _section_of(data, "workload").get("kind")
        name = kind if isinstance(kind, str) else "run"
        config = _Config("config", Path(), data, default_name=name, code_anywhere=True)
    elif isinstance(source, str | os.PathLike):
        path = user_path(source)
        config = _Config(str(path), path.parent, read_toml(path), default_name=path.stem, code_anywhere=of_run)
    else:
        raise wrong_type("config", source, "the path of a TOML file, or a mapping of sections")
    for override in overrides:
        config.override(override)
    spec = config.check()
    if graph is not None:
        return spec.with_graph(graph)
    if spec.graph.in_memory is not None and not of_run:
        raise InputError(
            f"{config.origin}: graph.in_memory: only Python has graphs in memory, see longwall.run; give graph.path"
        )
    return spec


def graph_in(source: Mapping[str, Any]) -> Graph | None:
    """Return the graph in memory that a mapping has in place of the section of the graph; None where it has none.

    Raises
    ------
    InputError
        If it has a graph of another library there.
    """
    value = source.get("graph")
    home = sys.modules.get("longwall.storage.graph.graph")  # without it there is no graph
    if home is not None and isinstance(value, home.Graph):
        graph: Graph = value
        return graph
    if isinstance(value, str | Path):
        raise InputError(f'config: graph: expected a section; to read a file, write {{"path": {brief(str(value))}}}')
    if value is not None and not isinstance(value, Mapping) and type(value).__module__ != "builtins":
        raise wrong_type("config: graph", value, "a section, or a graph as longwall.graph(graph) makes it")
    return None


def names_run(source: Mapping[str, Any], overrides: Sequence[str] = ()) -> bool:
    """Return whether a mapping or its overrides name the run, or let it replace another one."""
    data = to_plain(source, "config")
    config = _Config("config", Path(), data, default_name="")
    for override in overrides:
        config.override(override)
    run = _section_of(config.data, "run")
    return "name" in run or run.get("overwrite") is True


@dataclass
class _Config:
    """A config that was read and is not yet checked."""

    origin: str
    folder: Path
    data: dict[str, Any]
    default_name: str
    code_anywhere: bool = False
    overridden: set[str] = field(default_factory=set)
    faults: dict[str, str] = field(default_factory=dict)

    def override(self, text: str) -> None:
        key, equals, value = text.partition("=")
        parts = [part.strip() for part in key.split(".")]
        if not equals or len(parts) < 2 or not all(parts):
            raise InputError(f'--set {cut(text, 200)}: write it as section.key=value, such as "--set workload.k=5"')
        given = _override_value(parts, value.strip())
        table = self.data
        for depth, part in enumerate(parts[:-1], start=1):
            table = table.setdefault(part, {})
            if not isinstance(table, dict):
                raise InputError(f"--set {cut(text, 200)}: {dotted(parts[:depth])} is a value, not a table")
        if not value.strip():
            table.pop(parts[-1], None)
            return
        table[parts[-1]] = given
        if parts[0] == "graph" and parts[1] in _SOURCES:
            for other in _SOURCES - {parts[1]}:
                self.data["graph"].pop(other, None)
        self.overridden.add(".".join(parts))
        if parts[0] == "scheduler":
            for other in _meaningless_beside(parts[1], table[parts[-1]]):
                if f"scheduler.{other}" not in self.overridden:
                    self.data["scheduler"].pop(other, None)

    def check(self) -> RunSpec:
        # The two keys say the same thing; where one is given it stands for both.
        workload, export = _section_of(self.data, "workload"), _section_of(self.data, "export")
        if export.get("embeddings") is True:
            workload.setdefault("output", "embeddings")
        run = self.data.setdefault("run", {})
        if isinstance(run, dict):
            run.setdefault("name", _run_name(self.default_name))
        generator = _section_of(self.data, "graph").get("generator")
        if isinstance(generator, dict):
            generator.setdefault("seed", DEFAULT_SEED)
        self._resolve_paths()
        kind = workload.get("kind")
        with suppress(ValidationError, UnicodeEncodeError):  # the schema of all workloads says what is wrong
            if isinstance(kind, str):
                return spec_of(kind).model_validate(self.data)
        if spec := self._validate(self.data):
            return spec
        near = get_close_matches(str(workload.get("kind")), workload_kinds(), n=1)
        if near and workload["kind"] != near[0]:  # its other keys are checked as those of the kind that is meant
            self._validate(self.data | {"workload": workload | {"kind": near[0]}}, only_given=True)
        lines = list(self.faults.values())
        more = len(lines) - _MOST_FAULTS
        error = InputError("\n".join(lines[:_MOST_FAULTS] + ([f"{self.origin}: and {more} more"] if more > 0 else [])))
        error.keys = tuple(self.faults)
        raise error

    def _validate(self, data: dict[str, Any], *, only_given: bool = False) -> RunSpec | None:
        """Return the checked config; None where there are faults: the first one of each key (that is given) is kept."""
        try:
            return RunSpec.model_validate(data)
        except ValidationError as error:
            for fault in error.errors():
                if only_given and fault["type"] == "missing":
                    continue
                key = dotted(location_of(fault))
                set_here = any(key == one or one.startswith(f"{key}.") for one in self.overridden)
                origin = "--set" if set_here else self.origin
                self.faults.setdefault(key, f"{origin}: {key}: {explain(fault)}")
        except UnicodeEncodeError as error:
            wrong = error.object[error.start : error.end]
            raise InputError(f"{self.origin}: a value has {wrong!a} in it, which is not UTF-8: take it out") from None
        return None

    def _resolve_paths(self) -> None:
        graph, workload = _section_of(self.data, "graph"), _section_of(self.data, "workload")
        security = _section_of(_section_of(self.data, "scheduler"), "security")
        keys = [(graph, key) for key in ("path", "labels", "vertices", "transactions")] + [(workload, "pattern")]
        keys += [(security, key) for key in ("ca", "cert", "key")]
        for section, key in keys:
            value = section.get(key)
            if isinstance(value, str):
                section[key] = self._resolved(value, key)
            elif isinstance(value, list):
                section[key] = [self._resolved(one, key) if isinstance(one, str) else one for one in value]
        self._resolve_algorithm(workload)

    def _resolved(self, value: str, key: str) -> str:
        """Return the path of an input beside the config, if there is one; else what stands there."""
        # A pattern's name or edge list has no dot and no slash; a file's name has one of them.
        if not value or value.startswith("~") or (key == "pattern" and not re.search(r"[./]", value)):
            return value  # with ~ a home folder, whatever lies here
        if path_exists(self.folder / value):
            return str(self.folder / value)
        if key == "path" and re.search(r"[*?[]", value):
            names = os.path.join(escape(str(self.folder)), value)  # noqa: PTH118 - no path, but a pattern of paths
            if next(iglob(names, recursive=True), None) is not None:  # noqa: PTH207
                return names
        return value

    def _resolve_algorithm(self, workload: dict[str, Any]) -> None:
        """Find the file of an algorithm, which is code: a config names only what lies beside it, or can be imported."""
        value = workload.get("algorithm")
        if not isinstance(value, str):
            return
        place, _, title = value.rpartition(":")
        if not place.endswith(".py"):
            return
        near = self.folder / place
        path = near if path_exists(near) or not path_exists(place) else Path(place)
        folder = path.resolve().parent
        known = {self.folder.resolve(), *(Path(one).resolve() for one in sys.path)}
        if not self.code_anywhere and known.isdisjoint((folder, *folder.parents)):
            raise InputError(
                f"{self.origin}: workload.algorithm: {quote(place)} lies neither beside the config nor on the import "
                "path: move it there"
            )
        workload["algorithm"] = f"{path}:{title}"


def _section_of(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a section of what was read; an empty one where it is missing, or no section."""
    section = data.get(name)
    return section if isinstance(section, dict) else {}


def _meaningless_beside(key: str, value: Any) -> tuple[str, ...]:
    """Return the keys of the scheduler that are for another cluster than the one that a key chooses."""
    if key == "kind" and value == "local":
        return CLUSTER_KEYS
    if key == "address":
        return ("workers", "threads_per_worker") + (() if str(value).startswith("tls://") else ("security",))
    return ("address", "security") if key in ("workers", "threads_per_worker") else ()


def _override_value(keys: Sequence[str], text: str) -> Any:
    """Return the value that a text stands for: TOML, or the text itself."""
    try:
        parsed = parse_toml(f"value = {text}")
    except tomllib.TOMLDecodeError:
        parsed = {}
    nested = {keys[-1]: parsed["value"] if len(parsed) == 1 else text}
    for key in reversed(keys[:-1]):
        nested = {key: nested}
    value: Any = to_plain(nested, "--set")
    for key in keys:
        value = value[key]
    return value


def _run_name(text: str) -> str:
    """Return the name of a run for the name of a config."""
    return re.sub(r"[^\w.-]+", "-", text).encode()[:MOST_NAME_BYTES].decode("utf-8", "ignore")
