"""The folder of a run at a URL: the same files as in :mod:`longwall.pipeline.run_directory`, and the same promises.

This process works in a local folder, which is gone afterwards; what shall stay is sent to the URL. The manifest that
says ``done`` is what makes a result: it is written when all results are in ``results/``.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from longwall.pipeline.config import load_config
from longwall.pipeline.run_directory import (
    RunDirectory,
    describe,
    ended,
    first_manifest,
    require_resumable,
    resumed_manifest,
    write_metrics,
)
from longwall.pipeline.url_checkpoint import UrlCheckpoint
from longwall.pipeline.url_journal import UrlJournal
from longwall.storage.errors import InputError, RunError
from longwall.storage.mirror import Mirror
from longwall.storage.spill import SpillFolder

if TYPE_CHECKING:
    from longwall.pipeline.config import RunSpec
    from longwall.pipeline.context import Metrics


class UrlRunDirectory(RunDirectory):
    """See :class:`longwall.pipeline.run_directory.RunDirectory`.

    Parameters
    ----------
    journal
        Of the run, at the URL.
    manifest
        Of the run.
    spill
        Where the local folder lies; closed with the run.

    Attributes
    ----------
    path
        The local folder.
    """

    def __init__(self, journal: UrlJournal, manifest: dict[str, Any], spill: SpillFolder):
        super().__init__(spill.path / "run", manifest | {"owner": journal.owner})
        self._journal, self._mirror, self._spill = journal, journal.mirror, spill
        self._checkpoint: UrlCheckpoint | None = None
        self.results.mkdir(parents=True)

    @classmethod
    def create(cls, spec: RunSpec) -> UrlRunDirectory:
        """Begin a run at the URL ``run.directory/run.name``, with its config and first manifest.

        Raises
        ------
        InputError
            If there is something, or nothing can be written.
        """
        mirror = Mirror(f"{str(spec.run.directory).rstrip('/')}/{spec.run.name}")
        config = spec.located().to_toml()
        try:
            if mirror.sizes():
                raise _exists(mirror)
            directory = cls(UrlJournal(mirror), first_manifest(spec, config), _local(spec))
            try:
                mirror.write("config.toml", config.encode())
                if mirror.create("manifest.json", directory.manifest_text().encode()):
                    return directory
            except BaseException:
                directory.close()
                with suppress(RunError):
                    mirror.remove_folder()
                raise
            directory.close()
        except RunError as error:
            raise InputError(f"{error}, or choose another run.directory") from None
        raise _exists(mirror)  # for a moment

    @classmethod
    def resume(cls, url: str, overrides: Sequence[str]) -> tuple[UrlRunDirectory, RunSpec]:
        """Open the folder of a run that ended early, and its config; see `RunDirectory.reopen`.

        There is no lock at a URL: where another process is still busy with the run, it commits no more.

        Raises
        ------
        InputError
            If there is no such run, or it cannot go on.
        """
        mirror = Mirror(url)
        try:
            there = mirror.sizes()
            if "manifest.json" not in there:
                raise ValueError
            manifest = json.loads(mirror.read("manifest.json"))
            config = mirror.read("config.toml").decode()
            finished = manifest["status"] == "done"
        except (ValueError, KeyError, TypeError):
            raise InputError(f"{mirror.url}: this is not the folder of a run, which holds manifest.json") from None
        if finished:
            raise InputError(f"{mirror.url}: this run is finished, its results are in {mirror.url}/results")
        require_resumable(mirror.url, manifest, config)
        spec = load_config(tomllib.loads(config), overrides)
        journal = UrlJournal(mirror)
        journal.take_over()
        directory = cls(journal, resumed_manifest(manifest), _local(spec))
        try:
            directory.save()
            mirror.remove([name for name in there if re.fullmatch(r"[^/]+\.partial", name)])  # it was killed at these
            mirror.remove_folder("results")  # or in its last steps
        except BaseException:
            directory.close()
            raise
        return directory, spec

    @property
    def where(self) -> str:
        """The URL."""
        return self._mirror.url

    @property
    def has_finished_work(self) -> bool:
        """See `RunDirectory.has_finished_work`."""
        return self._journal.begun

    def open_checkpoint(self) -> UrlCheckpoint:
        """Read what the run has finished; see `UrlCheckpoint`."""
        self._checkpoint = UrlCheckpoint(self.checkpoint, self._journal)
        return self._checkpoint

    def close(self) -> None:
        """Remove the local folder; more than once does no harm."""
        self._spill.close()

    def save(self) -> None:
        """Write the manifest."""
        self._mirror.write("manifest.json", self.manifest_text().encode())

    def finish(self, metrics: Metrics) -> None:
        """Make the results appear and the manifest say ``done``.

        Raises
        ------
        RunError
            If the URL cannot be written, or another process goes on with the run; it is not done then.
        """
        assert self._checkpoint is not None, "a run that is finished has begun"
        self._journal.confirm()
        write_metrics(metrics, self.path / "metrics.parquet")
        for file in sorted(self.path.glob("*.parquet")):
            self._mirror.send(file, file.name)
        there = {PurePosixPath(file["name"]).name: file for file in self._checkpoint.results()}
        self._mirror.copy([(file["name"], f"results/{name}") for name, file in there.items()])
        here = {file.name: file for file in self.results.iterdir()}
        for name, file in here.items():
            self._mirror.send(file, f"results/{name}")
        told = {name: {key: file[key] for key in ("rows", "bytes", "sha256")} for name, file in there.items()}
        told |= {name: describe(file) for name, file in here.items()}
        self._journal.confirm()
        self.manifest |= ended("done") | {"results": dict(sorted(told.items()))}
        self.save()
        self._finished = True
        with suppress(RunError):  # the run is done, whatever else lies there
            self._mirror.remove_folder("checkpoint")
            self._mirror.remove_folder("results.partial")

    def abandon(self, status: str, reason: str, metrics: Metrics) -> None:
        """Record why the run ended; see `RunDirectory.abandon`. The run of another process is left alone."""
        if self._finished or self._journal.lost:
            return
        self.manifest |= ended(status) | {"reason": reason}
        with suppress(RunError, OSError):  # the connection may be the reason why the run failed
            self._journal.confirm()
            self.save()
            self._mirror.remove_folder("results")
            write_metrics(metrics, self.path / "metrics.parquet")
            self._mirror.send(self.path / "metrics.parquet", "metrics.parquet")

    def discard(self) -> None:
        """Remove what is at the URL: the input was wrong, nothing has run."""
        self.close()
        with suppress(RunError):
            self._journal.confirm()
            self._mirror.remove_folder()


def _local(spec: RunSpec) -> SpillFolder:
    return SpillFolder(
        spec.memory.spill, advice="choose another memory.spill, where a run at a URL has its files first"
    )


def _exists(mirror: Mirror) -> InputError:
    number = 2
    while Mirror(f"{mirror.url}-{number}").sizes():
        number += 1
    name = PurePosixPath(mirror.url).name
    return InputError(
        f"{mirror.url} exists already: remove it, go on with it (longwall resume {mirror.url}), or choose another "
        f'name: "--set run.name={name}-{number}"'
    )
