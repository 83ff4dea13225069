"""The config of a run: TOML in, a checked `RunSpec` out.

Every fault is reported, not only the first one: each is a line with the file, the key, what is wrong and,
for a misspelt name, the nearest valid one. Whether a pattern makes sense is for `longwall.pipeline.patterns`
to say (it is asked here), and whether a graph can be read for `longwall.storage`.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from longwall.pipeline.patterns import parse_pattern
from longwall.storage.errors import InputError
from longwall.storage.remote import is_url
from longwall.storage.sizes import format_size, parse_size

WorkloadKind = Literal["triangles", "cliques", "match", "motifs", "frequent", "transactions"]
MANY_PATTERNS: frozenset[WorkloadKind] = frozenset({"motifs", "frequent", "transactions"})
"""Workloads whose answer is a table of patterns, however many there are."""
DEFAULT_SEED = 1
MAX_MOTIF_VERTICES, MAX_COUNTED_VERTICES, MAX_ORBIT_VERTICES = 8, 6, 4
"""Largest motifs: of all, by pattern-aware counting, and per vertex."""
MAX_PATTERN_EDGES = 64
_FREQUENT_KEYS = ("support", "min_support", "max_edges", "max_vertices", "exact")
Output = Literal["count", "embeddings", "vertices"]


@dataclass(frozen=True)
class WorkloadKeys:
    """What the ``[workload]`` section of one kind may hold, besides ``kind``, ``count`` and ``output``."""

    required: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    outputs: tuple[Output, ...] = ("count", "embeddings")
    counts_mappings: bool = False


WORKLOADS: dict[WorkloadKind, WorkloadKeys] = {
    "triangles": WorkloadKeys(outputs=("count", "embeddings", "vertices")),
    "cliques": WorkloadKeys(required=frozenset({"k"})),
    "match": WorkloadKeys(
        required=frozenset({"pattern"}),
        optional=frozenset({"pattern_labels", "induced"}),
        counts_mappings=True,
    ),
    "motifs": WorkloadKeys(required=frozenset({"k"}), optional=frozenset({"method"}), outputs=("count", "vertices")),
    "frequent": WorkloadKeys(
        required=frozenset({"min_support"}),
        optional=frozenset({"support", "max_edges", "max_vertices", "exact"}),
    ),
    "transactions": WorkloadKeys(
        required=frozenset({"min_support"}), optional=frozenset({"max_edges", "max_vertices"})
    ),
}


def _size(value: object) -> int | None:
    if value == "auto":
        return None
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(f'expected a size such as "8GiB", a number of bytes or "auto", not {_shown(value)}')
    return parse_size(value)


def _path(value: object) -> object:
    if value == "":
        raise ValueError("the path is empty")
    if isinstance(value, str) and is_url(value):
        raise ValueError(f"{value} is a URL: only a graph and run.directory may be one; give a path")
    return Path(value) if isinstance(value, str) else value


def _address(value: object) -> object:
    if not isinstance(value, str | Path | None):
        raise ValueError(f"expected a path or a URL in quotes, not {_shown(value)}")
    return value if isinstance(value, str) and is_url(value) else _path(value)


def _tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _run_name(value: object) -> object:
    if isinstance(value, str) and (value in ("", ".", "..") or re.search(r"[/\\\0]", value)):
        raise ValueError(f"{_shown(value)} cannot name a folder; use letters, digits, '-' and '_'")
    return value


def _support(value: object) -> object:
    whole = isinstance(value, int) and not isinstance(value, bool) and value >= 1
    if not whole and not (isinstance(value, float) and 0 < value <= 1):
        raise ValueError(f"expected a number from 1 up, or a share up to 1.0 such as 0.1, not {_shown(value)}")
    return value


def _devices(value: object) -> object:
    numbers = value if isinstance(value, list | tuple) else ()
    plain = all(type(number) is int and number >= 0 for number in numbers)
    if value is not None and value != "all" and not (numbers and plain and len(set(numbers)) == len(numbers)):
        raise ValueError(f'expected "all" or a list of different numbers from 0 up such as [0, 1], not {_shown(value)}')
    return tuple(numbers) or value


Size = Annotated[int | None, BeforeValidator(_size)]
FilePath = Annotated[Path, BeforeValidator(_path)]
Address = Annotated[Path | str, BeforeValidator(_address)]
"""A path, or a URL."""


class _Section(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class GraphSection(_Section):
    """``[graph]``: where the data graph comes from; exactly one of `path` and `generator`."""

    path: Address | None = None
    generator: dict[str, Any] | None = None
    labels: Address | None = None
    transactions: Address | None = None


class WorkloadSection(_Section):
    """``[workload]``: what to mine, and in which form to give it."""

    kind: WorkloadKind
    pattern: str | None = None
    pattern_labels: Annotated[tuple[Annotated[int, Field(ge=0)], ...] | None, BeforeValidator(_tuple)] = None
    k: Annotated[int, Field(ge=3, le=16)] | None = None
    induced: bool = False
    method: Literal["auto", "enumeration", "counting"] | None = None
    support: Literal["mni", "instances", "transactions"] | None = None
    min_support: Annotated[int | float | None, BeforeValidator(_support)] = None
    max_edges: Annotated[int, Field(ge=1, le=MAX_PATTERN_EDGES)] | None = None
    max_vertices: Annotated[int, Field(ge=2)] | None = None
    exact: bool | None = None
    count: Literal["embeddings", "mappings"] = "embeddings"
    output: Output = "count"


class MemorySection(_Section):
    """``[memory]``: budgets in bytes (None: chosen from what the machine has), and where to spill."""

    device: Size = None
    host: Size = None
    disk: Size = None
    spill: FilePath = Path("spill")
    access: Literal["auto", "resident", "adaptive", "managed", "zero-copy"] = "auto"


class EngineSection(_Section):
    """``[engine]``: which kernels run; `threads` = 0 means all cores; what the GPU should do the plain way.

    With `devices`, "all" or a list of numbers, a process of its own works with each of these GPUs of this machine;
    without, a run uses the first one.
    """

    kind: Literal["auto", "cpu", "cuda"] = "auto"
    threads: Annotated[int, Field(ge=0)] = 0
    devices: Annotated[Literal["all"] | tuple[Annotated[int, Field(ge=0)], ...] | None, BeforeValidator(_devices)] = (
        None
    )
    ablation: Annotated[
        tuple[Literal["two-pass", "ungrouped", "unordered"], ...], Field(strict=False), BeforeValidator(_tuple)
    ] = ()


class SecuritySection(_Section):
    """``[scheduler.security]``: PEM files by which the parts of a cluster know each other (TLS)."""

    ca: FilePath
    cert: FilePath
    key: FilePath


class SchedulerSection(_Section):
    """``[scheduler]``: where the work runs, and in which order: depth-first over chunks, or level by level.

    With ``kind = "dask"``, on the cluster at `address`, or on `workers` processes of this machine with
    `threads_per_worker` threads each; a range of the work is given to another worker up to `retries` times (3)
    where it is lost with the one that had it.
    """

    kind: Literal["local", "dask"] = "local"
    order: Literal["depth", "levels"] = "depth"
    address: str | None = None
    workers: Annotated[int, Field(ge=1)] | None = None
    threads_per_worker: Annotated[int, Field(ge=1)] | None = None
    security: SecuritySection | None = None
    retries: Annotated[int, Field(ge=0)] | None = None


class RunSection(_Section):
    """``[run]``: the folder of the results is ``directory/name``."""

    directory: Address = Path("runs")
    name: Annotated[str, BeforeValidator(_run_name)]


class ExportSection(_Section):
    """``[export]``: whether to write the embeddings, and which rows and columns of them."""

    embeddings: bool | None = None
    limit: Annotated[int, Field(ge=1)] | None = None
    columns: Annotated[tuple[str, ...] | None, BeforeValidator(_tuple)] = None


class RunSpec(_Section):
    """A checked config with every default filled in and every input path resolved."""

    graph: GraphSection
    workload: WorkloadSection
    memory: MemorySection = MemorySection()
    engine: EngineSection = EngineSection()
    scheduler: SchedulerSection = SchedulerSection()
    run: RunSection
    export: ExportSection = ExportSection()

    @property
    def file_format(self) -> str | None:
        """The format of the graph's file where the workload says it (see `longwall.storage.ingest`); None elsewhere."""
        asked = "transactions" in (self.workload.kind, self.workload.support)
        return "transactions" if asked and self.graph.transactions is None else None

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Return the sections as plain values that `load_config` accepts; unset keys are left out."""
        sections = {name: _plain(section) for name, section in self.model_dump(exclude_none=True).items()}
        for key in ("device", "host", "disk"):
            size = getattr(self.memory, key)
            sections["memory"][key] = "auto" if size is None else format_size(size)
        return {name: section for name, section in sections.items() if section}

    def on_host(self) -> RunSpec:
        """The config of a process that leaves devices to others."""
        return self.model_copy(update={"engine": self.engine.model_copy(update={"kind": "cpu"})})

    def with_threads(self, threads: int) -> RunSpec:
        """The config with so many threads, for engines that work on the host."""
        return self.model_copy(update={"engine": self.engine.model_copy(update={"threads": threads})})

    def located(self) -> RunSpec:
        """Return the config with absolute input paths, so that it means the same in any working directory."""
        graph, workload = self.graph, self.workload
        keys = ("path", "labels", "transactions")
        paths = {key: path.absolute() for key in keys if isinstance(path := getattr(graph, key), Path)}
        if workload.pattern is not None and Path(workload.pattern).is_file():
            workload = workload.model_copy(update={"pattern": str(Path(workload.pattern).absolute())})
        scheduler = self.scheduler
        if (files := scheduler.security) is not None:
            there = {key: getattr(files, key).absolute() for key in ("ca", "cert", "key")}
            scheduler = scheduler.model_copy(update={"security": files.model_copy(update=there)})
        graph = graph.model_copy(update=paths)
        return self.model_copy(update={"graph": graph, "workload": workload, "scheduler": scheduler})

    def to_toml(self) -> str:
        """Return the config as TOML text."""
        return "\n".join(
            f"[{name}]\n" + "".join(f"{key} = {_toml(value)}\n" for key, value in section.items())
            for name, section in self.to_dict().items()
        )


def load_config(source: Mapping[str, Any] | str | Path, overrides: Sequence[str] = ()) -> RunSpec:
    """Read, override and check a config.

    Parameters
    ----------
    source
        A TOML file, or the same sections as a mapping of mappings. Input paths in a file are relative to the
        file's folder if they exist there, else to the working directory.
    overrides
        ``"section.key=value"`` each, applied before the check. A value is read as TOML; what is not TOML is
        a string. Setting one of ``graph.path`` and ``graph.generator`` replaces the other.

    Returns
    -------
    RunSpec
        With every default filled in.

    Raises
    ------
    InputError
        Naming every fault: file, key, what is wrong, and the nearest valid name.
    """
    if isinstance(source, Mapping):
        data = _deep_plain(source)
        kind = _section(data, "workload").get("kind")
        config = _Config("config", Path(), data, default_name=kind if isinstance(kind, str) else "run")
    else:
        config = _read(Path(source))
    for override in overrides:
        config.override(override)
    return config.check()


@dataclass
class _Config:
    """A config between reading and checking."""

    origin: str
    folder: Path
    data: dict[str, Any]
    default_name: str
    overridden: set[str] = field(default_factory=set)
    faults: dict[str, str] = field(default_factory=dict)

    def override(self, text: str) -> None:
        key, equals, value = text.partition("=")
        parts = [part.strip() for part in key.split(".")]
        if not equals or len(parts) < 2 or not all(parts):
            raise InputError(f'--set {text}: write it as section.key=value, such as "--set workload.k=5"')
        table = self.data
        for depth, part in enumerate(parts[:-1], start=1):
            table = table.setdefault(part, {})
            if not isinstance(table, dict):
                raise InputError(f"--set {text}: {'.'.join(parts[:depth])} is a value, not a table")
        table[parts[-1]] = _override_value(value.strip())
        rivals = {"path": "generator", "generator": "path"}
        if parts[0] == "graph" and parts[1] in rivals:
            self.data["graph"].pop(rivals[parts[1]], None)
        self.overridden.add(".".join(parts))

    def check(self) -> RunSpec:
        # The two keys say the same thing; where one is given it stands for both.
        workload, export = _section(self.data, "workload"), _section(self.data, "export")
        if export.get("embeddings") is True:
            workload.setdefault("output", "embeddings")
        run = self.data.setdefault("run", {})
        if isinstance(run, dict):
            run.setdefault("name", self.default_name)
        generator = _section(self.data, "graph").get("generator")
        if isinstance(generator, dict):
            generator.setdefault("seed", DEFAULT_SEED)
        self._resolve_paths()
        spec = None
        try:
            spec = RunSpec.model_validate(self.data)
        except ValidationError as error:
            for fault in error.errors():
                self._fault(_dotted(fault["loc"]), _explain(fault))
        for key, text in _impossible(self.data):
            self._fault(key, text)
        if spec is None or self.faults:
            raise InputError("\n".join(self.faults.values()))
        return spec

    def _fault(self, key: str, text: str) -> None:
        """Keep the first fault of each key."""
        origin = "--set" if any(key == o or o.startswith(f"{key}.") for o in self.overridden) else self.origin
        self.faults.setdefault(key, f"{origin}: {key}: {text}")

    def _resolve_paths(self) -> None:
        graph, workload = _section(self.data, "graph"), _section(self.data, "workload")
        security = _section(_section(self.data, "scheduler"), "security")
        keys = [(graph, "path"), (graph, "labels"), (graph, "transactions"), (workload, "pattern")]
        keys += [(security, key) for key in ("ca", "cert", "key")]
        for section, key in keys:
            value = section.get(key)
            # A pattern's name or edge list has no dot and no slash; a file's name has one of them.
            if not isinstance(value, str) or (key == "pattern" and not re.search(r"[./]", value)):
                continue
            if value and (self.folder / value).exists():
                section[key] = str(self.folder / value)


def _read(path: Path) -> _Config:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such config file; check the path") from None
    except IsADirectoryError:
        raise InputError(f"{path}: this is a folder; give the TOML file itself") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: this is not a text file; a config is a TOML file in UTF-8") from None
    except OSError as error:
        raise InputError(f"{path}: the config cannot be read: {error.strerror}") from None
    try:
        return _Config(str(path), path.parent, tomllib.loads(text), default_name=path.stem)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not valid TOML: {error}") from None


def _override_value(text: str) -> Any:
    try:
        value = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return value["value"] if len(value) == 1 else text


def _section(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    section = data.get(name)
    return section if isinstance(section, dict) else {}


def _impossible(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (dotted key, sentence) for every combination that cannot be meant; sections may be malformed."""
    graph, workload = _section(data, "graph"), _section(data, "workload")
    if "graph" in data and ("path" in graph) == ("generator" in graph):
        yield "graph", "give exactly one of path (a file or a store) and generator (a table)"
    if "generator" in graph and "labels" in graph:
        yield "graph.labels", "a generated graph has no label file; give the generator num_labels instead"
    if "generator" in graph and "transactions" in graph:
        yield "graph.transactions", "a generated graph has no transactions; remove it, or give a graph file"
    if isinstance(graph.get("generator"), dict):
        yield from _generator_faults(graph["generator"])
    if workload.get("kind") in WORKLOADS:
        yield from _workload_faults(workload)
    yield from _device_faults(_section(data, "engine"), _section(data, "scheduler"))
    yield from _scheduler_faults(_section(data, "scheduler"))
    output, export = workload.get("output", "count"), _section(data, "export")
    if _section(data, "scheduler").get("order") == "levels" and output != "embeddings":
        yield "scheduler.order", 'counts have no levels: remove it, or set workload.output = "embeddings"'
    if type(export.get("embeddings")) is bool and export["embeddings"] != (output == "embeddings"):
        yield "export.embeddings", f'contradicts workload.output = "{output}": remove one of them'
    elif output != "embeddings":
        for key in export.keys() - {"embeddings"}:
            yield f"export.{key}", 'only embeddings are exported: remove it, or set output = "embeddings"'
    elif workload.get("kind") in ("frequent", "transactions"):
        for key in export.keys() - {"embeddings"}:
            yield f"export.{key}", "all embeddings of frequent patterns are written: remove it"


def _device_faults(engine: Mapping[str, Any], scheduler: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if "devices" not in engine:
        return
    if engine.get("kind") == "cpu":
        yield "engine.devices", 'engine.kind = "cpu" uses no device: remove one of them'
    elif "address" in scheduler:
        yield "engine.devices", "the workers of the cluster at scheduler.address use what they see: remove it"


def _scheduler_faults(scheduler: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    cluster_keys = ("address", "workers", "threads_per_worker", "security", "retries")
    if scheduler.get("kind", "local") == "local":
        for key in cluster_keys:
            if key in scheduler:
                yield f"scheduler.{key}", 'only a cluster has it: remove it, or set scheduler.kind = "dask"'
        return
    address = scheduler.get("address")
    if address is not None:
        if not re.fullmatch(r"(tcp|tls)://[^\s/]+:\d+", str(address)):
            yield "scheduler.address", f'expected an address such as "tcp://10.0.0.1:8786", not {_shown(address)}'
        for key in ("workers", "threads_per_worker"):
            if key in scheduler:
                yield f"scheduler.{key}", "the cluster at scheduler.address has its own workers: remove one of them"
    if "security" in scheduler and not str(address).startswith("tls://"):
        yield "scheduler.security", 'certificates are for an address that begins with "tls://": give it, or remove this'


def _workload_faults(workload: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    kind = workload["kind"]
    keys = WORKLOADS[kind]
    for key in sorted(keys.required - workload.keys()):
        yield f"workload.{key}", f"missing; {kind} needs it"
    for key in ("pattern", "pattern_labels", "k", "induced", "method", *_FREQUENT_KEYS):
        # `induced = false` says nothing, so it may stand anywhere.
        given = key in workload and not (key == "induced" and workload[key] is False)
        if given and key not in keys.required | keys.optional:
            users = [name for name, of in WORKLOADS.items() if key in of.required | of.optional]
            yield f"workload.{key}", f"{kind} has no use for it (only {_listed(users)}); remove it"
    if kind == "motifs":
        yield from _motif_faults(workload)
    pattern, labels = workload.get("pattern"), workload.get("pattern_labels")
    if isinstance(pattern, str) and "pattern" in keys.required:
        try:
            parse_pattern(pattern, labels if _are_labels(labels) else None)
        except InputError as error:
            yield "workload.pattern", str(error)
    output, count = workload.get("output", "count"), workload.get("count", "embeddings")
    if output in get_args(Output) and output not in keys.outputs:
        yield "workload.output", f'{kind} cannot give "{output}"; choose one of {_listed(keys.outputs)}'
    if count == "mappings" and not keys.counts_mappings:
        yield "workload.count", f'{kind} counts distinct subgraphs; use kind = "match" for mappings'
    elif count == "mappings" and output == "embeddings":
        yield "workload.count", 'embeddings are written once each; use output = "count" to count mappings'


def _motif_faults(workload: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    k, method, per_vertex = workload.get("k"), workload.get("method"), workload.get("output") == "vertices"
    if type(k) is not int:
        return
    if per_vertex and k > MAX_ORBIT_VERTICES:
        yield "workload.k", f"counts per vertex are given for at most {MAX_ORBIT_VERTICES} vertices, not {k}"
    elif k > MAX_MOTIF_VERTICES:
        yield "workload.k", f"motifs have at most {MAX_MOTIF_VERTICES} vertices, not {k}"
    if per_vertex and method is not None:
        yield "workload.method", "counts per vertex are always taken by enumeration; remove it"
    elif method == "counting" and k > MAX_COUNTED_VERTICES:
        yield "workload.method", f'"counting" is for at most {MAX_COUNTED_VERTICES} vertices; use "enumeration"'


def _are_labels(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(type(label) is int and label >= 0 for label in value)


def _generator_faults(generator: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    from longwall.storage.generators import GENERATORS  # brings in the array libraries

    kind = generator.get("kind")
    if not isinstance(kind, str) or kind not in GENERATORS:
        text = "missing" if kind is None else f"there is no generator {_shown(kind)}"
        yield "graph.generator.kind", text + _suggestion(kind, GENERATORS)
        return
    of_kind = GENERATORS[kind]
    types = {**of_kind.parameters, "seed": int, "num_labels": int}
    for key in sorted(of_kind.parameters.keys() - of_kind.defaults.keys() - generator.keys()):
        yield f"graph.generator.{key}", f"missing; {kind} needs it"
    for key, value in generator.items():
        if key == "kind":
            continue
        if key not in types:
            yield f"graph.generator.{key}", f"{kind} has no such parameter" + _suggestion(key, types)
        elif isinstance(value, bool) or not isinstance(value, types[key] | int):
            noun = "a whole number" if types[key] is int else "a number"
            yield f"graph.generator.{key}", f"expected {noun}, not {_shown(value)}"


def _explain(fault: Any) -> str:
    """Return pydantic's fault as our own sentence."""
    kind, context, value = fault["type"], fault.get("ctx", {}), fault["input"]
    location = [part for part in fault["loc"] if isinstance(part, str)]
    if kind == "extra_forbidden":
        return (
            "there is no such "
            + ("section" if len(location) == 1 else "key")
            + _suggestion(location[-1], _names(location[:-1]))
        )
    if kind == "missing":
        valid = _literals(location)
        return "missing" + (f"; choose one of {_listed(valid)}" if valid else "; add it")
    if kind == "literal_error":
        return f"there is no {_shown(value)}" + _suggestion(value, _literals(location))
    if kind == "value_error":
        return str(context["error"])
    if kind in ("greater_than_equal", "less_than_equal"):
        bound = f"at least {context['ge']}" if "ge" in context else f"at most {context['le']}"
        return f"must be {bound}, not {_shown(value)}"
    return f"expected {_EXPECTED.get(kind, 'another type')}, not {_shown(value)}"


_EXPECTED = {
    "bool_type": "true or false",
    "dict_type": "a table",
    "int_type": "a whole number",
    "is_instance_of": "a path in quotes",
    "model_type": "a section",
    "string_type": "a text in quotes",
    "tuple_type": "a list",
}


def _names(location: Sequence[str]) -> list[str]:
    """Return the valid keys of the section at `location` (the sections themselves at the top)."""
    if not location:
        return list(RunSpec.model_fields)
    annotation = RunSpec.model_fields[location[0]].annotation
    return list(annotation.model_fields) if isinstance(annotation, type) else []


def _literals(location: Sequence[str]) -> tuple[str, ...]:
    """Return the values that the key at `location` may take, where they are few."""
    if len(location) != 2 or location[0] not in RunSpec.model_fields:
        return ()
    section = RunSpec.model_fields[location[0]].annotation
    annotation = section.model_fields[location[1]].annotation if isinstance(section, type) else None
    return tuple(value for value in get_args(annotation) if isinstance(value, str))


def _suggestion(name: object, valid: Iterable[str]) -> str:
    """Return the end of a sentence: the nearest valid name, and all of them."""
    valid = list(valid)
    near = difflib.get_close_matches(str(name), valid, n=1)
    return (f'; did you mean "{near[0]}"? Choose' if near else "; choose") + f" one of {_listed(valid)}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def _shown(value: object) -> str:
    text = _toml(value) if isinstance(value, bool | int | float | str | list | dict) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _dotted(location: Iterable[str | int]) -> str:
    """Return ``workload.pattern_labels[2]`` for ("workload", "pattern_labels", 2)."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def _plain(section: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _plain_value(value) for key, value in section.items()}


def _plain_value(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, dict):
        return _plain(value)
    return list(value) if isinstance(value, tuple) else value


def _deep_plain(source: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a caller's mapping: mappings are dicts, paths are texts, None means not given."""
    return {
        key: _deep_plain(value) if isinstance(value, Mapping) else _plain_value(value)
        for key, value in source.items()
        if value is not None
    }


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        escaped = re.sub(r"[\x00-\x1f\x7f]", lambda match: f"\\u{ord(match[0]):04x}", escaped)
        return f'"{escaped}"'
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_toml_key(key)} = {_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return str(value)


def _toml_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _toml(key)
