"""What plans and phases work with, and what a plan returns.

This module holds no policy: it names the things that `longwall.pipeline.run` puts together.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from longwall.kernels.interface.engine import Engine
    from longwall.kernels.interface.graph_arrays import GraphArrays
    from longwall.pipeline.execution.rows.row_stream import RowStream
    from longwall.pipeline.run_store.run_files import RunFiles
    from longwall.pipeline.workloads.sections import (
        EngineSection,
        ExportSection,
        MemorySection,
        RunSection,
        SchedulerSection,
    )
    from longwall.storage.graph.graph import Graph
    from longwall.storage.memory.resources import Resources
    from longwall.storage.observer import Observer
    from longwall.storage.pages.oriented_copy import OrientedCopy
    from longwall.storage.pages.placement import Placement


@dataclass(frozen=True)
class PatternCount:
    """How often one pattern occurs in the data graph."""

    pattern: str
    """The pattern as an edge list, such as ``"0-1,0-2,1-2"``."""
    labels: tuple[int | str | None, ...] | None
    """The label of each pattern vertex, None where any will do, or None for an unlabelled pattern."""
    count: int | None
    """Number of embeddings (or mappings, as the config asks); None where the config asks for less."""
    support: int | None = None
    """The support, for the workloads that measure one."""
    edge_labels: tuple[int | str | None, ...] | None = None
    """The label of each edge of `pattern`, or None where edges have no labels."""
    lower_bound: bool = False
    """Whether there may be more than `count`: ``workload.limit`` or ``export.limit`` ended the search."""
    value: Any = None
    """The answer of an algorithm of one's own, where that is not a whole number."""
    name: str | None = None
    """What the pattern is called, where a run has several patterns."""
    seconds: float | None = None
    """The time that it took then; what an earlier attempt of the run did is not part of it."""
    method: str | None = field(default=None, compare=False)
    """The method that counted it, one of those that ``longwall explain --all`` lists; None where none was chosen."""


class MetricsRow(NamedTuple):
    """One stage event; the columns of ``metrics.parquet``, where a figure that does not fit 64-bit integers is null.

    What is searched may be more than what is found: rows add up to the matches before they are divided by the pattern's
    symmetries.
    """

    stage: str
    level: int
    rows_in: int
    rows_out: int
    seconds: float
    bytes: int
    tasks: int
    predicted: float | None
    """Rows that sampling predicted for `rows_out`; None where nothing was predicted."""


class Load(NamedTuple):
    """What a worker did of a run."""

    seconds: float
    """Time in its tasks."""
    tasks: int


@dataclass
class Metrics:
    """Stage events of a run, in the order in which they were recorded; safe to share between threads."""

    _rows: list[MetricsRow] = field(default_factory=list)
    _loads: dict[str, Load] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def record(
        self,
        stage: str,
        level: int,
        rows_in: int,
        rows_out: int,
        seconds: float,
        bytes: int = 0,  # noqa: A002 - the name of the column
        tasks: int = 0,
        predicted: float | None = None,
    ) -> None:
        """Add one event.

        Parameters
        ----------
        stage
            What ran: ``"extend"``, ``"count"``, ``"read graph"``, ...
        level
            Column number of the embedding table that the stage wrote, 0 where there is none.
        rows_in, rows_out
            Embeddings (or edges) that came in and went out.
        seconds
            Time spent in the stage.
        bytes
            Bytes that the stage wrote or held.
        tasks
            Chunks or subtrees that it processed.
        predicted
            What sampling predicted for `rows_out`.
        """
        row = MetricsRow(stage, level, int(rows_in), int(rows_out), float(seconds), int(bytes), int(tasks), predicted)
        with self._lock:
            self._rows.append(row)

    def add_load(self, worker: str, seconds: float, tasks: int) -> None:
        """Add to what a worker, such as ``"cpu 1"``, has done."""
        with self._lock:
            before = self._loads.get(worker, Load(0.0, 0))
            self._loads[worker] = Load(before.seconds + seconds, before.tasks + tasks)

    def loads(self) -> dict[str, Load]:
        """Return what each thread of this process has done so far."""
        with self._lock:
            return dict(self._loads)

    def rows(self) -> list[MetricsRow]:
        """Return a copy of the events so far."""
        with self._lock:
            return list(self._rows)


@dataclass(frozen=True)
class DeviceGraph:
    """The graph where the engine reads it, and how it came there.

    Attributes
    ----------
    graph
        The graph, or only its arcs to smaller neighbours.
    placement
        Where its parts are.
    starts : int64[n + 1] or None
        On the host, where the rows of the graph begin, if it has only such arcs.
    charged
        Bytes that it takes of the host's budget, and of the memory that the engine works in.
    edge_labels : int32[2m] or None
        The labels of the edges on the device, once a phase has read them there.
    copies
        Whether there is room for copies of its pages, where it lies page by page.
    copy
        What fills its adjacency on the host, perhaps still.
    least
        The least degree of a vertex that may count: vertices of a lower degree may be left out, at the end.
    """

    graph: GraphArrays
    placement: Placement
    starts: NDArray[np.int64] | None = None
    charged: tuple[int, int] = (0, 0)
    edge_labels: Any = None
    copies: bool = True
    copy: OrientedCopy | None = None
    least: int = 0


@dataclass(kw_only=True)
class Workplace:
    """What computes with a graph, in a run or before one."""

    graph: Graph
    """The data graph, on the host."""
    resources: Resources
    """Budgets, spill folder and engine; the graph is reserved already."""
    observer: Observer
    """Receives the progress."""
    cancel: threading.Event
    """Set when the work is to end: workers stop at their next chunk."""

    @cached_property
    def engine(self) -> Engine:
        """The engine of `resources`."""
        return self.resources.engine


class Settings(Protocol):
    """Sections of a config that phases read; the workload is none of them."""

    @property
    def memory(self) -> MemorySection:
        """Budgets, and how a device finds the graph."""
        ...

    @property
    def scheduler(self) -> SchedulerSection:
        """Where workers are, and in which order they search."""
        ...

    @property
    def engine(self) -> EngineSection:
        """The kernels, and their threads."""
        ...

    @property
    def run(self) -> RunSection:
        """The run, as its folder says."""
        ...

    @property
    def export(self) -> ExportSection:
        """Rows and columns to write."""
        ...

    @property
    def limit(self) -> int | None:
        """The number of embeddings after which the search ends; None: it finds all."""
        ...


@dataclass(kw_only=True)
class Environment(Workplace):
    """What a phase works with, in every process of a run."""

    spec: Settings
    """The validated config: all that phases read of it."""
    files: RunFiles
    """Files that phases hand on to each other."""
    alone: bool = True
    """Whether no other process works at the run, so that its workers share the limits; not for a second engine."""
    rows: RowStream | None = None
    """Takes the rows of a listing, in place of result files."""
    device_graph: DeviceGraph | None = None
    """The graph on the engine, once something has run there."""
    derived: dict[Any, Any] = field(default_factory=dict)
    """What the process has derived from the graph; see `longwall.pipeline.execution.derived`."""
    lent: Mapping[Any, Graph] = field(default_factory=dict)
    """Graphs that another engine of the process has derived."""
    own: Any = None
    """The `DerivedGraph` whose graph it is; None: the graph is the run's."""

    @property
    def results(self) -> Path:
        """The folder for result files of `files`, which is made if it is not there."""
        return self.files.results

    def forget_layout(self) -> None:
        """Release the derived graph, if any, that is on the engine in place of this graph or beside it."""
        for what in [one for one in self.derived if one.in_place] if self.derived else ():
            made = self.derived.pop(what)
            made.close()
            self.device_graph = getattr(made, "whole_on_device", None)  # the graph there was the derived one
            if self.device_graph is None and self.resources.on_device:
                self.resources.engine.memory.release()

    def close(self) -> None:
        """Release what was derived, the last first."""
        while self.derived:
            _, made = self.derived.popitem()
            made.close()
            self.device_graph = getattr(made, "whole_on_device", None) or self.device_graph

    def end(self) -> None:
        """End threads that still bring the graph to the engine, and `close`; nothing works with the graph any more."""
        try:
            if self.device_graph is not None and self.device_graph.copy is not None:
                self.device_graph.copy.close()
        finally:
            self.close()
