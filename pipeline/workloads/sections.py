"""The sections of a config that all workloads share. Each class checks its own keys.

``[workload]`` has a class for each kind, see `longwall.pipeline.workloads.base`; what concerns two sections is checked
in `longwall.pipeline.config.run_spec`. The descriptions of the fields are the page of keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from longwall.pipeline.quoting import quote, suggestion
from longwall.storage.errors import InputError
from longwall.storage.memory.sizes import parse_size
from longwall.storage.remote.urls import is_url
from longwall.storage.system.paths import user_path

if TYPE_CHECKING:
    from longwall.storage.graph.graph import Graph

MOST_NAME_BYTES = 200
"""Of `run.name`: file systems take 255, and other names are made from it."""
CLUSTER_KEYS = ("address", "workers", "threads_per_worker", "security", "retries")
"""Keys of ``[scheduler]`` that only a cluster has."""


class Section(BaseModel):
    """A table of a config: immutable, without unknown keys, and values are of the right type as they stand there."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    @model_validator(mode="wrap")
    @classmethod
    def _keys_fit(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Check each key, and then how the keys fit: a key that is wrong by itself hides no fault of the others."""
        wrong: list[InitErrorDetails] = []
        try:
            section = handler(data)
        except ValidationError as error:
            if not isinstance(data, dict):
                raise
            wrong = [_again(fault) for fault in error.errors()]
            section = cls._without(data, {fault["loc"][0] for fault in wrong if fault.get("loc")})
        for checks in section._checks():
            # A check that needs a wrong key ends those that follow it.
            with suppress(AttributeError) if wrong else nullcontext():
                wrong.extend(_fault(*fault) for fault in checks)
        if wrong:
            raise ValidationError.from_exception_data(cls.__name__, wrong)
        return section

    @classmethod
    def _without(cls, data: dict[str, Any], wrong: set[int | str]) -> Self:
        """Return the section with its sound keys only: the wrong ones are no attributes of it."""
        sound = {
            name: TypeAdapter(field.rebuild_annotation()).validate_python(data[name], strict=True)
            for name, field in cls.model_fields.items()
            if name in data and name not in wrong
        }
        section = cls.model_construct(**sound)
        for name in cls.model_fields.keys() & wrong:
            section.__dict__.pop(name, None)
        return section

    def _checks(self) -> Iterable[Iterable[tuple[str, str]]]:
        """Return groups of checks; a wrong key ends only the group that needs it."""
        return (self._faults(),)

    def _faults(self) -> Iterable[tuple[str, str]]:
        """Return the keys that do not fit others, such as ``order`` or ``scheduler.order``, and why not."""
        return ()


def _again(fault: ErrorDetails) -> InitErrorDetails:
    """Return a fault as it can be raised again."""
    kind, context = fault["type"], fault.get("ctx", {})
    known: Any = PydanticCustomError(kind, "{error}", context) if kind == "conflict" else kind
    return InitErrorDetails(type=known, loc=fault["loc"], input=fault["input"], ctx=context)


def _fault(key: str, text: str) -> InitErrorDetails:
    location = tuple(key.split(".")) if key else ()
    return InitErrorDetails(type=PydanticCustomError("conflict", "{error}", {"error": text}), loc=location, input=None)


def as_tuple(value: object) -> object:
    """Return a list as a tuple, and anything else as it is."""
    return tuple(value) if isinstance(value, list) else value


def _size(value: object) -> int | None:
    if value is None or value == "auto":
        return None
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(f'expected a size such as "8GiB", a number of bytes or "auto", not {quote(value)}')
    return parse_size(value)


def _path(value: object) -> object:
    if isinstance(value, str) and is_url(value):
        raise ValueError(f"{quote(value)} is a URL: only a graph and run.directory may be one; give a path")
    try:
        return user_path(value) if isinstance(value, str | Path) else value
    except InputError as error:
        raise ValueError(str(error)) from None


def _address(value: object) -> object:
    if not isinstance(value, str | Path | None):
        raise ValueError(f"expected a path or a URL in quotes, not {quote(value)}")
    return value if isinstance(value, str) and is_url(value) else _path(value)


def _source(value: object) -> object:
    if not isinstance(value, list | tuple):
        return _address(value)
    if not value or not all(isinstance(one, str | Path) for one in value):
        raise ValueError(f"expected a path, a URL, or a list of them, not {quote(value)}")
    return tuple(map(_address, value))


def _column_names(value: object) -> object:
    names = list(value) if isinstance(value, list | tuple) else [value]
    if not names:
        raise ValueError("names no column; name some, or remove it to have all")
    repeated = [name for at, name in enumerate(names) if name in names[:at]]
    if repeated:
        raise ValueError(f"{quote(repeated[0])} is there twice; name each column once")
    return as_tuple(value)


def _two_columns(value: object) -> object:
    names = value if isinstance(value, list | tuple) else ()
    if value is not None and not (len(names) == 2 and all(map(_is_column, names)) and names[0] != names[1]):
        raise ValueError(f'expected the names of two columns such as ["source", "target"], not {quote(value)}')
    return as_tuple(value)


def _column(value: object) -> object:
    if value is not None and not _is_column(value):
        raise ValueError(f'expected the name of a column such as "kind", or its number from 1, not {quote(value)}')
    return value


def _is_column(value: object) -> bool:
    return type(value) is str or (type(value) is int and value > 0)


def _run_name(value: object) -> object:
    if isinstance(value, str) and (value in (".", "..") or not re.fullmatch(r"[\w.-]+", value)):
        raise ValueError(f"{quote(value)} cannot name a folder; use letters, digits, '.', '-' and '_'")
    if isinstance(value, str) and len(value.encode()) > MOST_NAME_BYTES:
        raise ValueError(f"{quote(value)} is too long to name a folder; use at most {MOST_NAME_BYTES} letters")
    return value


def _device_numbers(value: object) -> object:
    numbers = value if isinstance(value, list | tuple) else ()
    are_numbers = all(type(number) is int and number >= 0 for number in numbers)
    if value is not None and value != "all" and not (numbers and are_numbers and len(set(numbers)) == len(numbers)):
        raise ValueError(f'expected "all" or a list of different numbers from 0 up such as [0, 1], not {quote(value)}')
    return tuple(numbers) or value


Size = Annotated[int | None, BeforeValidator(_size)]
FilePath = Annotated[Path, BeforeValidator(_path)]
Address = Annotated[Path | str, BeforeValidator(_address)]
"""A path, or a URL."""
Source = Annotated[Path | str | tuple[Path | str, ...], BeforeValidator(_source)]
"""What a graph is read from."""
_OF_FILES = ("columns", "edge_label", "vertex_label", "vertex_name", "header", "labels", "vertices", "transactions")


class GraphSection(Section):
    """``[graph]``: where the data graph comes from; exactly one of `path`, `generator`, `example`, `in_memory`."""

    path: Source | None = Field(
        default=None,
        description="edge list (`.txt`, `.tsv`, `.csv`, any separator), `.mtx`, `.graphml`, `.gexf`, `.gml`, `.json`, "
        "`.col`, `.gr`, `.metis`, `.net`, `.lg`, `.graph`, a database of graphs "
        'in gSpan\'s format (`.gspan`, or any name if `workload.kind = "transactions"`), all also `.gz`, `.zst`, '
        "`.bz2`, `.xz` or `.zip`; `.parquet`, or a graph store; or the URL of one of these, read with fsspec; edge "
        "lists or Parquet files also as a list, a folder, or a pattern such as `data/*.csv`",
    )
    generator: dict[str, Any] | None = Field(
        default=None, description='`{ kind = "rmat", scale = 16, edge_factor = 16, seed = 1 }`, instead of a path'
    )
    example: Literal["karate"] | None = Field(
        default=None,
        description="a small graph that comes with Longwall, instead of a path: `karate`, the 34 members and 78 "
        "friendships of Zachary's karate club",
    )
    columns: Annotated[tuple[str | int, str | int] | None, BeforeValidator(_two_columns)] = Field(
        default=None,
        description="the two columns of an edge list or a Parquet file that hold the edges, such as "
        '`["a", "b"]` or, by their numbers, `[1, 3]`; by default they are found by their names',
    )
    edge_label: Annotated[str | int | None, BeforeValidator(_column)] = Field(
        default=None,
        description="the column of a table, or the attribute in GraphML, GEXF and GML, that labels the edges: integers "
        "or texts",
    )
    vertex_label: str | None = Field(
        default=None,
        description="the attribute of nodes in GraphML, GEXF and GML that labels the vertices; or, with `vertices`, "
        "the column of that table, if it is not `label`",
    )
    vertex_name: str | None = Field(
        default=None,
        description="the attribute of nodes in GraphML, GEXF and GML with the names of the vertices, such as `name` in "
        "files of igraph; by default the ids of the nodes are their names (in GML their `label`)",
    )
    ids: Literal["auto", "integers", "names"] = Field(
        default="auto",
        description="whether vertices are `integers` or have `names`; `auto`: as the first rows have them",
    )
    header: bool | None = Field(
        default=None, description="whether the first line of a text names the columns; by default the first rows say it"
    )
    empty: Literal["refuse", "drop"] = Field(
        default="refuse",
        description="`drop`: the run drops rows of an edge list or a Parquet file that lack one of their ends, and "
        "notes their number; `refuse`: such rows are an error",
    )
    directed: bool = Field(
        default=False, description="`true` says that the edges have directions: they are dropped, and the run notes it"
    )
    strict: bool = Field(
        default=False, description="`true` refuses a graph whose edges have directions: it, or its file, says so"
    )
    labels: Address | None = Field(
        default=None,
        description='file of "vertex label" lines: every vertex with an edge needs one; those of isolated vertices are '
        "ignored (a `.mtx` file says which vertices there are: labels of others are refused)",
    )
    vertices: Address | None = Field(
        default=None,
        description="instead of `labels`: a table with columns such as `id` and `label`, text or Parquet",
    )
    transactions: Address | None = Field(
        default=None, description='file of "vertex transaction" lines, by the same rule as labels'
    )
    in_memory: str | None = Field(
        default=None,
        description="written by a run in Python whose graph was in memory: the graph's hash, by which "
        "`longwall.resume(run, graph=graph)` knows it again",
    )
    _given: Graph | None = PrivateAttr(default=None)

    def _checks(self) -> Iterable[Iterable[tuple[str, str]]]:
        return self._generator_faults(), *map(self._file_faults, _OF_FILES), self._faults()

    def _generator_faults(self) -> Iterator[tuple[str, str]]:
        yield from _generator_faults(self.generator) if self.generator is not None else ()

    def _file_faults(self, key: str) -> Iterator[tuple[str, str]]:
        if self.generator is None or getattr(self, key) is None:
            return
        if key in ("labels", "vertices"):
            yield key, "a generated graph has no label file; give the generator num_labels instead"
        else:
            yield key, f"a generated graph has no {key}; remove it, or give a graph file"

    def _faults(self) -> Iterator[tuple[str, str]]:
        given = [one for one in (self.path, self.generator, self.example, self.in_memory) if one is not None]
        files = [key for key in _OF_FILES if getattr(self, key) is not None]
        if len(given) != 1:
            yield "", "give exactly one of path (a file or a store), generator (a table) and example (a name)"
        if self.example is not None and files:
            yield "", f"an example has no {files[0]}; remove it, or give a graph file"
        if self.directed and self.strict:
            yield "", "the graph is directed, and Longwall drops directions; remove strict to allow it"
        if self.labels is not None and self.vertices is not None:
            yield "", "give one of labels and vertices: both say which labels the vertices have"
        if self.in_memory is not None and files:
            yield "", f"{', '.join(_OF_FILES)} are for files; a graph in memory has its labels already"

    @property
    def source(self) -> Path | str | tuple[Path | str, ...] | None:
        """What is read: `path`, or the file of `example`."""
        return self.path if self.example is None else example_file(self.example)

    @property
    def given(self) -> Graph | None:
        """The graph that is in memory, where the caller has one."""
        return self._given

    def with_graph(self, graph: Graph) -> GraphSection:
        """Return the section with the graph that `in_memory` is the hash of."""
        section = self.model_copy()
        section._given = graph
        return section


def example_file(name: str) -> Path:
    """Return the file of an example graph, which lies beside the shipped configs."""
    from importlib.resources import files

    return Path(str(files("longwall.configs"))) / f"{name}.txt"


def _generator_faults(generator: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the keys of a generator that are wrong, and the fault of each."""
    from longwall.storage.generators.kinds import GENERATORS  # imports NumPy

    kind = generator.get("kind")
    if not isinstance(kind, str) or kind not in GENERATORS:
        text = "missing" if kind is None else f"there is no generator {quote(kind)}"
        yield "generator.kind", text + suggestion(kind, GENERATORS)
        return
    parameters, defaults = GENERATORS[kind].parameters, GENERATORS[kind].defaults
    types = {**parameters, "seed": int, "num_labels": int}
    for key in sorted(parameters.keys() - defaults.keys() - generator.keys()):
        yield f"generator.{key}", f"missing; {kind} needs it"
    for key, value in generator.items():
        if key == "kind":
            continue
        if key not in types:
            yield f"generator.{key}", f"{kind} has no such parameter" + suggestion(key, types)
        elif isinstance(value, bool) or not isinstance(value, types[key] | int):
            noun = "a whole number" if types[key] is int else "a number"
            yield f"generator.{key}", f"expected {noun}, not {quote(value)}"


class MemorySection(Section):
    """``[memory]``: budgets in bytes (None: chosen from what the machine has), and where to spill."""

    device: Size = Field(
        default=None,
        description='budget of GPU memory: `"8GiB"`, bytes, or `"auto"` (the default): a share of what is free',
    )
    host: Size = Field(default=None, description="budget of main memory, in the same way")
    disk: Size = Field(default=None, description="budget of spill files, in the same way")
    spill: FilePath = Field(default=Path("spill"), description="folder for what does not fit `memory.host`")
    access: Literal["auto", "resident", "adaptive", "managed", "zero-copy"] = Field(
        default="auto",
        description="how the GPU reads the graph: `resident`, `adaptive` (the hottest pages are copied to the GPU), "
        "`zero-copy`, `managed`, or `auto`: resident where it fits, else adaptive",
    )


class SecuritySection(Section):
    """``[scheduler.security]``: PEM files by which the parts of a cluster know each other (TLS)."""

    ca: FilePath = Field(description="certificate of the authority")
    cert: FilePath = Field(description="certificate of this machine")
    key: FilePath = Field(description="its private key")


class SchedulerSection(Section):
    """``[scheduler]``: where the work runs, and in which order.

    With ``kind = "dask"``, on the cluster at `address`, or on `workers` processes of this machine with
    `threads_per_worker` threads each; a range of the work is given to another worker up to `retries` times where it is
    lost with the one that had it.
    """

    kind: Literal["local", "dask"] = Field(
        default="local", description="`local`, or `dask`: the workers of a cluster, see `docs/cluster.md`"
    )
    order: Literal["depth", "levels"] = Field(
        default="depth",
        description="`depth` (first), or `levels`: each level of a listing is finished, and on disk, before the next",
    )
    address: str | None = Field(default=None, description='of a Dask cluster, such as `"tcp://10.0.0.1:8786"`')
    workers: Annotated[int, Field(ge=1)] | None = Field(
        default=None,
        description="processes of this machine (at most 16, or 4 per core; by default up to 4), where there is no "
        "address",
    )
    threads_per_worker: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="their threads; by default they share all cores"
    )
    security: SecuritySection | None = Field(
        default=None, description="`{ ca, cert, key }`: PEM files for an address that begins with `tls://`"
    )
    retries: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="how often a range of the work may be lost with its worker; by default 3 times"
    )

    def _checks(self) -> Iterable[Iterable[tuple[str, str]]]:
        return *map(self._cluster_faults, CLUSTER_KEYS), self._faults()

    def _cluster_faults(self, key: str) -> Iterator[tuple[str, str]]:
        if self.kind == "local" and getattr(self, key) is not None:
            yield key, 'only a cluster has it: remove it, or set scheduler.kind = "dask"'
        if key in ("workers", "threads_per_worker") and None not in (self.address, getattr(self, key)):
            yield key, "the cluster at scheduler.address has its own workers: remove one of them"

    def _faults(self) -> Iterator[tuple[str, str]]:
        address = self.address
        if address is not None and not re.fullmatch(r"(tcp|tls)://[^\s/]+:\d+", address):
            yield "address", f'expected an address such as "tcp://10.0.0.1:8786", not {quote(address)}'
        if self.kind != "local" and self.security is not None and not (address or "").startswith("tls://"):
            text = 'certificates are for an address that begins with "tls://": give such an address, or remove this'
            yield "security", text


class EngineSection(Section):
    """``[engine]``: which kernels run, on how many threads, on which GPUs.

    With `devices`, "all" or a list of numbers, a process of its own works with each of these GPUs of this machine;
    without, a run uses the first one.
    """

    kind: Literal["auto", "cpu", "cuda", "both"] = Field(
        default="auto",
        description="`cpu`, `cuda`, `both` (the GPU and the CPU share long phases), or `auto`: the GPU if there is "
        "one, else the CPU",
    )
    threads: Annotated[int, Field(ge=0)] = Field(
        default=0, description="CPU threads, at most 256, or 4 per core; 0: one per core"
    )
    devices: Annotated[
        Literal["all"] | tuple[Annotated[int, Field(ge=0)], ...] | None, BeforeValidator(_device_numbers)
    ] = Field(
        default=None,
        description='GPUs of this machine, a process for each: `"all"`, or a list such as `[0, 1]`; by default the '
        "first one; see `docs/cluster.md`",
    )
    ablation: Annotated[
        tuple[Literal["two-pass", "ungrouped", "unordered"], ...], Field(strict=False), BeforeValidator(as_tuple)
    ] = Field(
        default=(),
        description="for benchmarks, optimisations of the GPU to switch off: `two-pass`, `ungrouped`, `unordered`",
    )
    without: Annotated[tuple[str, ...], BeforeValidator(as_tuple)] = Field(
        default=(),
        description="methods and rewrites that do not count patterns, such as `hub-removal`; the option `--all` of "
        "`longwall explain` lists them",
    )

    def _faults(self) -> Iterator[tuple[str, str]]:
        if self.devices is not None and self.kind == "cpu":
            yield "devices", 'engine.kind = "cpu" uses no device: remove one of them'
        if self.devices is not None and self.kind == "both":
            yield "devices", 'engine.kind = "both" works with the first GPU in this process: remove one of them'


class RunSection(Section):
    """``[run]``: the folder of the results is ``directory/name``; with `overwrite` it may be that of another run."""

    directory: Address = Field(
        default=Path("runs"),
        description="the results go to `directory/name`, which must not exist; the directory may be a URL, such as "
        '`"s3://bucket/runs"`, see `docs/cluster.md`',
    )
    name: Annotated[str, BeforeValidator(_run_name)] = Field(
        description="letters, digits, `.`, `-` and `_`; by default the file's name; for a mapping in Python the kind "
        "of the workload, with a number where there is such a run"
    )
    overwrite: bool = Field(
        default=False,
        description="`true`: replace a run of that name, as `--overwrite` does; the old one stays until the new one, "
        "which works in `directory/name+new`, is done",
    )
    verify: bool = Field(
        default=False,
        description="whether each count of a pattern is taken a second time, by a method that shares as little as "
        "possible with the first one; the run fails if they differ",
    )
    report: bool = Field(
        default=True, description="whether the run writes `report.html`, a page that shows what it did and found"
    )


class ExportSection(Section):
    """``[export]``: which rows and columns of the embeddings to write."""

    embeddings: bool | None = Field(default=None, description='`true` is the same as `workload.output = "embeddings"`')
    limit: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="stop after this many rows; by default all are written"
    )
    columns: Annotated[tuple[str, ...] | None, BeforeValidator(_column_names)] = Field(
        default=None,
        description='write only these columns, such as `["v0", "v2"]`, or `["a", "c"]` if the pattern names its '
        "vertices; by default all columns",
    )
    sort: bool | None = Field(
        default=None,
        description="`true`: bring the rows in ascending order, by their first column first; by default they have none",
    )
