"""The manifest of a run, from its beginning to its end."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longwall.pipeline.run_store.run_names import CONFIG, MANIFEST
from longwall.storage.errors import InputError
from longwall.storage.remote.urls import is_url
from longwall.storage.system.machine import machine_facts
from longwall.storage.system.version import longwall_version, source_commit

if TYPE_CHECKING:
    from longwall.pipeline.config import RunSpec
    from longwall.pipeline.run_store.store import RunStore

MARK = "# The config of this run, written by Longwall.\n"
"""The beginning of a run's config, which distinguishes it from other files of that name."""
_MOST_BYTES = 1 << 28  # a million result files
FORMAT = 5  # of the commit log, and of what its numbers mean
_LIBRARIES = ("numpy", "numba", "pyarrow", "zarr", "numcodecs", "cupy-cuda13x", "cupy-cuda12x")


def first_manifest(spec: RunSpec, config: str) -> dict[str, Any]:
    """Return the manifest of a run that begins; `config` is the text of its config."""
    return {
        "status": "running",
        "workload": spec.workload.kind,
        "argv": sys.argv,
        "versions": dict(_versions()),
        "machine": machine_facts(),
        "checkpoint_format": FORMAT,
        "config_sha256": _sha256(config),
        "started": _now(),
    }


def status_of(store: RunStore) -> str | None:
    """Return the status that the manifest of a run has; None where there is no manifest."""
    if MANIFEST not in store.list():
        return None
    try:
        status: str = manifest_of(store)["status"]
    except (OSError, ValueError):
        return None
    return status


def is_run(store: RunStore) -> bool:
    """Return whether there is the manifest of a run, or no more than what a run leaves that is killed as it begins."""
    there = store.list()
    if MANIFEST in there:
        return status_of(store) is not None
    begun = all(name.startswith((CONFIG, MANIFEST)) for name in there)
    return begun and (CONFIG not in there or store.read(CONFIG, 0, len(MARK)) == MARK.encode())


def manifest_of(store: RunStore) -> dict[str, Any]:
    """Read the manifest of a run.

    Raises
    ------
    ValueError
        If the file is not the manifest of a run, or larger than one can be.
    OSError, RunError
        If it cannot be read.
    """
    text = store.read(MANIFEST, 0, _MOST_BYTES)  # of a larger file, the beginning of what is no JSON then
    try:
        manifest: dict[str, Any] = json.loads(text)
        texts = [manifest["status"], manifest["config_sha256"]]
        if "question" in manifest:
            texts += [manifest["engine"]["name"], manifest["graph"]["hash"]]
        lists = [manifest.get("resumed", [])]
    except (KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError("no manifest") from None
    if not all(isinstance(one, str) for one in texts) or not all(isinstance(one, list) for one in lists):
        raise ValueError("no manifest")
    return manifest


def why_no_run(where: Path | str, error: OSError | ValueError) -> InputError:
    """Return the error for a run whose manifest, or config, cannot be read.

    Parameters
    ----------
    where
        The run.
    error
        What was raised as its files were read.
    """
    if isinstance(error, ValueError):
        return InputError(f"{where}: {MANIFEST} is damaged, or not that of a run: restore it, or check the path")
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        meant = _below_runs(str(where))
        return InputError(
            f"{where}: there is no run here; "
            + (f"did you mean {meant}?" if meant else "check the path (longwall runs lists runs)")
        )
    return InputError(f"{where}: the files of this run cannot be read ({error.strerror or error}); check their modes")


def _below_runs(where: str) -> str:
    """Return the folder of a run of that name below `runs`, where runs are by default; "" if there is none."""
    if is_url(where):
        return ""
    found = Path(where).parent / "runs" / Path(where).name
    with suppress(OSError, ValueError):
        if (found / MANIFEST).is_file():
            near = os.path.relpath(found)
            return str(found) if near.startswith(os.pardir) else near
    return ""


def require_resumable(where: Path | str, manifest: dict[str, Any], config: str) -> None:
    """Check that a run that ended early can be resumed.

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


def resumed_manifest(manifest: dict[str, Any], last: str | None) -> dict[str, Any]:
    """Return the manifest of a run that is resumed; `last` is the time of its last commit: a killed run ended then."""
    kept = {key: value for key, value in manifest.items() if key != "reason"}
    end = last if manifest["status"] == "running" else manifest.get("finished")
    seconds = attempts_until(manifest, end)
    return kept | {"status": "running", "resumed": [*manifest.get("resumed", []), _now()], "attempt_seconds": seconds}


def ended(manifest: dict[str, Any], status: str) -> dict[str, Any]:
    """Return what the manifest of a run that ends ``"done"``, ``"failed"`` or ``"interrupted"`` says then."""
    now = _now()
    return {"status": status, "finished": now, "attempt_seconds": attempts_until(manifest, now)}


def attempts_until(manifest: dict[str, Any], end: str | None) -> list[float]:
    """Return the seconds of each attempt of a run; the last one ends at a given time, or took none that is known."""
    starts = [manifest.get("started"), *manifest.get("resumed", [])]
    before = [float(one) for one in manifest.get("attempt_seconds", [])][: len(starts) - 1]
    unknown = [0.0] * (len(starts) - 1 - len(before))  # by a version that did not record them
    try:
        took = (datetime.fromisoformat(str(end)) - datetime.fromisoformat(str(starts[-1]))).total_seconds()
    except (TypeError, ValueError):
        took = 0.0
    return [*before, *unknown, max(round(took, 3), 0.0)]


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def _versions() -> dict[str, str]:
    versions = {"longwall": longwall_version(), "python": platform.python_version()}
    if commit := source_commit():
        versions["commit"] = commit
    for name in _LIBRARIES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
