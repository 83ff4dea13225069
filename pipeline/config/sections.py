"""The sections of a config, key by key, and a checked config as a whole."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from longwall.pipeline.config.values import plain, shown, toml
from longwall.pipeline.patterns.parse import is_pattern_file
from longwall.storage.errors import InputError
from longwall.storage.memory.sizes import format_size, parse_size
from longwall.storage.paths import path_exists, user_path
from longwall.storage.remote.urls import is_url

WorkloadKind = Literal["triangles", "cliques", "match", "motifs", "frequent", "transactions"]
MANY_PATTERNS: frozenset[WorkloadKind] = frozenset({"motifs", "frequent", "transactions"})
"""Workloads whose answer is a table of patterns, however many there are."""
MAX_MOTIF_VERTICES, MAX_COUNTED_VERTICES, MAX_ORBIT_VERTICES = 8, 6, 4
"""Largest motifs: of all, by pattern-aware counting, and per vertex."""
MAX_PATTERN_EDGES = 64
MOST_NAME_BYTES = 200
"""Of `run.name`: file systems take 255, and other names are made from it."""
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
        raise ValueError(f'expected a size such as "8GiB", a number of bytes or "auto", not {shown(value)}')
    return parse_size(value)


def _path(value: object) -> object:
    if isinstance(value, str) and is_url(value):
        raise ValueError(f"{shown(value)} is a URL: only a graph and run.directory may be one; give a path")
    try:
        return user_path(value) if isinstance(value, str | Path) else value
    except InputError as error:
        raise ValueError(str(error)) from None


def _address(value: object) -> object:
    if not isinstance(value, str | Path | None):
        raise ValueError(f"expected a path or a URL in quotes, not {shown(value)}")
    return value if isinstance(value, str) and is_url(value) else _path(value)


def _tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _columns(value: object) -> object:
    names = list(value) if isinstance(value, list | tuple) else [value]
    if not names:
        raise ValueError("names no column; name some, or remove it to have all")
    repeated = [name for at, name in enumerate(names) if name in names[:at]]
    if repeated:
        raise ValueError(f"{shown(repeated[0])} stands there twice; name each column once")
    return _tuple(value)


def _two_columns(value: object) -> object:
    names = value if isinstance(value, list | tuple) else ()
    if value is not None and not (
        len(names) == 2 and all(type(name) is str for name in names) and names[0] != names[1]
    ):
        raise ValueError(f'expected the names of two columns such as ["source", "target"], not {shown(value)}')
    return _tuple(value)


def _run_name(value: object) -> object:
    if isinstance(value, str) and (value in (".", "..") or not re.fullmatch(r"[\w.-]+", value)):
        raise ValueError(f"{shown(value)} cannot name a folder; use letters, digits, '.', '-' and '_'")
    if isinstance(value, str) and len(value.encode()) > MOST_NAME_BYTES:
        raise ValueError(f"{shown(value)} is too long to name a folder; use at most {MOST_NAME_BYTES} letters")
    return value


def _support(value: object) -> object:
    whole = isinstance(value, int) and not isinstance(value, bool) and value >= 1
    if not whole and not (isinstance(value, float) and 0 < value <= 1):
        raise ValueError(f"expected a number from 1 up, or a share up to 1.0 such as 0.1, not {shown(value)}")
    return value


def _devices(value: object) -> object:
    numbers = value if isinstance(value, list | tuple) else ()
    plain = all(type(number) is int and number >= 0 for number in numbers)
    if value is not None and value != "all" and not (numbers and plain and len(set(numbers)) == len(numbers)):
        raise ValueError(f'expected "all" or a list of different numbers from 0 up such as [0, 1], not {shown(value)}')
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
    columns: Annotated[tuple[str, str] | None, BeforeValidator(_two_columns)] = None


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
    """``[run]``: the folder of the results is ``directory/name``; with `overwrite` it may be that of another run."""

    directory: Address = Path("runs")
    name: Annotated[str, BeforeValidator(_run_name)]
    overwrite: bool = False


class ExportSection(_Section):
    """``[export]``: whether to write the embeddings, and which rows and columns of them."""

    embeddings: bool | None = None
    limit: Annotated[int, Field(ge=1)] | None = None
    columns: Annotated[tuple[str, ...] | None, BeforeValidator(_columns)] = None


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
        """The format of the graph's file where the workload says it; None elsewhere."""
        asked = "transactions" in (self.workload.kind, self.workload.support)
        return "transactions" if asked and self.graph.transactions is None else None

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Return the sections as plain values that `load_config` accepts; unset keys are left out."""
        sections = {name: plain(section) for name, section in self.model_dump(exclude_none=True).items()}
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

    def named(self, name: str) -> RunSpec:
        """The config with another name of the run."""
        return self.model_copy(update={"run": self.run.model_copy(update={"name": name})})

    def with_absolute_paths(self) -> RunSpec:
        """Return the config with absolute input paths, so that it means the same in any working directory."""
        graph, workload = self.graph, self.workload
        keys = ("path", "labels", "transactions")
        paths = {key: path.absolute() for key in keys if isinstance(path := getattr(graph, key), Path)}
        if (text := workload.pattern) is not None and is_pattern_file(text) and path_exists(text.strip()):
            workload = workload.model_copy(update={"pattern": str(Path(text.strip()).absolute())})
        scheduler = self.scheduler
        if (files := scheduler.security) is not None:
            there = {key: getattr(files, key).absolute() for key in ("ca", "cert", "key")}
            scheduler = scheduler.model_copy(update={"security": files.model_copy(update=there)})
        graph = graph.model_copy(update=paths)
        return self.model_copy(update={"graph": graph, "workload": workload, "scheduler": scheduler})

    def to_toml(self) -> str:
        """Return the config as TOML text.

        Raises
        ------
        InputError
            If a path cannot be written in UTF-8: its folders may have any name.
        """
        lines = []
        for name, section in self.to_dict().items():
            lines += [f"[{name}]", *(f"{key} = {toml(value)}" for key, value in section.items()), ""]
        for line in lines:
            if re.search("[\ud800-\udfff]", line):
                raise InputError(f"{line!a}: this path is not UTF-8; rename its folders, or work in another one")
        return "\n".join(lines)
