"""Write the report of a run that ends. A run is as it is, whether or not its report can be written."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from longwall.pipeline.run_store.run_names import HISTORY, REPORT

if TYPE_CHECKING:
    from longwall.pipeline.execution.environment import Metrics
    from longwall.pipeline.progress.history import History
    from longwall.pipeline.run_store.store import RunStore
    from longwall.storage.observer import Observer

_MOST_VALUES = 24
_DELAY = 0.1  # seconds of work before imports begin beside it: shorter work would end later by them
_IMPORTED = ("pyarrow.parquet", "pyarrow.compute", "longwall.pipeline.report.page", "jinja2")


@contextmanager
def importing_report(*, wanted: bool) -> Iterator[None]:
    """Import the modules of a report beside work that takes long; writing the report says if an import fails."""
    ended = Event()
    if wanted:
        Thread(target=_import_report, args=(ended,), name="import-report").start()
    try:
        yield
    finally:
        ended.set()


def _import_report(ended: Event) -> None:
    if not ended.wait(_DELAY):
        with suppress(Exception):
            for name in _IMPORTED:
                import_module(name)


def publish_report(store: RunStore, history: History, metrics: Metrics, values: Sequence[Any] = ()) -> None:
    """Write ``history.json`` and ``report.html``; where that fails, the user is notified, and nothing is raised.

    Parameters
    ----------
    store
        The files of the run, whose manifest says how it ended.
    history
        What happened when; it receives the message.
    metrics
        What the threads did.
    values
        Answers of an algorithm of one's own, which no table holds.
    """
    try:
        loads = [{"worker": worker} | load._asdict() for worker, load in metrics.loads().items()]
        facts = history.facts() | {
            "loads": loads,
            "values": list(values[:_MOST_VALUES]) if any(one is not None for one in values) else [],
        }
        store.write(HISTORY, (json.dumps(facts, default=str) + "\n").encode(), lasting=False)
        write_report(store)
    except (Exception, KeyboardInterrupt) as error:  # whatever it is, the run is as it is
        _failed(store, history, error)


def publish_missing(store: RunStore, observer: Observer) -> None:
    """Write the report of a run that ended without one, from its files; failures as of `publish_report`."""
    try:
        write_report(store)
        observer.note(f"its report was missing, and is {store.where}/{REPORT} now")
    except (Exception, KeyboardInterrupt) as error:
        _failed(store, observer, error)


def _failed(store: RunStore, observer: Observer, error: BaseException) -> None:
    with suppress(Exception):
        store.delete([f"{HISTORY}.tmp", f"{REPORT}.tmp"])
    with suppress(Exception):
        reason = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}".removesuffix(": ")
        observer.note(f"the report of the run is not written ({reason}): make it with longwall report {store.where}")


def write_report(store: RunStore) -> None:
    """Make the report of a run anew of its files.

    Raises
    ------
    InputError
        If there is no manifest of a run, or it is damaged.
    OSError, RunError
        If the report cannot be written.
    """
    from longwall.pipeline.report.page import run_page
    from longwall.pipeline.report.record import read_record

    store.write(REPORT, run_page(read_record(store)).encode("utf-8", "backslashreplace"), lasting=False)
