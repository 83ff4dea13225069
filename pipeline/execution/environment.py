"""What a workload is given while it runs, and what it gives back.

This module holds no policy: it names the things that `longwall.pipeline.run` puts together.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

    from longwall.kernels import Engine
    from longwall.kernels.interface.graph_arrays import GraphArrays
    from longwall.pipeline.config import RunSpec
    from longwall.pipeline.execution.thread_executor import Scheduler
    from longwall.pipeline.run_store.commit_log import CommitLog
    from longwall.storage.graph.graph import Graph
    from longwall.storage.memory.resources import Resources
    from longwall.storage.observer import Observer
    from longwall.storage.pages.placement import Placement


@dataclass(frozen=True)
class PatternCount:
    """How often one pattern occurs in the data graph."""

    pattern: str
    """The pattern as an edge list, such as ``"0-1,0-2,1-2"``."""
    labels: tuple[int, ...] | None
    """The label of each pattern vertex, or None for an unlabelled pattern."""
    count: int | None
    """Number of embeddings (or mappings, as the config asks); None where the config asks for less."""
    support: int | None = None
    """The support, for the workloads that measure one."""
    edge_labels: tuple[int, ...] | None = None
    """The label of each edge of `pattern`, or None where edges have no labels."""
    lower_bound: bool = False
    """Whether there may be more than `count`: ``export.limit`` ended the search."""


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
    """Rows that sampling foretold of `rows_out`; None where nothing was foretold."""


@dataclass
class Metrics:
    """Stage events of a run, in the order in which they were recorded; safe to share between threads."""

    _rows: list[MetricsRow] = field(default_factory=list)
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
            What sampling foretold of `rows_out`.
        """
        row = MetricsRow(stage, level, int(rows_in), int(rows_out), float(seconds), int(bytes), int(tasks), predicted)
        with self._lock:
            self._rows.append(row)

    def rows(self) -> list[MetricsRow]:
        """Return a copy of the events so far."""
        with self._lock:
            return list(self._rows)


@dataclass(frozen=True)
class DeviceGraph:
    """The graph where the engine reads it, and how it came there."""

    graph: GraphArrays
    placement: Placement


@dataclass
class Environment:
    """Everything that a workload may use while it executes its plan."""

    spec: RunSpec
    """The validated config."""
    graph: Graph
    """The data graph, on the host."""
    resources: Resources
    """Budgets, spill folder and engine; the graph is reserved already."""
    checkpoint: CommitLog
    """What is finished."""
    results: Path
    """Folder for result files; it becomes ``results/`` only when the run is complete."""
    observer: Observer
    """Told about progress."""
    metrics: Metrics
    """Told about every stage."""
    cancel: threading.Event
    """Set when the user interrupts: worker threads stop at their next chunk."""
    on_engine: DeviceGraph | None = None
    """The graph on the engine, once something has run there."""
    scheduler: Scheduler | None = None
    """Where tasks run; None: on threads of this process."""
    is_coordinator: bool = True
    """Whether this process commits what is done, and writes what is not done in tasks; a replica does neither."""

    @property
    def engine(self) -> Engine:
        """The engine of `resources`."""
        return self.resources.engine
