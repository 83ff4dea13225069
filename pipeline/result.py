"""What a run found, and where it is."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from longwall.pipeline.run_store.local_store import LocalStore
from longwall.pipeline.run_store.manifest import manifest_of
from longwall.pipeline.run_store.object_store import ObjectStore
from longwall.pipeline.run_store.run_names import REPORT, is_own
from longwall.pipeline.table import Table
from longwall.storage.errors import InputError, RunError, one_frame
from longwall.storage.stored_files import open_regular
from longwall.storage.system.arguments import require_type
from longwall.storage.system.plain_text import harmless

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from longwall.pipeline.execution.environment import PatternCount
    from longwall.pipeline.run_store.store import RunStore
    from longwall.storage.ingest.data_notes import Noted
    from longwall.storage.system.html import Link


_SHOWN = 12  # patterns


@dataclass(frozen=True, repr=False)
class Result:
    """What a run found, and where it is."""

    path: Path | str
    """The run's folder, absolute; a string where it is a URL."""
    workload: str
    """The kind of workload."""
    count: int | None
    """The answer, if it is one number; a lower bound if `truncated`."""
    patterns: tuple[PatternCount, ...]
    """The answer per pattern."""
    seconds: float
    """Time of the run; of one that was resumed, of its last attempt."""
    engine: str
    """The engine that ran it: ``cpu`` or ``cuda``."""
    timings: Mapping[str, float] = field(default_factory=dict)
    """Seconds of each part of the run: ``graph``, ``plan``, ``mine``, ``write``."""
    notes: tuple[Noted, ...] = ()
    """The data that was dropped, merged or guessed as the graph was read: the kind, number and sentence of each."""
    total_seconds: float | None = None
    """Time of all attempts of a run that was resumed; of one that was killed, until its last commit."""
    truncated: bool = False
    """Whether ``workload.limit`` or ``export.limit`` ended the search: counts are lower bounds, there may be more."""

    @one_frame
    def table(self, name: str = "embeddings") -> Table:
        """Read a table of results.

        Parameters
        ----------
        name
            ``"embeddings"``, ``"vertices"``, ``"edges"``, ``"sizes"`` or ``"counts"``; a table may lie in several
            files.

        Returns
        -------
        Table
            All rows, vertices as ids of the input. They have no order, unless ``export.sort`` asks for one.

        Raises
        ------
        InputError
            If the run wrote no such table.
        RunError
            If a file of it is damaged.
        """
        import pyarrow as pa

        from longwall.storage.tables.parquet_rows import read_parquet

        parts = [read_parquet(source, where) for source, where in self._files(name)]
        try:
            return Table(pa.concat_tables(parts))
        except pa.ArrowException:
            folder = f"{self.path}/results"
            raise RunError(f'{folder}: files of the table "{name}" differ in their columns: restore them') from None

    def batches(self, name: str = "embeddings") -> Iterator[pa.RecordBatch]:
        """Read a table of results in parts; parameters and errors as of `table`.

        Yields
        ------
        pyarrow.RecordBatch
            Some of the rows.
        """
        from longwall.storage.tables.parquet_rows import parquet_batches

        for source, where in self._files(name):
            yield from parquet_batches(source, where)

    def schema(self, name: str = "embeddings") -> pa.Schema:
        """Return the columns of a table of results; parameters and errors as of `table`."""
        from longwall.storage.tables.parquet_rows import parquet_schema

        return next(parquet_schema(source, where) for source, where in self._files(name))

    def _files(self, name: str) -> Iterator[tuple[Any, str]]:
        """Open the files of a table one by one, and name each for messages."""
        require_type("name", name, str, 'the name of a table, such as "embeddings" or "counts"')
        folder = f"{self.path}/results"
        store = ObjectStore(self.path) if isinstance(self.path, str) else LocalStore(self.path)
        tables = [(PurePosixPath(file).stem.partition("-")[0], file) for file in result_files(store)]
        wanted = [file for table, file in tables if table == name]
        if not wanted:
            there = ", ".join(sorted({table for table, _ in tables})) or "nothing"
            raise InputError(f'{folder} holds no table "{name:.60}", only {there}')
        for file in wanted:
            with opened_result(store, f"results/{file}") as source:
                yield source, f"{folder}/{file}"

    def __repr__(self) -> str:
        facts = self._facts()
        width = max(len(name) for name, _ in facts)
        return "\n".join(f"{harmless(name):{width}}  {harmless(value)}".rstrip() for name, value in facts)

    def _repr_html_(self) -> str:
        from longwall.storage.system.html import html_table

        report = self._report()
        return html_table(["Result"], [*self._facts(), *([("report", report)] if report else [])])

    def _facts(self) -> list[tuple[str, str]]:
        """Return what a person wants to see first."""
        facts = [("workload", self.workload)]
        if self.count is not None:
            facts.append(("count", f"{'at least ' if self.truncated else ''}{self.count:,}"))
        facts += [("seconds", f"{self.seconds:.2f}"), ("engine", self.engine), ("results", f"{self.path}/results")]
        if self.count is None:
            facts += [(_title(one), _figure(one)) for one in self.patterns[:_SHOWN]]
            more = len(self.patterns) - _SHOWN
            facts += [("", f"and {more:,} more patterns")] if more > 0 else []
        return facts

    def _report(self) -> Link | None:
        """Return a link to the report, for a browser that shows a notebook of the working folder."""
        from longwall.storage.system.html import Link

        if isinstance(self.path, str) or not (report := self.path / REPORT).is_file():
            return None
        here = Path.cwd()
        target = quote(report.relative_to(here).as_posix()) if report.is_relative_to(here) else report.as_uri()
        return Link(REPORT, target)

    def to_json(self) -> dict[str, Any]:
        """Return the summary that ``longwall run --json`` prints."""
        summary: dict[str, Any] = {"run": str(self.path), "workload": self.workload}
        if self.count is not None:
            summary["count"] = self.count
            if self.truncated:
                summary["lower_bound"] = True
        summary["patterns"] = [
            {key: value for key, value in asdict(one).items() if value is not None and value is not False}
            for one in self.patterns
        ]
        summary |= {"seconds": round(self.seconds, 6), "engine": self.engine}
        if self.total_seconds is not None:
            summary["total_seconds"] = round(self.total_seconds, 6)
        return summary | ({"truncated": True} if self.truncated else {})


def _title(one: PatternCount) -> str:
    from longwall.pipeline.patterns.pattern_names import known_name

    name = one.name or known_name(one.pattern) or one.pattern
    labels = ",".join("any" if label is None else str(label) for label in one.labels or ())
    return f"{name}, labels {labels}" if labels and one.name is None else name


def _figure(one: PatternCount) -> str:
    found = one.value if one.count is None else f"{one.count:,}"
    parts = [] if found is None else [str(found)]
    return ", ".join(parts if one.support is None else [*parts, f"support {one.support:,}"])


def result_files(store: RunStore) -> list[str]:
    """Return the names of a run's result files, as its manifest lists them: others may lie beside them.

    Raises
    ------
    RunError
        If there is no manifest any more.
    """
    try:
        return sorted(name for name in manifest_of(store).get("results", {}) if is_own(f"results/{name}"))
    except (OSError, ValueError, TypeError):
        raise RunError(f"{store.where}: this is not the folder of a run any more: restore its manifest.json") from None


@contextmanager
def opened_result(store: RunStore, name: str) -> Iterator[Any]:
    """Open a result file; a link is not followed, and a pipe not waited for.

    Raises
    ------
    RunError
        If it is not there, or no regular file.
    """
    import pyarrow as pa

    if not store.alone:
        yield pa.BufferReader(store.read(name))
        return
    try:
        file = os.fdopen(open_regular(store.local(name), links=False), "rb")
    except OSError:
        raise RunError(
            f"{store.where}/{name}: there is no such file any more, or a link in its place: restore it"
        ) from None
    with file:
        yield file
