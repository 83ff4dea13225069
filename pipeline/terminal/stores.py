"""Commands that make a graph store: what they share."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from longwall.pipeline.cli_output import write_stderr, write_stdout
from longwall.storage.errors import InputError, RunError, reason_of
from longwall.storage.system import signals
from longwall.storage.system.paths import user_path

if TYPE_CHECKING:
    from longwall.storage.graph.stats import GraphStats
    from longwall.storage.observer import Observer


def one_of(labels: str | None, vertices: str | None) -> str | None:
    """Return the input of labels, which two options name."""
    if labels is not None and vertices is not None:
        raise InputError("--labels and --vertices name the same input: give one of them")
    return labels if vertices is None else vertices


def make_store(
    store: Path,
    memory: str | None,
    spill: Path,
    disk: str | None,
    observer: Observer,
    make: Callable[..., GraphStats],
) -> None:
    """Make a store with `make`, which takes resources and an observer, and print what it is."""
    from longwall.kernels.jit.kernel_cache import cache_note
    from longwall.pipeline.progress.event_log import LoggedObserver
    from longwall.storage.memory.allocator import return_freed_memory
    from longwall.storage.memory.reservations import BudgetExceeded
    from longwall.storage.memory.resources import COMMAND_OPTIONS, open_resources
    from longwall.storage.observer import show_budgets

    spill = user_path(spill)
    if store.exists():
        raise InputError(f"{store} exists already: remove it, or choose another path for the store")
    resources = open_resources(
        host=_size("--memory", memory), disk=_size("--disk", disk), spill=spill, options=COMMAND_OPTIONS
    )
    return_freed_memory()
    began = time.perf_counter()
    observer = LoggedObserver(observer)
    show_budgets(observer, resources.usage)
    if cache_note():
        observer.note(cache_note())
    try:
        with (
            signals.interrupted_by(lambda: None),  # a second signal does not disturb what the first one lets remove
            resources,
        ):
            resources.spill.check()
            stats = make(resources=resources, observer=observer)
    except BudgetExceeded as error:
        raise InputError(str(error)) from None  # the budgets are the user's
    except MemoryError as error:
        raise RunError(reason_of(error).replace("memory.host", "--memory")) from error
    except KeyboardInterrupt:
        if not store.exists():
            raise
        write_stderr(f"\ninterrupted: {store} is complete")
        raise typer.Exit(signals.exit_code()) from None
    finally:
        observer.close()
    seconds = time.perf_counter() - began
    labels = f", {stats.num_labels} labels" if stats.num_labels else ""
    write_stdout(f"{store}: {stats.num_vertices:,} vertices, {stats.num_edges:,} edges{labels}, in {seconds:.2f} s")


def _size(option: str, text: str | None) -> int | None:
    """Return the bytes of an option, None where it is not given."""
    from longwall.storage.memory.sizes import parse_size

    try:
        return None if text is None else parse_size(text)
    except ValueError as error:
        raise InputError(f"{option}: {error}") from None
