"""The run directory. It is complete only when manifest.json says ``done``.

Result files are written into ``results.partial/``; they are in ``results/`` before the last step, the manifest that
says ``done``. A run that fails, is interrupted or killed leaves what it has finished (``results.partial/`` and
``checkpoint/``) for ``longwall resume``.

A run that replaces another one works beside it, see :mod:`longwall.pipeline.run_store.replacement`.
"""

from __future__ import annotations

import json
import shlex
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from longwall.pipeline.config import load_config
from longwall.pipeline.config.raw import parse_toml
from longwall.pipeline.result_tables import describe_table, write_metrics
from longwall.pipeline.run_store.commit_log import CommitLog
from longwall.pipeline.run_store.manifest import (
    MARK,
    ended,
    first_manifest,
    manifest_of,
    require_resumable,
    resumed_manifest,
    status_of,
    why_no_run,
)
from longwall.pipeline.run_store.replacement import (
    complete_exchange,
    place_for_replacement,
    replaced_by,
    take_place,
    unfinished_replacement,
)
from longwall.pipeline.run_store.run_names import CHECKPOINT, CONFIG, MANIFEST, PUBLISHED, RESULTS, busy, is_own
from longwall.pipeline.run_store.run_place import RunPlace, place_at
from longwall.pipeline.run_store.store import require_unchanged
from longwall.pipeline.run_store.transient import TransientPlace
from longwall.storage.errors import FinalError, InputError, RunError, not_written
from longwall.storage.system.signals import undisturbed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from longwall.pipeline.config import RunSpec
    from longwall.pipeline.execution.environment import Metrics
    from longwall.pipeline.execution.rows.row_stream import RowStream
    from longwall.pipeline.run_store.store import RunStore
    from longwall.storage.memory.spill_folder import SpillFolder

_ELSEWHERE = "choose another run.directory"
_RESERVE = 2**13  # by which a manifest may grow when a run ends early


class RunDirectory:
    """A run in its place, from its creation to one of its ends: `finish`, `abandon` or `discard`.

    Parameters
    ----------
    place
        Of the run.
    target
        The place of the run that this one replaces, if it replaces one.

    Attributes
    ----------
    manifest
        The content of ``manifest.json``; `save` writes it.
    rows
        Takes the rows of a listing in place of result files; None: there are files.
    """

    def __init__(self, place: RunPlace, target: RunPlace | None = None):
        self.manifest: dict[str, Any] = {}
        self.rows: RowStream | None = None
        self._place, self._target = place, target
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
        place = place_at(f"{str(spec.run.directory).rstrip('/')}/{spec.run.name}")
        try:
            while True:
                place, target = complete_exchange(place), None
                if spec.run.overwrite and place.exists():
                    place, target = place_for_replacement(place), place
                elif not place.make():
                    if not fresh_name:
                        raise _exists(place)
                    spec = spec.named(place.free_name())
                    place = place.sibling(spec.run.name)
                    continue
                directory = cls(place, target)
                if directory._begin(spec):
                    return directory
                if target is not None:
                    raise busy(place.store.where)
        except FinalError:
            raise
        except RunError as error:
            raise InputError(f"{error}, or choose another run.directory") from None
        except OSError as error:
            raise not_written(f"{place.store.where} cannot be made", error, _ELSEWHERE) from None

    @classmethod
    def transient(cls, spill: SpillFolder, rows: RowStream | None = None) -> RunDirectory:
        """Return the directory of a run that is not kept: its files are in a spill folder, and `rows` may take rows."""
        directory = cls(TransientPlace(spill))
        directory.rows = rows
        directory.manifest = {"status": "running", "config_sha256": ""}
        directory._log = CommitLog(directory.store)
        return directory

    def _begin(self, spec: RunSpec) -> bool:
        """Begin in an empty place; return whether no other process began at the same moment."""
        try:
            config = MARK + spec.with_absolute_paths().to_toml()
            self.manifest = first_manifest(spec, config)
            self._place.hold()
            self._place.work_in(spec.memory.spill)
            if self.store.create(CONFIG, config.encode()):  # without a manifest it is no run yet
                self._log = CommitLog(self.store)
                self.save()
                return True
        except BaseException as error:
            with suppress(OSError, InputError, RunError):
                self._place.remove()
            self.close()
            if isinstance(error, OSError):
                raise not_written(f"{self.where} cannot be written", error, _ELSEWHERE) from None
            raise
        self.close()
        return False

    @classmethod
    def reopen(cls, address: Path | str, overrides: Sequence[str] = ()) -> tuple[RunDirectory, RunSpec | None]:
        """Open a run that ended early, and read its config; if the run is finished, return no config.

        Parameters
        ----------
        address
            Its folder, or its URL.
        overrides
            ``"section.key=value"`` each, for the config.

        Raises
        ------
        InputError
            If it is not a run, another process has it, its config was edited, another version wrote what it has
            finished, or something lies in it that no run writes.
        FinalError
            If what it has finished is damaged.
        """
        place = place_at(address)
        with suppress(OSError):
            place = complete_exchange(place)
            new = unfinished_replacement(place)
            place = new if new is not None and not place.exists() else place
        directory = cls(place)
        try:
            return directory, directory._resume(overrides)
        except BaseException as error:
            directory.close()
            if isinstance(error, FileNotFoundError | NotADirectoryError | ValueError):
                raise why_no_run(directory.where, error) from None
            if isinstance(error, OSError):
                what = f"{directory.where}: the run cannot be resumed"
                raise not_written(what, error, "check the folder and its modes") from None
            raise

    def _resume(self, overrides: Sequence[str]) -> RunSpec | None:
        self._place.hold()
        store, there = self.store, self.store.list()
        self._target = replaced_by(self._place)
        if MANIFEST not in there:
            raise FileNotFoundError
        manifest, published = manifest_of(store), any(name.startswith(PUBLISHED) for name in there)
        if manifest["status"] == "done" and published:
            return None
        if CONFIG not in there:
            raise InputError(f"{self.where}: {CONFIG} of this run is gone: restore it, or start a new run")
        config = store.read(CONFIG).decode("utf-8", "replace")
        require_resumable(self.where, manifest, config)
        # Messages name the file, where there is one.
        spec = load_config(store.local(CONFIG) if store.alone else parse_toml(config), overrides, of_run=True)
        self._log = CommitLog(store)
        self._log.claim()
        self.manifest = resumed_manifest(manifest, self._log.last)
        if not store.alone:
            self.save()
        if published:  # it was killed between its last two steps
            store.unpublish()
        store.delete([name for name in there if "/" not in name and name.endswith(".partial") and is_own(name)])
        self._place.work_in(spec.memory.spill)
        return spec

    @property
    def store(self) -> RunStore:
        """The files of the run."""
        return self._place.store

    @property
    def where(self) -> Path | str:
        """What users call the place."""
        return self.store.where

    @property
    def path(self) -> Path:
        """The folder that this process works in."""
        return self.store.folder

    @property
    def recorded(self) -> bool:
        """Whether the run is recorded: one that is not kept is not."""
        return self.store.recorded

    @property
    def total_seconds(self) -> float:
        """Seconds of all attempts that are over."""
        return sum(map(float, self.manifest.get("attempt_seconds", [])))

    @property
    def log(self) -> CommitLog:
        """What is finished."""
        assert self._log is not None, "it was made or opened"
        return self._log

    def replacement_note(self) -> str:
        """Say that a run is to replace this one, and was interrupted; "" if none is."""
        if (new := unfinished_replacement(self._place)) is None:
            return ""
        command = shlex.join(["longwall", "resume", str(new.store.where)])
        return f"another run is to replace this one and is not done: {command} goes on with that one"

    def close(self) -> None:
        """Let other processes have the run; more than once does no harm."""
        self._place.close()
        if self._target is not None:
            self._target.close()

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
        if not self.recorded and not self.store.list():  # it has no tables
            self._finished = True
            return
        if self.recorded:
            write_metrics(metrics, self.path / "metrics.parquet")
            self.store.put_files([file.name for file in sorted(self.path.glob("*.parquet"))])
        results = self._publish()
        self.log.confirm()
        with undisturbed():  # an interrupt would say that the run can be resumed, which is done
            self.manifest |= ended(self.manifest, "done") | {"results": results}
            self.save()
            self._finished = True
            with suppress(OSError, RunError):  # whatever else lies there
                self.store.delete([CHECKPOINT, RESULTS])
            if self._target is not None:
                take_place(self._place, self._target)
                self._place, self._target = self._target, self._place

    def _publish(self) -> dict[str, dict[str, Any]]:
        """Publish the results, and return rows, bytes and checksum of each file, as it is read again."""
        self.store.list(RESULTS)  # refuses what no run writes, which must not become a result
        recorded = self.log.results()
        written = {
            file.name: describe_table(file) for file in (self.path / RESULTS).iterdir() if file.name not in recorded
        }
        found = recorded | written
        self.store.publish(found.keys())
        published = [file | {"name": PUBLISHED + name} for name, file in recorded.items()]
        require_unchanged(self.store, published, self.store.list(PUBLISHED))
        return {name: {key: found[name][key] for key in ("rows", "bytes", "sha256")} for name in sorted(found)}

    def abandon(self, status: str, reason: str, metrics: Metrics) -> bool:
        """Record why the run ended; what it finished stays for `reopen`. Return whether the manifest says so now.

        A run that is done stays done. A run that another process has taken over, and one without a record, are left
        alone.

        Parameters
        ----------
        status
            ``"failed"`` or ``"interrupted"``.
        reason
            For the user, one line.
        metrics
            The events up to here.
        """
        if self._finished or self.log.lost or not self.recorded:
            return False
        saved = False
        self.manifest |= ended(self.manifest, status) | {"reason": reason}
        # The disk, or the connection, may be the reason why the run failed. The manifest says "running" then, so
        # this is not taken for a whole run.
        with suppress(OSError, RunError):
            with suppress(OSError):
                self.log.flush()
            self.log.confirm()
            with suppress(OSError):  # it takes no space, which the rest may lack
                self.store.unpublish()
            self.save()
            saved = True
            write_metrics(metrics, self.path / "metrics.parquet")
            self.store.put_files(["metrics.parquet"])
        return saved

    def discard(self) -> None:
        """Remove the run, and its parent folder if it was made for it: the input was wrong, nothing has run."""
        if not self._finished:
            with suppress(OSError, InputError, RunError):
                self.log.confirm()
                self._place.remove()
        self.close()


def _exists(place: RunPlace) -> InputError:
    """Return the error for a name that is taken."""
    where = place.store.where
    other = f'choose another name: "--set run.name={place.free_name()}"'
    try:
        with suppress(OSError):
            place.hold()
    except InputError as error:  # it must be neither resumed nor replaced now
        return InputError(f"{error}, or {other}")
    finally:
        place.close()
    resume = f"resume it (longwall resume {where}), "
    replace = "replace it (--overwrite, or run.overwrite = true), or "
    ways = {None: "it is not the folder of a run; ", "done": f"the run is finished; {replace}"}
    way = ways.get(status_of(place.store), resume + replace)
    return InputError(f"{where} exists already: {way}{other}")
