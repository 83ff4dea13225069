"""The folder of a run: config, manifest, metrics and results, whole or visibly not.

Result files are written into ``results.partial/``, which becomes ``results/`` in one rename as the last step
but one; the last is the manifest that says ``done``. A run that fails, is interrupted or killed leaves what it
has finished (``results.partial/`` and ``checkpoint/``) for ``longwall resume``, and no ``results/``.

A run that replaces another one works in a folder beside it, see :mod:`longwall.pipeline.run_store.replacement`.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from longwall.pipeline.run_store.commit_log import CommitLog, changed
from longwall.pipeline.run_store.manifest import (
    ended,
    first_manifest,
    read_manifest_of,
    require_resumable,
    resumed_manifest,
)
from longwall.pipeline.run_store.replacement import Replacement, complete
from longwall.pipeline.run_store.run_names import busy, exists, remove_files, survey
from longwall.storage.errors import InputError, naming
from longwall.storage.memory.spill_folder import hold, sync_folder
from longwall.storage.paths import user_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from longwall.pipeline.config import RunSpec
    from longwall.pipeline.execution.environment import Metrics, PatternCount

TOO_LARGE = 1 << 63  # for a column of 64-bit integers
_RESERVE = 2**13  # by which a manifest may grow when a run ends early


class RunDirectory:
    """A run's folder, from its creation to one of its ends: `finish`, `abandon` or `discard`.

    Attributes
    ----------
    path : Path
        The folder itself.
    results : Path
        Where result files are written while the run goes on.
    checkpoint : Path
        Where finished work is recorded while the run goes on.
    manifest : dict
        What ``manifest.json`` will hold; `save` writes it.
    """

    def __init__(self, path: Path, manifest: dict[str, Any]) -> None:
        self.path = path
        self.results = path / "results.partial"
        self.checkpoint = path / "checkpoint"
        self.manifest = manifest
        self._finished = self._made_parent = False
        self._lock: int | None = None
        self._replacement: Replacement | None = None
        self._committed: CommitLog | None = None

    @classmethod
    def create(cls, spec: RunSpec, *, fresh_name: bool = False) -> RunDirectory:
        """Make the folder ``run.directory/run.name`` with its config and first manifest.

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
        path = user_path(Path(spec.run.directory) / spec.run.name).absolute()
        spec.with_absolute_paths().to_toml()  # where it cannot be written down, no folder is made
        try:
            complete(path)
            if spec.run.overwrite and os.path.lexists(path):
                return cls._begin(path, spec, Replacement.of(path))
            while True:
                try:
                    made_parent = _made(path.parent)
                    path.mkdir()
                except FileExistsError:
                    if not path.parent.is_dir():
                        raise InputError(
                            f"{path.parent} is a file, not a folder: choose another run.directory"
                        ) from None
                    if not fresh_name:
                        raise exists(path, free_name(path), _status(path)) from None
                    path = path.with_name(free_name(path))
                    continue
                return cls._begin(path, spec.named(path.name), made_parent=made_parent)
        except OSError as error:
            raise InputError(
                f"{path} cannot be made ({error.strerror or error}): choose another run.directory"
            ) from None

    @classmethod
    def _begin(
        cls, path: Path, spec: RunSpec, replacement: Replacement | None = None, *, made_parent: bool = False
    ) -> RunDirectory:
        """Begin in a folder that was just made, or in that of a replacement."""
        config = spec.with_absolute_paths().to_toml()
        directory = cls(path if replacement is None else replacement.path, first_manifest(spec, config))
        directory._replacement, directory._made_parent = replacement, made_parent
        try:
            directory._hold()
            directory.results.mkdir()
            (directory.path / "config.toml").write_text(config, encoding="utf-8")
            sync_folder(directory.path / "config.toml")
            directory.save()
            sync_folder(path.parent)
        except OSError as error:
            directory.discard()
            raise InputError(f"{path} cannot be written ({error.strerror}): choose another run.directory") from None
        except KeyboardInterrupt:
            directory.discard()
            raise
        return directory

    @classmethod
    def reopen(cls, path: Path) -> RunDirectory:
        """Open the folder of a run that ended early.

        Raises
        ------
        InputError
            If it is not the folder of a run, the run is finished or going on, its config was edited, another
            version wrote what it has finished, or there is something in it that no run writes.
        """
        path = user_path(path).absolute()
        with suppress(OSError):
            path = complete(path)
        directory = cls(path, {})
        try:
            directory._hold()
            survey(path)
            directory._replacement = Replacement.going_on(path)
            manifest = read_manifest_of(path)
            config = (path / "config.toml").read_text(encoding="utf-8")
            there = (path / "results").is_dir()
            if manifest["status"] == "done" and there:
                raise InputError(f"{path}: this run is finished, its results are in {path / 'results'}")
            require_resumable(path, manifest, config)
            if there:  # it was killed between its last two steps
                (path / "results").rename(directory.results)
            directory.results.mkdir(exist_ok=True)
        except BlockingIOError:
            directory.close()
            raise busy(path) from None
        except (FileNotFoundError, NotADirectoryError, ValueError):
            directory.close()
            raise InputError(f"{path}: this is not the folder of a run, which holds manifest.json") from None
        except OSError as error:
            directory.close()
            raise InputError(f"{path}: the run cannot be resumed ({error.strerror or error})") from None
        except BaseException:
            directory.close()
            raise
        directory.manifest = resumed_manifest(manifest)
        return directory

    @property
    def where(self) -> Path | str:
        """What users call the folder."""
        return self.path

    def open_checkpoint(self) -> CommitLog:
        """Read what the run has finished; see `longwall.pipeline.run_store.commit_log.CommitLog`."""
        self._committed = CommitLog(self.checkpoint)
        return self._committed

    def _hold(self) -> None:
        """Keep other processes away until this one closes the folder or dies."""
        self._lock = hold(self.path)

    def close(self) -> None:
        """Let other processes have the folder; more than once does no harm."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        if self._replacement is not None:
            self._replacement.close()

    @property
    def has_finished_work(self) -> bool:
        """Whether `reopen` would find something that need not be done again."""
        return (self.checkpoint / "journal.jsonl").exists()

    def manifest_text(self) -> str:
        """The manifest as JSON."""
        return json.dumps(self.manifest, indent=2) + "\n"

    def save(self) -> None:
        """Write the manifest, whole or not at all."""
        temporary, content = self.path / "manifest.json.tmp", self.manifest_text().encode()
        with naming(temporary), _opened(temporary) as file:
            file.write(content)
            file.truncate()
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(self.path / "manifest.json")
        with suppress(OSError):  # it is written; a crash of the machine may bring the one before it back
            sync_folder(self.path)
        if self.manifest["status"] == "running":
            # Space for the next one, which may have to say that the disk is full.
            with naming(temporary), _opened(temporary) as file:
                os.posix_fallocate(file.fileno(), 0, _RESERVE + len(content))

    def finish(self, metrics: Metrics) -> None:
        """Make the results appear and the manifest say ``done``.

        Raises
        ------
        OSError
            If the disk is full or the folder was taken away; the run is not done then.
        FinalError
            If a finished file was changed since it was recorded.
        InputError
            If there is something in the folder that no run writes.
        RunError
            If the run is done, and cannot take the place of the one that it replaces.
        """
        write_metrics(metrics, self.path / "metrics.parquet")
        recorded = {} if self._committed is None else {Path(one["name"]).name: one for one in self._committed.results()}
        survey(self.path)
        found = {file.name: describe(file) for file in sorted(self.results.iterdir())}
        require_unchanged(self.results, recorded, found)
        sync_folder(self.results)
        self.results.rename(self.path / "results")
        sync_folder(self.path)  # the results must be there before anything says so
        self.manifest |= ended("done") | {"results": found}
        self.save()
        self._finished = True
        with suppress(OSError, InputError):  # the run is done, whatever else lies there
            remove_files(self.path, "checkpoint")
        if self._replacement is not None:
            self.path = self._replacement.take_place()

    def abandon(self, status: str, reason: str, metrics: Metrics) -> None:
        """Record why the run ended; what it finished stays for `reopen`. A run that is done stays so.

        Parameters
        ----------
        status
            ``"failed"`` or ``"interrupted"``.
        reason
            One sentence.
        metrics
            The events up to here.
        """
        if self._finished:
            return
        self.manifest |= ended(status) | {"reason": reason}
        with suppress(OSError):  # it takes no space, which the rest may lack
            (self.path / "results").rename(self.results)
        try:
            self.save()
            write_metrics(metrics, self.path / "metrics.parquet")
        except OSError:
            # The disk may be the reason why the run failed. The first manifest says "running": nobody takes this
            # for a whole run.
            return

    def discard(self) -> None:
        """Remove the folder, and its parent if it was made for it: the input was wrong, nothing has run."""
        if not self._finished:
            with suppress(OSError, InputError):
                remove_files(self.path)
                self.path.rmdir()
                if self._made_parent:
                    self.path.parent.rmdir()
        self.close()


def _made(folder: Path) -> bool:
    """Make a folder, unless it is there; return whether it was made."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        if not folder.is_dir():
            raise
        return False
    return True


def _status(path: Path) -> str | None:
    """Return what the manifest of a run says; None where there is none that can be read."""
    try:
        status: str = read_manifest_of(path)["status"]
    except (OSError, ValueError):
        return None
    return status


def _opened(path: Path) -> BinaryIO:
    """Open a file to be written, which keeps the space that it has."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o666), "wb")


def require_unchanged(
    where: Path | str, recorded: Mapping[str, Mapping[str, Any]], found: Mapping[str, Mapping[str, Any]]
) -> None:
    """See that finished files are what commits say of them.

    Parameters
    ----------
    where
        Their folder.
    recorded
        Name -> what a commit says of the file.
    found
        Name -> what `describe` gives of it.

    Raises
    ------
    FinalError
        If one was changed, or is gone.
    """
    for name, file in recorded.items():
        there = found.get(name)
        if there is None or any(there[key] != file[key] for key in ("rows", "bytes", "sha256")):
            raise changed(f"{where}/{name}")


def free_name(path: Path) -> str:
    """Return the first of ``name-2``, ``name-3``, ... that does not exist beside `path`."""
    number = 2
    while os.path.lexists(path.with_name(f"{path.name}-{number}")):
        number += 1
    return f"{path.name}-{number}"


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


def describe(file: Path) -> dict[str, Any]:
    """Return rows, bytes and checksum of a result file, after it has reached the disk.

    Raises
    ------
    FinalError
        If it is damaged.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with file.open("rb") as stream:
        os.fsync(stream.fileno())
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
        try:
            rows = pq.read_metadata(stream).num_rows
        except pa.ArrowException:
            raise changed(str(file)) from None
        return {"rows": rows, "bytes": os.fstat(stream.fileno()).st_size, "sha256": digest}


def _fitting(figure: Any) -> Any:
    """A figure of the metrics, None where its column cannot hold it: a run is not lost for it."""
    return None if isinstance(figure, int) and figure >= TOO_LARGE else figure
