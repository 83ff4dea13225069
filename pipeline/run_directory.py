"""The folder of a run: config, manifest, metrics and results, whole or visibly not.

Result files are written into ``results.partial/``, which becomes ``results/`` in one rename as the last step
but one; the last is the manifest that says ``done``. A run that fails, is interrupted or killed leaves what it
has finished (``results.partial/`` and ``checkpoint/``) for ``longwall resume``, and no ``results/``.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import shutil
import sys
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longwall.pipeline.checkpoint import FORMAT, Checkpoint
from longwall.storage.errors import InputError
from longwall.storage.spill import sync_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longwall.pipeline.config import RunSpec
    from longwall.pipeline.context import Metrics, PatternCount

TOO_LARGE = 1 << 63  # for a column of 64-bit integers
_LIBRARIES = ("numpy", "numba", "pyarrow", "numcodecs", "cupy-cuda13x", "cupy-cuda12x")


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
        self._finished = False
        self._lock: int | None = None

    @classmethod
    def create(cls, spec: RunSpec) -> RunDirectory:
        """Make the folder ``run.directory/run.name`` with its config and first manifest.

        Raises
        ------
        InputError
            If it exists, or cannot be made or written.
        """
        path = Path(spec.run.directory) / spec.run.name
        config = spec.located().to_toml()
        directory = cls(path, first_manifest(spec, config))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.mkdir()
        except FileExistsError:
            if path.parent.is_dir():
                other = f'"--set run.name={free_name(path)}"'
                raise InputError(
                    f"{path} exists already: remove it, go on with it (longwall resume {path}), or choose another "
                    f"name: {other}"
                ) from None
            raise InputError(f"{path.parent} is a file, not a folder: choose another run.directory") from None
        except OSError as error:
            raise InputError(f"{path} cannot be made ({error.strerror}): choose another run.directory") from None
        try:
            directory._hold()
            directory.results.mkdir()
            (path / "config.toml").write_text(config, encoding="utf-8")
            sync_folder(path / "config.toml")
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
            If it is not the folder of a run, the run is finished or going on, its config was edited, or another
            version wrote what it has finished.
        """
        directory = cls(path, {})
        try:
            directory._hold()
            manifest = json.loads((path / "manifest.json").read_bytes())
            status = manifest["status"]
            config = (path / "config.toml").read_text(encoding="utf-8")
        except BlockingIOError:
            raise InputError(f"{path}: another process is busy with this run; wait for it or stop it") from None
        except (OSError, ValueError, KeyError, TypeError):
            directory.close()
            raise InputError(f"{path}: this is not the folder of a run, which holds manifest.json") from None
        directory.manifest = manifest
        if status == "done" and (path / "results").exists():
            directory.close()
            raise InputError(f"{path}: this run is finished, its results are in {path / 'results'}")
        try:
            require_resumable(path, manifest, config)
        except InputError:
            directory.close()
            raise
        if (path / "results").exists():  # it was killed between its last two steps
            (path / "results").rename(directory.results)
        directory.results.mkdir(exist_ok=True)
        directory.manifest = resumed_manifest(manifest)
        return directory

    @property
    def where(self) -> Path | str:
        """What users call the folder."""
        return self.path

    def open_checkpoint(self) -> Checkpoint:
        """Read what the run has finished; see `longwall.pipeline.checkpoint.Checkpoint`."""
        return Checkpoint(self.checkpoint)

    def _hold(self) -> None:
        """Keep other processes away until this one closes the folder or dies."""
        lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise
        self._lock = lock

    def close(self) -> None:
        """Let other processes have the folder; more than once does no harm."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @property
    def has_finished_work(self) -> bool:
        """Whether `reopen` would find something that need not be done again."""
        return (self.checkpoint / "journal.jsonl").exists()

    def manifest_text(self) -> str:
        """The manifest as JSON."""
        return json.dumps(self.manifest, indent=2) + "\n"

    def save(self) -> None:
        """Write the manifest, whole or not at all."""
        temporary = self.path / "manifest.json.tmp"
        with temporary.open("w", encoding="utf-8") as file:
            file.write(self.manifest_text())
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(self.path / "manifest.json")
        with suppress(OSError):  # it is written; a crash of the machine may bring the one before it back
            sync_folder(self.path)

    def finish(self, metrics: Metrics) -> None:
        """Make the results appear and the manifest say ``done``.

        Raises
        ------
        OSError
            If the disk is full or the folder was taken away; the run is not done then.
        """
        write_metrics(metrics, self.path / "metrics.parquet")
        results = {file.name: describe(file) for file in sorted(self.results.iterdir())}
        sync_folder(self.results)
        self.results.rename(self.path / "results")
        sync_folder(self.path)  # the results must be there before anything says so
        self.manifest |= ended("done") | {"results": results}
        self.save()
        self._finished = True
        shutil.rmtree(self.checkpoint, ignore_errors=True)

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
        try:
            self.save()
            if (self.path / "results").exists():
                (self.path / "results").rename(self.results)
            write_metrics(metrics, self.path / "metrics.parquet")
        except OSError:
            # The disk may be the reason why the run failed. The first manifest says "running": nobody takes this
            # for a whole run.
            return

    def discard(self) -> None:
        """Remove the folder, and its parent if that is empty: the input was wrong, nothing has run."""
        self.close()
        shutil.rmtree(self.path, ignore_errors=True)
        try:
            self.path.parent.rmdir()
        except OSError:
            return


def first_manifest(spec: RunSpec, config: str) -> dict[str, Any]:
    """What the manifest of a run says as it begins; `config` is the text of its config."""
    return {
        "status": "running",
        "workload": spec.workload.kind,
        "argv": sys.argv,
        "versions": _versions(),
        "checkpoint_format": FORMAT,
        "config_sha256": _sha256(config),
        "started": _now(),
    }


def require_resumable(where: Path | str, manifest: dict[str, Any], config: str) -> None:
    """See that a run that ended early can go on.

    Raises
    ------
    InputError
        If its config was edited, or another version wrote what it has finished.
    """
    written = manifest.get("checkpoint_format")
    if written != FORMAT:
        what = f"its checkpoint has another format ({written}, this version of Longwall has {FORMAT})"
    elif _sha256(config) != manifest.get("config_sha256"):
        what = "its config.toml was changed since it began"
    else:
        return
    raise InputError(f"{where}: the run cannot be resumed, {what}; start a new run")


def resumed_manifest(manifest: dict[str, Any]) -> dict[str, Any]:
    """What the manifest of a run says when it goes on."""
    kept = {key: value for key, value in manifest.items() if key != "reason"}
    return kept | {"status": "running", "resumed": [*manifest.get("resumed", []), _now()]}


def ended(status: str) -> dict[str, Any]:
    """What the manifest says of the end of a run: ``"done"``, ``"failed"`` or ``"interrupted"``."""
    return {"status": status, "finished": _now()}


def free_name(path: Path) -> str:
    """Return the first of ``name-2``, ``name-3``, ... that does not exist beside `path`."""
    number = 2
    while path.with_name(f"{path.name}-{number}").exists():
        number += 1
    return f"{path.name}-{number}"


def write_counts(counts: Sequence[PatternCount], path: Path) -> None:
    """Write ``counts.parquet``: pattern (string), labels (list of int32), count, support (int64), edge_labels."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema(
        [
            ("pattern", pa.string()),
            ("labels", pa.list_(pa.int32())),
            ("count", pa.int64()),
            ("support", pa.int64()),
            ("edge_labels", pa.list_(pa.int32())),
        ]
    )
    columns = {
        "pattern": [one.pattern for one in counts],
        "labels": [one.labels for one in counts],
        "count": [one.count for one in counts],
        "support": [one.support for one in counts],
        "edge_labels": [one.edge_labels for one in counts],
    }
    pq.write_table(pa.table(columns, schema=schema), path)


def write_metrics(metrics: Metrics, path: Path) -> None:
    """Write ``metrics.parquet``: one row per stage event, columns as in `MetricsRow`; null what does not fit them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from longwall.pipeline.context import MetricsRow

    types = {"stage": pa.string(), "seconds": pa.float64(), "predicted": pa.float64()}
    schema = pa.schema([(name, types.get(name, pa.int64())) for name in MetricsRow._fields])
    rows = [{name: _fitting(figure) for name, figure in row._asdict().items()} for row in metrics.rows()]
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)


def describe(file: Path) -> dict[str, Any]:
    """Return rows, bytes and checksum of a result file, after it has reached the disk."""
    import pyarrow.parquet as pq

    with file.open("rb") as stream:
        os.fsync(stream.fileno())
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    rows = pq.read_metadata(file).num_rows
    return {"rows": rows, "bytes": file.stat().st_size, "sha256": digest}


def _fitting(figure: Any) -> Any:
    """A figure of the metrics, None where its column cannot hold it: a run is not lost for it."""
    return None if isinstance(figure, int) and figure >= TOO_LARGE else figure


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _versions() -> dict[str, str]:
    from longwall import __version__

    versions = {"longwall": __version__, "python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
