"""The folder of a run at a URL: the same files and promises as :mod:`longwall.pipeline.run_store.run_directory`.

This process works in a local folder, which is gone afterwards; what shall stay is sent to the URL. The manifest that
says ``done`` is what makes a result: it is written when all results are in ``results/``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from longwall.pipeline.config import load_config
from longwall.pipeline.run_store.commit_log import RESULTS
from longwall.pipeline.run_store.manifest import (
    ended,
    first_manifest,
    read_manifest,
    require_resumable,
    resumed_manifest,
)
from longwall.pipeline.run_store.run_directory import RunDirectory, describe, require_unchanged, write_metrics
from longwall.pipeline.run_store.run_names import exists, is_own, require_own
from longwall.pipeline.run_store.url_checkpoint import UrlCheckpoint
from longwall.pipeline.run_store.url_journal import UrlJournal
from longwall.pipeline.run_store.url_replacement import complete, remove_run, replacement_of, status_of
from longwall.storage.concurrency import core_count, map_ordered
from longwall.storage.errors import InputError, RunError
from longwall.storage.memory.spill_folder import SpillFolder
from longwall.storage.remote.remote_folder import RemoteFolder

if TYPE_CHECKING:
    from longwall.pipeline.config import RunSpec
    from longwall.pipeline.execution.environment import Metrics

_FLEETING = frozenset({"memory"})
"""File systems whose files are gone when the process ends."""


class UrlRunDirectory(RunDirectory):
    """See :class:`longwall.pipeline.run_store.run_directory.RunDirectory`.

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
        self.results.mkdir(parents=True)

    @classmethod
    def create(cls, spec: RunSpec, *, fresh_name: bool = False) -> UrlRunDirectory:
        """Begin a run at the URL ``run.directory/run.name``, with its config and first manifest.

        Parameters
        ----------
        spec
            The config.
        fresh_name
            Whether the run takes another name where there is one of this name.

        Raises
        ------
        InputError
            If there is something, or nothing can be written.
        """
        mirror = _mirror(f"{str(spec.run.directory).rstrip('/')}/{spec.run.name}")
        try:
            while True:
                mirror = complete(mirror)
                there = mirror.sizes()
                if there and spec.run.overwrite:
                    mirror = replacement_of(mirror)
                elif there and fresh_name:
                    spec = spec.named(_free_name(mirror))
                    mirror = RemoteFolder(f"{str(spec.run.directory).rstrip('/')}/{spec.run.name}")
                    continue
                elif there:
                    raise exists(mirror.url, _free_name(mirror), status_of(mirror, there))
                if (directory := cls._begin_at(mirror, spec)) is not None:
                    return directory
                if not fresh_name:  # another process began at the same moment
                    raise exists(mirror.url, _free_name(mirror), "running")
        except RunError as error:
            raise InputError(f"{error}, or choose another run.directory") from None

    @classmethod
    def _begin_at(cls, mirror: RemoteFolder, spec: RunSpec) -> UrlRunDirectory | None:
        """Begin where there is nothing; None where another process was faster."""
        config = spec.with_absolute_paths().to_toml()
        directory = cls(UrlJournal(mirror), first_manifest(spec, config), _local(spec))
        try:
            if mirror.create("config.toml", config.encode()):  # without a manifest it is no run yet
                mirror.write("manifest.json", directory.manifest_text().encode())
                return directory
        except BaseException:
            directory.close()
            with suppress(RunError):
                remove_run(mirror)
            raise
        directory.close()
        return None

    @classmethod
    def resume(cls, url: str, overrides: Sequence[str]) -> tuple[UrlRunDirectory, RunSpec]:
        """Open the folder of a run that ended early, and its config; see `RunDirectory.reopen`.

        There is no lock at a URL: where another process is still busy with the run, it commits no more.

        Raises
        ------
        InputError
            If there is no such run, or it cannot go on.
        """
        mirror = complete(_mirror(url))
        there = mirror.sizes()
        try:
            if not {"manifest.json", "config.toml"} <= there.keys():
                raise ValueError
            manifest = read_manifest(mirror.read("manifest.json"))
            config = mirror.read("config.toml").decode()
        except ValueError:
            raise InputError(f"{mirror.url}: this is not the folder of a run, which holds manifest.json") from None
        if manifest["status"] == "done":
            raise InputError(f"{mirror.url}: this run is finished, its results are in {mirror.url}/results")
        require_own(mirror.url, there)
        require_resumable(mirror.url, manifest, config)
        spec = load_config(tomllib.loads(config), overrides)
        journal = UrlJournal(mirror)
        journal.take_over()
        directory = cls(journal, resumed_manifest(manifest), _local(spec))
        try:
            directory.save()
            # It was killed at these, or in its last steps.
            left = [name for name in there if re.fullmatch(r"[^/]+\.partial|results/.*", name)]
            mirror.remove([name for name in left if is_own(name)])
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
        found = UrlCheckpoint(self.checkpoint, self._journal)
        self._committed = found
        return found

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
        assert self._committed is not None, "a run that is finished has begun"
        self._journal.confirm()
        write_metrics(metrics, self.path / "metrics.parquet")
        for file in sorted(self.path.glob("*.parquet")):
            self._mirror.send(file, file.name)
        recorded = {PurePosixPath(file["name"]).name: file for file in self._committed.results()}
        self._mirror.copy([(file["name"], f"results/{name}") for name, file in recorded.items()])
        found = self._copied(recorded)
        require_unchanged(f"{self._mirror.url}/{RESULTS}", recorded, found)
        for file in sorted(self.results.iterdir()):
            self._mirror.send(file, f"results/{file.name}")
            found[file.name] = describe(file)
        self._journal.confirm()
        self.manifest |= ended("done") | {"results": dict(sorted(found.items()))}
        self.save()
        self._finished = True
        with suppress(RunError):  # the run is done, whatever else lies there
            remove_run(self._mirror, ("checkpoint/", RESULTS))
        self._mirror = complete(self._mirror)

    def _copied(self, recorded: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """What there is of the results that were recorded, as it is read again."""
        sizes = self._mirror.sizes("results")

        def described(name: str) -> dict[str, Any]:
            size = sizes.get(f"results/{name}", 0)
            return {
                "rows": recorded[name]["rows"],
                "bytes": size,
                "sha256": self._mirror.digest(f"results/{name}", size),
            }

        return dict(zip(recorded, map_ordered(described, recorded, core_count()), strict=True))

    def abandon(self, status: str, reason: str, metrics: Metrics) -> None:
        """Record why the run ended; see `RunDirectory.abandon`. The run of another process is left alone."""
        if self._finished or self._journal.lost:
            return
        self.manifest |= ended(status) | {"reason": reason}
        with suppress(RunError, OSError):  # the connection may be the reason why the run failed
            self._journal.confirm()
            self.save()
            remove_run(self._mirror, ("results/",))
            write_metrics(metrics, self.path / "metrics.parquet")
            self._mirror.send(self.path / "metrics.parquet", "metrics.parquet")

    def discard(self) -> None:
        """Remove what is at the URL: the input was wrong, nothing has run."""
        self.close()
        if not self._finished:
            with suppress(RunError, InputError):
                self._journal.confirm()
                remove_run(self._mirror)


def _local(spec: RunSpec) -> SpillFolder:
    return SpillFolder(
        spec.memory.spill, advice="choose another memory.spill, where a run at a URL has its files first"
    )


def _mirror(url: str) -> RemoteFolder:
    """The folder of a run at a URL."""
    mirror = RemoteFolder(url)
    if not _FLEETING.isdisjoint(mirror.protocols):
        raise InputError(f"{url}: what is written there is gone when this process ends: choose another run.directory")
    return mirror


def _free_name(mirror: RemoteFolder) -> str:
    """The first of ``name-2``, ``name-3``, ... that does not exist beside a run."""
    number = 2
    while RemoteFolder(f"{mirror.url}-{number}").sizes():
        number += 1
    return f"{PurePosixPath(mirror.url).name}-{number}"
