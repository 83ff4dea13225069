"""The folder of a run: config, manifest, metrics and results, whole or visibly not.

Result files are written into ``results.partial/``, which becomes ``results/`` in one rename as the last step
but one; the last is the manifest that says ``done``. A run that fails or is interrupted leaves its config,
its metrics and a manifest that says so, and no results.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longwall.storage.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longwall.pipeline.config import RunSpec
    from longwall.pipeline.context import Metrics, PatternCount

_LIBRARIES = ("numpy", "numba", "pyarrow", "zarr", "cupy-cuda13x", "cupy-cuda12x")


class RunDirectory:
    """A run's folder, from its creation to one of its ends: `finish`, `abandon` or `discard`.

    Attributes
    ----------
    path : Path
        The folder itself.
    results : Path
        Where result files are written while the run goes on.
    manifest : dict
        What ``manifest.json`` will hold; `save` writes it.
    """

    def __init__(self, path: Path, spec: RunSpec) -> None:
        self.path = path
        self.results = path / "results.partial"
        self.manifest: dict[str, Any] = {
            "status": "running",
            "workload": spec.workload.kind,
            "argv": sys.argv,
            "versions": _versions(),
            "started": _now(),
        }

    @classmethod
    def create(cls, spec: RunSpec) -> RunDirectory:
        """Make the folder ``run.directory/run.name`` with its config and first manifest.

        Raises
        ------
        InputError
            If it exists, or cannot be made or written.
        """
        path = spec.run.directory / spec.run.name
        directory = cls(path, spec)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.mkdir()
        except FileExistsError:
            if path.parent.is_dir():
                other = f'"--set run.name={free_name(path)}"'
                raise InputError(f"{path} exists already: remove it, or choose another name: {other}") from None
            raise InputError(f"{path.parent} is a file, not a folder: choose another run.directory") from None
        except OSError as error:
            raise InputError(f"{path} cannot be made ({error.strerror}): choose another run.directory") from None
        try:
            directory.results.mkdir()
            (path / "config.toml").write_text(spec.to_toml(), encoding="utf-8")
            directory.save()
        except OSError as error:
            directory.discard()
            raise InputError(f"{path} cannot be written ({error.strerror}): choose another run.directory") from None
        except KeyboardInterrupt:
            directory.discard()
            raise
        return directory

    def save(self) -> None:
        """Write the manifest, whole or not at all."""
        temporary = self.path / "manifest.json.tmp"
        with temporary.open("w", encoding="utf-8") as file:
            json.dump(self.manifest, file, indent=2)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(self.path / "manifest.json")

    def finish(self, metrics: Metrics) -> None:
        """Make the results appear and the manifest say ``done``.

        Raises
        ------
        OSError
            If the disk is full or the folder was taken away; the run is not done then.
        """
        write_metrics(metrics, self.path / "metrics.parquet")
        results = {file.name: _describe(file) for file in sorted(self.results.iterdir())}
        self.results.rename(self.path / "results")
        _sync_folder(self.path)
        self.manifest |= {"status": "done", "finished": _now(), "results": results}
        self.save()

    def abandon(self, status: str, reason: str, metrics: Metrics) -> None:
        """Remove what was written of the results, and record why the run ended.

        Parameters
        ----------
        status
            ``"failed"`` or ``"interrupted"``.
        reason
            One sentence.
        metrics
            The events up to here.
        """
        for folder in (self.results, self.path / "results"):
            shutil.rmtree(folder, ignore_errors=True)
        self.manifest |= {"status": status, "reason": reason, "finished": _now()}
        try:
            self.save()
            write_metrics(metrics, self.path / "metrics.parquet")
        except OSError:
            # The disk may be the reason why the run failed. The first manifest says "running" and there are
            # no results: nobody takes this for a whole run.
            return

    def discard(self) -> None:
        """Remove the folder, and its parent if that is empty: the input was wrong, nothing has run."""
        shutil.rmtree(self.path, ignore_errors=True)
        try:
            self.path.parent.rmdir()
        except OSError:
            return


def free_name(path: Path) -> str:
    """Return the first of ``name-2``, ``name-3``, ... that does not exist beside `path`."""
    number = 2
    while path.with_name(f"{path.name}-{number}").exists():
        number += 1
    return f"{path.name}-{number}"


def write_counts(counts: Sequence[PatternCount], path: Path) -> None:
    """Write ``counts.parquet``: pattern (string), labels (list of int32), count and support (int64)."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema(
        [
            ("pattern", pa.string()),
            ("labels", pa.list_(pa.int32())),
            ("count", pa.int64()),
            ("support", pa.int64()),
        ]
    )
    columns = {
        "pattern": [one.pattern for one in counts],
        "labels": [one.labels for one in counts],
        "count": [one.count for one in counts],
        "support": [one.support for one in counts],
    }
    pq.write_table(pa.table(columns, schema=schema), path)


def write_metrics(metrics: Metrics, path: Path) -> None:
    """Write ``metrics.parquet``: one row per stage event, columns as in `MetricsRow`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from longwall.pipeline.context import MetricsRow

    types = {"stage": pa.string(), "seconds": pa.float64()}
    schema = pa.schema([(name, types.get(name, pa.int64())) for name in MetricsRow._fields])
    rows = [row._asdict() for row in metrics.rows()]
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)


def _describe(file: Path) -> dict[str, Any]:
    """Return rows, bytes and checksum of a result file, after it has reached the disk."""
    import pyarrow.parquet as pq

    with file.open("rb") as stream:
        os.fsync(stream.fileno())
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    rows = pq.read_metadata(file).num_rows
    return {"rows": rows, "bytes": file.stat().st_size, "sha256": digest}


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
