"""The run directory. It is complete only when manifest.json says ``done``.

Result files are written into ``results.partial/``; they are in ``results/`` before the last step, the manifest that
says ``done``. A run that fails, is interrupted or killed leaves what it has finished (``results.partial/`` and
``checkpoint/``) for ``longwall resume``.

A run that replaces another one works beside it, see :mod:`longwall.pipeline.run_store.replacement`.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longwall.pipeline.config import load_config
from longwall.pipeline.config.raw import parse_toml
from longwall.pipeline.run_store.commit_log import CommitLog
from longwall.pipeline.run_store.local_store import LocalStore
from longwall.pipeline.run_store.manifest import (
    CONFIG,
    MARK,
    ended,
    first_manifest,
    manifest_of,
    require_resumable,
    resumed_manifest,
    status_of,
)
from longwall.pipeline.run_store.manifest import NAME as MANIFEST
from longwall.pipeline.run_store.object_store import ObjectStore
from longwall.pipeline.run_store.replacement import complete, replaced_by, replacement_of, take_place
from longwall.pipeline.run_store.run_names import busy, exists
from longwall.pipeline.run_store.store import RESULTS, RunStore
from longwall.storage.errors import InputError, RunError
from longwall.storage.memory.spill_folder import SpillFolder
from longwall.storage.paths import user_path
from longwall.storage.remote.urls import is_url
from longwall.storage.signals import undisturbed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longwall.pipeline.config import RunSpec
    from longwall.pipeline.execution.environment import Metrics, PatternCount
    from longwall.storage.memory.reservations import MemoryBudget

TOO_LARGE = 1 << 63  # for a column of 64-bit integers
_RESERVE = 2**13  # by which a manifest may grow when a run ends early
_FLEETING = frozenset({"memory"})
"""File systems whose files are gone when the process ends."""


class RunDirectory:
    """A run's place, from its creation to one of its ends: `finish`, `abandon` or `discard`.

    Parameters
    ----------
    store
        Of the run.
    manifest
        What ``manifest.json`` will hold; `save` writes it.
    target
        The run that this one replaces, if it replaces one.

    Attributes
    ----------
    store, manifest
        See above.
    """

    def __init__(self, store: RunStore, manifest: dict[str, Any], target: RunStore | None = None):
        self.store, self.manifest = store, manifest
        self._target = target
        self._spill: SpillFolder | None = None
        self._log: CommitLog | None = None
        self._finished = False

    @classmethod
    def create(cls, spec: RunSpec, *, fresh_name: bool = False) -> RunDirectory:
        """Make the run ``run.directory/run.name`` with its config and first manifest.

        Parameters
        ----------
        spec
            The config.
        fresh_name
            Whether the run takes another name where there is one of this name.

        Raises
        ------
        InputError
            If it exists, or cannot be made or written.
        """
        spec.with_absolute_paths().to_toml()  # where it cannot be written down, no folder is made
        store = _store_at(f"{str(spec.run.directory).rstrip('/')}/{spec.run.name}")
        try:
            while True:
                store, target = complete(store), None
                if spec.run.overwrite and store.exists():
                    store, target = replacement_of(store), store
                elif not store.begin():
                    if not fresh_name:
                        raise exists(store.where, free_name(store), status_of(store))
                    spec = spec.named(free_name(store))
                    store = store.sibling(spec.run.name)
                    continue
                directory = cls(store, {}, target)
                if directory._begin(spec):
                    return directory
                if target is not None:
                    raise busy(store.where)
        except RunError as error:
            raise InputError(f"{error}, or choose another run.directory") from None
        except OSError as error:
            raise InputError(
                f"{store.where} cannot be made ({error.strerror or error}): choose another run.directory"
            ) from None

    def _begin(self, spec: RunSpec) -> bool:
        """Begin where there is nothing; return whether no other process began at the same moment."""
        config = MARK + spec.with_absolute_paths().to_toml()
        try:
            self.manifest = first_manifest(spec, config)
            self.store.hold()
            self._work(spec)
            if self.store.create(CONFIG, config.encode()):  # without a manifest it is no run yet
                self._log = CommitLog(self.store)
                self.save()
                return True
        except BaseException as error:
            with suppress(OSError, InputError, RunError):
                self.store.clear()
            self.close()
            if isinstance(error, OSError):
                raise InputError(
                    f"{self.store.where} cannot be written ({error.strerror}): choose another run.directory"
                ) from None
            raise
        self.close()
        return False

    @classmethod
    def reopen(cls, address: Path | str, overrides: Sequence[str] = ()) -> tuple[RunDirectory, RunSpec]:
        """Open a run that ended early, and read its config.

        Parameters
        ----------
        address
            Its folder, or its URL.
        overrides
            ``"section.key=value"`` each, for the config.

        Raises
        ------
        InputError
            If it is not a run, the run is finished or going on, its config was edited, another version wrote what it
            has finished, or something lies in it that no run writes.
        FinalError
            If what it has finished is damaged.
        """
        store = _store_at(address)
        with suppress(OSError):
            store = complete(store)
        directory = cls(store, {})
        try:
            return directory, directory._resume(overrides)
        except (FileNotFoundError, NotADirectoryError, ValueError):
            directory.close()
            raise InputError(f"{store.where}: this is not the folder of a run, which holds {MANIFEST}") from None
        except OSError as error:
            directory.close()
            raise InputError(f"{store.where}: the run cannot be resumed ({error.strerror or error})") from None
        except BaseException:
            directory.close()
            raise

    def _resume(self, overrides: Sequence[str]) -> RunSpec:
        store = self.store
        store.hold()
        there = store.list()
        self._target = replaced_by(store)
        if not {MANIFEST, CONFIG} <= there.keys():
            raise ValueError
        manifest, config = manifest_of(store), store.read(CONFIG).decode()
        published = any(name.startswith("results/") for name in there)
        if manifest["status"] == "done" and published:
            raise InputError(f"{store.where}: this run is finished, its results are in {store.where}/results")
        require_resumable(store.where, manifest, config)
        # Messages name the file, where there is one.
        spec = load_config(store.folder / CONFIG if store.alone else parse_toml(config), overrides)
        self._log = CommitLog(store)
        self._log.claim()
        self.manifest = resumed_manifest(manifest)
        if not store.alone:
            self.save()
        if published:  # it was killed between its last two steps
            store.unpublish()
        store.delete([name for name in there if re.fullmatch(r"[^/]+\.partial", name)])
        self._work(spec)
        return spec

    def _work(self, spec: RunSpec) -> None:
        """Make the folder that this process works in."""
        if isinstance(self.store, ObjectStore):
            advice = "choose another memory.spill, where a run at a URL has its files first"
            self._spill = SpillFolder(spec.memory.spill, advice=advice)
            self.store.work_in(self._spill.path / "run")
        self.results.mkdir(parents=True, exist_ok=True)

    @property
    def where(self) -> Path | str:
        """What users call the place."""
        return self.store.where

    @property
    def path(self) -> Path:
        """The folder that this process works in."""
        return self.store.folder

    @property
    def results(self) -> Path:
        """Where result files are written while the run goes on."""
        return self.path / RESULTS

    @property
    def log(self) -> CommitLog:
        """What is finished."""
        assert self._log is not None, "it was made or opened"
        return self._log

    def open_log(self, disk: MemoryBudget) -> CommitLog:
        """Check what the run has finished, and charge it to the disk's budget; see `CommitLog.restore`."""
        self.log.restore(disk)
        return self.log

    def close(self) -> None:
        """Let other processes have the run; more than once does no harm."""
        self.store.close()
        if self._target is not None:
            self._target.close()
        if self._spill is not None:
            self._spill.close()

    @property
    def has_finished_work(self) -> bool:
        """Whether `reopen` would find something that need not be done again."""
        return self.log.begun

    def save(self) -> None:
        """Write the manifest, whole or not at all."""
        if not self.store.alone:
            self.manifest["owner"] = self.log.owner
        content = json.dumps(self.manifest, indent=2) + "\n"
        # The next one may have to say that the disk is full.
        spare = _RESERVE if self.manifest["status"] == "running" else 0
        self.store.write(MANIFEST, content.encode(), spare)

    def finish(self, metrics: Metrics) -> None:
        """Make the results appear and the manifest say ``done``.

        Raises
        ------
        OSError
            If the disk is full or the folder was taken away; the run is not done then.
        FinalError
            If a finished file was changed since it was recorded, or another process has taken the run over.
        InputError
            If there is something in the folder that no run writes.
        RunError
            If a URL cannot be written; or if the run is done, and cannot take the place of the one that it replaces.
        """
        self.log.confirm()
        write_metrics(metrics, self.path / "metrics.parquet")
        self.store.put_files([file.name for file in sorted(self.path.glob("*.parquet"))])
        found = self.store.publish(self.log.results())
        self.log.confirm()
        with undisturbed():  # an interrupt would say that the run can be resumed, which is done
            self.manifest |= ended("done") | {"results": found}
            self.save()
            self._finished = True
            with suppress(OSError, InputError, RunError):  # whatever else lies there
                self.store.clear("checkpoint/", RESULTS)
            if self._target is not None:
                take_place(self.store, self._target)
                self.store, self._target = self._target, self.store

    def abandon(self, status: str, reason: str, metrics: Metrics) -> None:
        """Record why the run ended; what it finished stays for `reopen`.

        A run that is done stays so, and one that another process has taken over is left alone.

        Parameters
        ----------
        status
            ``"failed"`` or ``"interrupted"``.
        reason
            For the user, one line.
        metrics
            The events up to here.
        """
        if self._finished or self.log.lost:
            return
        self.manifest |= ended(status) | {"reason": reason}
        # The disk, or the connection, may be the reason why the run failed. The manifest says "running" then, so
        # this is not taken for a whole run.
        with suppress(OSError, RunError):
            self.log.confirm()
            with suppress(OSError):  # it takes no space, which the rest may lack
                self.store.unpublish()
            self.save()
            write_metrics(metrics, self.path / "metrics.parquet")
            self.store.put_files(["metrics.parquet"])

    def discard(self) -> None:
        """Remove the run, and its parent folder if it was made for it: the input was wrong, nothing has run."""
        if not self._finished:
            with suppress(OSError, InputError, RunError):
                self.log.confirm()
                self.store.clear()
        self.close()


def _store_at(address: Path | str) -> RunStore:
    """The store of a run at a path or a URL."""
    if not is_url(address):
        return LocalStore(user_path(address).absolute())
    store = ObjectStore(str(address))
    if not _FLEETING.isdisjoint(store.protocols):
        raise InputError(
            f"{address}: what is written there is gone when this process ends: choose another run.directory"
        )
    return store


def free_name(store: RunStore) -> str:
    """Return the first of ``name-2``, ``name-3``, ... that does not exist beside a run."""
    number = 2
    while store.sibling(f"{store.name}-{number}").exists():
        number += 1
    return f"{store.name}-{number}"


def write_counts(counts: Sequence[PatternCount], path: Path) -> None:
    """Write ``counts.parquet``: columns as in `PatternCount`, a row per pattern."""
    import pyarrow as pa

    from longwall.storage.parquet_files import write_parquet

    schema = pa.schema(
        [
            ("pattern", pa.string()),
            ("labels", pa.list_(pa.int32())),
            ("count", pa.int64()),
            ("support", pa.int64()),
            ("edge_labels", pa.list_(pa.int32())),
            ("lower_bound", pa.bool_()),
        ]
    )
    columns = {
        "pattern": [one.pattern for one in counts],
        "labels": [one.labels for one in counts],
        "count": [one.count for one in counts],
        "support": [one.support for one in counts],
        "edge_labels": [one.edge_labels for one in counts],
        "lower_bound": [one.lower_bound for one in counts],
    }
    write_parquet(pa.table(columns, schema=schema), path)


def write_metrics(metrics: Metrics, path: Path) -> None:
    """Write ``metrics.parquet``: one row per stage event, columns as in `MetricsRow`; null what does not fit them."""
    import pyarrow as pa

    from longwall.pipeline.execution.environment import MetricsRow
    from longwall.storage.parquet_files import write_parquet

    types = {"stage": pa.string(), "seconds": pa.float64(), "predicted": pa.float64()}
    schema = pa.schema([(name, types.get(name, pa.int64())) for name in MetricsRow._fields])
    rows = [{name: _fitting(figure) for name, figure in row._asdict().items()} for row in metrics.rows()]
    write_parquet(pa.Table.from_pylist(rows, schema=schema), path)


def _fitting(figure: Any) -> Any:
    """A figure of the metrics, None where its column cannot hold it: a run is not lost for it."""
    return None if isinstance(figure, int) and figure >= TOO_LARGE else figure
