"""Resume a run that is finished: read its result from its files, and write its report if it is missing."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from longwall.pipeline.config.raw import parse_toml
from longwall.pipeline.execution.environment import PatternCount
from longwall.pipeline.report.publish import publish_missing
from longwall.pipeline.result import Result, opened_result
from longwall.pipeline.run_store.manifest import manifest_of, why_no_run
from longwall.pipeline.run_store.run_names import CHECKPOINT, CONFIG, PUBLISHED, REPORT, RESULTS
from longwall.pipeline.run_store.store import require_unchanged
from longwall.storage.errors import RunError

if TYPE_CHECKING:
    from longwall.pipeline.run_store.store import RunStore
    from longwall.storage.observer import Observer

_COUNTS = f"{PUBLISHED}counts.parquet"


def finished_result(store: RunStore, observer: Observer) -> Result:
    """Return the result of a finished run; if a kill came before its report or its clean-up, do these now.

    Parameters
    ----------
    store
        The files of the run, which this process holds.
    observer
        Notified that the run is finished.

    Raises
    ------
    FinalError
        If a result file was changed, or is gone.
    InputError
        If the manifest is damaged.
    """
    there, manifest = store.list(), manifest_of(store)
    try:
        files = [{"name": PUBLISHED + name, **facts} for name, facts in manifest["results"].items()]
        require_unchanged(store, [*files, {"name": _COUNTS, "bytes": there.get(_COUNTS, -1)}], there)
        result = Result(
            path=store.where,
            workload=str(manifest["workload"]),
            count=manifest.get("count"),
            patterns=_patterns(store),
            seconds=_seconds(manifest),
            engine=manifest["engine"]["name"],
            timings={str(name): float(took) for name, took in manifest["timings"].items()},
            truncated=bool(manifest["truncated"]),
            total_seconds=_total_seconds(manifest),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise why_no_run(store.where, ValueError()) from None
    observer.note(f"this run is finished, its results are in {store.where}/results")
    with suppress(OSError, RunError):
        store.delete([CHECKPOINT, RESULTS])
    if REPORT not in there and _wants_report(store):
        publish_missing(store, observer)
    return result


def _patterns(store: RunStore) -> tuple[PatternCount, ...]:
    """Return the rows of ``counts.parquet``."""
    from longwall.storage.tables.parquet_rows import read_parquet

    with opened_result(store, _COUNTS) as source:
        rows = read_parquet(source, f"{store.where}/{_COUNTS}").to_pylist()
    found = []
    for row in rows:
        count = row["count"]  # a decimal or a text if it is large
        lists = {name: None if row[name] is None else tuple(row[name]) for name in ("labels", "edge_labels")}
        found.append(PatternCount(**row | lists | {"count": None if count is None else int(count)}))
    return tuple(found)


def _seconds(manifest: dict[str, Any]) -> float:
    """Return the seconds that the last attempt took."""
    began = [manifest["started"], *manifest.get("resumed", [])][-1]
    return (datetime.fromisoformat(manifest["finished"]) - datetime.fromisoformat(began)).total_seconds()


def _total_seconds(manifest: dict[str, Any]) -> float | None:
    """Return the seconds of all attempts of a run that was resumed, if they were recorded."""
    return sum(map(float, manifest["attempt_seconds"])) if {"resumed", "attempt_seconds"} <= manifest.keys() else None


def _wants_report(store: RunStore) -> bool:
    """Return whether the config asks for a report; True if the config cannot be read."""
    with suppress(OSError, RunError, ValueError, AttributeError):
        config = parse_toml(store.read(CONFIG).decode())
        return config.get("run", {}).get("report", True) is not False
    return True
