"""A checked config as a whole, and what its sections must agree on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Union

import tomli_w
from pydantic import ConfigDict, Field, GetPydanticSchema, create_model
from pydantic_core import PydanticSerializationError

from longwall.pipeline.patterns.pattern import numbered_columns
from longwall.pipeline.quoting import join_names, quote
from longwall.pipeline.workloads import workload_kinds, workload_named
from longwall.pipeline.workloads.base import Workload
from longwall.pipeline.workloads.sections import (
    EngineSection,
    ExportSection,
    GraphSection,
    MemorySection,
    RunSection,
    SchedulerSection,
    Section,
)
from longwall.storage.errors import InputError
from longwall.storage.memory.sizes import format_size

if TYPE_CHECKING:
    from longwall.storage.graph.graph import Graph


def _union_by_kind(_source: Any, handler: Any) -> Any:
    """Have pydantic choose among the workloads by `kind`."""
    classes = tuple(dict.fromkeys(workload_kinds().values()))
    return handler(Annotated[Union[classes], Field(discriminator="kind")])  # noqa: UP007 - made at run time


class RunSpec(Section):
    """A checked config with every default filled in and every input path resolved."""

    model_config = ConfigDict(defer_build=True)  # it has the schemas of all workloads, see `spec_of`

    graph: GraphSection
    workload: Annotated[Workload, GetPydanticSchema(_union_by_kind)]
    memory: MemorySection = MemorySection()
    scheduler: SchedulerSection = SchedulerSection()
    engine: EngineSection = EngineSection()
    run: RunSection
    export: ExportSection = ExportSection()

    def _checks(self) -> Iterable[Iterable[tuple[str, str]]]:
        return (
            self._level_faults(),
            self._engine_faults(),
            self._device_faults(),
            self._method_faults(),
            self._export_faults(),
        )

    def _level_faults(self) -> Iterator[tuple[str, str]]:
        if self.scheduler.order != "levels":
            return
        if self.workload.output != "embeddings":
            yield "scheduler.order", 'counts have no levels: remove it, or set workload.output = "embeddings"'
        if self.workload.rows_are_lists:
            yield "scheduler.order", f"{self.workload.kind} have no levels: remove it"

    def _engine_faults(self) -> Iterator[tuple[str, str]]:
        if self.engine.kind == "both" and self.scheduler.kind == "dask":
            yield "engine.kind", 'a cluster\'s workers have one engine each: use "auto", or scheduler.kind = "local"'

    def _device_faults(self) -> Iterator[tuple[str, str]]:
        if self.engine.devices is not None and self.scheduler.address is not None:
            text = "the workers of the cluster at scheduler.address use the GPUs that they see: remove it"
            yield "engine.devices", text

    def _method_faults(self) -> Iterator[tuple[str, str]]:
        if not self.engine.without:
            return
        from longwall.pipeline.planning.planner import NAMES  # imports all methods

        if unknown := [name for name in self.engine.without if name not in NAMES]:
            yield "engine.without", f"there is no method {quote(unknown[0])}; there are {join_names(NAMES)}"

    def _export_faults(self) -> Iterator[tuple[str, str]]:
        for key, text in _export_faults(self.export, self.workload):
            yield f"export.{key}", text

    @property
    def limit(self) -> int | None:
        """The number of embeddings after which the search ends; None: it finds all."""
        return self.workload.most_embeddings if self.export.limit is None else self.export.limit

    @property
    def file_format(self) -> str | None:
        """The format of the graph's file where the workload determines it; None elsewhere."""
        return self.workload.input_format if self.graph.transactions is None else None

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Return the sections as plain values that `load_config` accepts; unset keys are left out."""
        try:
            sections: dict[str, dict[str, Any]] = self.model_dump(mode="json", exclude_none=True)
        except PydanticSerializationError as error:  # made of what a signal's handler raises meanwhile
            raise error.__cause__ or error from None
        for key in ("device", "host", "disk"):
            size = getattr(self.memory, key)
            sections["memory"][key] = "auto" if size is None else format_size(size)
        return {name: section for name, section in sections.items() if section}

    def on_host(self) -> RunSpec:
        """Return the config of a process that leaves devices to others."""
        return self._with("engine", kind="cpu")

    def with_threads(self, threads: int) -> RunSpec:
        """Return the config with another number of threads, for engines that work on the host."""
        return self._with("engine", threads=threads)

    def with_graph(self, graph: Graph) -> RunSpec:
        """Return the config with the graph in memory that it has the hash of."""
        return self.model_copy(update={"graph": self.graph.with_graph(graph)})

    def reading(self, path: Path) -> RunSpec:
        """Return the config with the file of a graph in place of one that is in memory."""
        return self.model_copy(update={"graph": GraphSection(path=path)})

    def named(self, name: str) -> RunSpec:
        """Return the config with another name of the run."""
        return self._with("run", name=name)

    def _with(self, section: str, **keys: Any) -> RunSpec:
        return self.model_copy(update={section: getattr(self, section).model_copy(update=keys)})

    def with_absolute_paths(self) -> RunSpec:
        """Return the config with absolute input paths, so that it means the same in any working directory."""
        keys = ("path", "labels", "vertices", "transactions")
        paths = {key: _absolute(value) for key in keys if (value := getattr(self.graph, key)) is not None}
        scheduler = self.scheduler
        if (files := scheduler.security) is not None:
            absolute = {key: getattr(files, key).absolute() for key in ("ca", "cert", "key")}
            scheduler = scheduler.model_copy(update={"security": files.model_copy(update=absolute)})
        graph, workload = self.graph.model_copy(update=paths), self.workload.with_absolute_paths()
        return self.model_copy(update={"graph": graph, "workload": workload, "scheduler": scheduler})

    def to_toml(self) -> str:
        """Return the config as TOML text.

        Raises
        ------
        InputError
            If a path cannot be written in UTF-8: its folders may have any name.
        """
        text = tomli_w.dumps(self.to_dict())
        for line in text.split("\n"):
            if re.search("[\ud800-\udfff]", line):
                raise InputError(f"{line!a}: this path is not UTF-8; rename its folders, or work in another one")
        return text


def _absolute(address: Any) -> Any:
    """Return a path, or those of a list, as absolute ones; URLs stay as they are."""
    if isinstance(address, tuple):
        return tuple(map(_absolute, address))
    return address.absolute() if isinstance(address, Path) else address


@cache
def spec_of(kind: str) -> type[RunSpec]:
    """Return a class for configs whose workload has this kind; it is made without other workloads, if that can be."""
    workload = workload_named(kind)
    if workload is None:
        return RunSpec
    of_kind: type[RunSpec] = create_model(RunSpec.__name__, __base__=RunSpec, workload=(workload, ...))
    return of_kind


def _export_faults(export: ExportSection, workload: Workload) -> list[tuple[str, str]]:
    """Return the keys of an export that do not suit the workload, and what is wrong with each."""
    if export.embeddings is not None and export.embeddings != (workload.output == "embeddings"):
        return [("embeddings", f'contradicts workload.output = "{workload.output}": remove one of them')]
    given = [key for key in ("columns", "limit", "sort") if getattr(export, key) not in (None, False)]
    if workload.output != "embeddings":
        return [(key, 'only embeddings are exported: remove it, or set output = "embeddings"') for key in given]
    if export.limit is not None and workload.most_embeddings is not None:
        return [("limit", "workload.limit says the same: remove one of them")]
    if workload.rows_are_lists:
        text = f"{workload.kind} are written as lists, without columns to choose from or to sort by: remove it"
        return [(key, text) for key in given if key != "limit"]
    if workload.num_columns is None:
        texts = {"sort": f"embeddings of {workload.kind} patterns are not sorted: remove it"}
        other = f"all embeddings of {workload.kind} patterns are written: remove it"
        return [(key, texts.get(key, other)) for key in given]
    names = workload.column_names
    unknown = [name for name in export.columns or () if name not in names]
    if not unknown:
        return []
    text = f"the pattern has no column {quote(unknown[0])}, only {join_names(names)}"
    if unknown[0] in (numbered := numbered_columns(len(names))):
        text += f"; columns have the names of the pattern's vertices, so use {quote(names[numbered.index(unknown[0])])}"
    return [("columns", text)]
