"""What the folder of a run holds, read for its report: nothing but that is ever shown."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from longwall.pipeline.run_store.manifest import manifest_of, why_no_run
from longwall.pipeline.run_store.run_names import CONFIG, HISTORY, MANIFEST, PUBLISHED
from longwall.storage.errors import InputError, RunError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from longwall.pipeline.run_store.store import RunStore

MOST_PATTERNS = 24
"""Rows of the answer that a report shows."""
_MOST_ROWS = 20_000  # of a table that are looked at
_MOST_BYTES = 1 << 26  # of a file
_BATCH = 1 << 16  # rows of the record of access heat that are looked at at once
_MOST_LEVELS = 64  # of a search, one for each vertex of a pattern
_HEAT_COLUMNS = ("level", "page", "bytes", "extensions", "hot_extensions")
HEAT_CELLS = 48
"""Pages of a heat map are drawn in at most this number of cells a level."""


class Heat(NamedTuple):
    """What the levels of a search read of the graph's pages, each cell some neighbouring pages."""

    pages: int
    """Pages of which something was read, up to the last one."""
    levels: dict[int, list[int]]
    """Level to the bytes that it read of each cell."""
    on_device: dict[int, float]
    """Level to the share of these bytes whose page was on the device."""


class RunRecord(NamedTuple):
    """The files of one run, as far as a report shows them; a file that is not there, or damaged, is empty."""

    where: str
    """The folder, or the URL."""
    manifest: dict[str, Any]
    config: dict[str, Any]
    history: dict[str, Any]
    metrics: list[dict[str, Any]]
    counts: list[dict[str, Any]]
    heat: Heat | None
    progress: Sequence[tuple[str, int, int]] = ()
    """Of a run that is not done: each phase that was begun, how many of its roots are finished, how many it has."""


def read_record(store: RunStore) -> RunRecord:
    """Read what the report of a run shows.

    Raises
    ------
    InputError
        If there is no manifest of a run, or something lies among the files that no run writes.
    """
    there = store.list()
    try:
        if MANIFEST not in there:
            raise FileNotFoundError
        manifest = manifest_of(store)
    except (OSError, ValueError) as error:
        raise why_no_run(store.where, error) from None

    def content(name: str) -> bytes | None:
        return store.read(name) if 0 < there.get(name, 0) <= _MOST_BYTES else None

    return RunRecord(
        where=str(store.where),
        manifest=manifest,
        config=_config(content(CONFIG)),
        history=_history(content(HISTORY)),
        metrics=_rows(content("metrics.parquet"), _MOST_ROWS),
        counts=_rows(content(f"{PUBLISHED}counts.parquet"), MOST_PATTERNS),
        heat=_heat(content("heat.parquet")),
        progress=[] if manifest["status"] == "done" else _progress(store),
    )


def _progress(store: RunStore) -> list[tuple[str, int, int]]:
    from longwall.pipeline.run_store.commit_log import CommitLog

    try:
        return CommitLog(store).progress()
    except (RunError, OSError):  # commits are damaged, or another process is about to remove them
        return []


def _config(content: bytes | None) -> dict[str, Any]:
    from longwall.pipeline.config.raw import parse_toml

    try:
        return parse_toml((content or b"").decode())
    except (InputError, ValueError):
        return {}


def _history(content: bytes | None) -> dict[str, Any]:
    try:
        found = json.loads(content or b"{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _rows(content: bytes | None, most: int) -> list[dict[str, Any]]:
    """Return the first rows of a Parquet file."""
    if content is None:
        return []
    import pyarrow as pa

    from longwall.storage.tables.parquet_rows import parquet_batches

    try:
        first = next(parquet_batches(pa.BufferReader(content), "", most), None)
        return [] if first is None else first.to_pylist()
    except RunError:
        return []


def _heat(content: bytes | None) -> Heat | None:
    if content is None:
        return None
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    from longwall.storage.tables.parquet_rows import parquet_batches

    levels: dict[int, np.ndarray[Any, Any]] = {}
    cached: dict[int, float] = {}
    try:
        with pq.ParquetFile(pa.BufferReader(content)) as file:
            groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
            tops = [group.column(1).statistics.max for group in groups if group.num_rows]
            pages = max(tops, default=-1) + 1
            cells = min(pages, HEAT_CELLS)
        for batch in parquet_batches(pa.BufferReader(content), "", _BATCH):
            columns = (batch.column(name).to_numpy() for name in _HEAT_COLUMNS)
            level, page, size, extensions, hot = columns
            if page.max(initial=0) >= pages:
                return None
            shares = size * (hot / np.maximum(extensions, 1))
            for number in np.unique(level).tolist():
                rows = level == number
                if number not in levels and len(levels) == _MOST_LEVELS:
                    return None
                sums = np.bincount(page[rows] * cells // pages, size[rows], cells)
                levels[number] = levels.get(number, 0) + sums
                cached[number] = cached.get(number, 0.0) + float(shares[rows].sum())
    except (pa.ArrowException, OSError, RunError, AttributeError, KeyError, TypeError, ValueError):
        return None
    if not levels:
        return None
    found = {number: sums.astype(np.int64).tolist() for number, sums in levels.items()}
    return Heat(pages, found, {number: cached[number] / max(sum(found[number]), 1) for number in found})
