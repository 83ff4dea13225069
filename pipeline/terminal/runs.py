"""The runs in a folder, as their manifests describe them."""

from __future__ import annotations

import fcntl
import os
import tomllib
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from longwall.pipeline.run_store.local_store import LocalStore
from longwall.pipeline.run_store.manifest import attempts_until, manifest_of
from longwall.pipeline.run_store.run_names import CONFIG, MANIFEST, NEW, is_own
from longwall.storage.errors import InputError, RunError

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class RunFacts:
    """What is known of one run; None what its manifest does not say."""

    name: str
    status: str
    """``done``, ``running``, ``failed``, ``interrupted``, ``killed``, or ``damaged``."""
    workload: str | None = None
    pattern: str | None = None
    seconds: float | None = None
    answer: int | None = None
    lower_bound: bool | None = None
    """True if a limit ended the search, so that the answer is at least this."""
    started: str | None = None
    total_seconds: float | None = None
    """Of all attempts."""
    finished: str | None = None
    resumed: list[str] | None = None
    """When it was resumed, each time."""
    versions: dict[str, str] | None = None
    path: str | None = None
    replaces: str | None = None
    """The run that it will replace once it is done."""
    bytes: int | None = None
    """Of the files of the run; None if something lies among them that no run writes."""

    def to_json(self) -> dict[str, Any]:
        """Return what is known."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def runs_in(folder: Path) -> list[RunFacts]:
    """Return the runs in a folder, the newest last; read only their manifests and configs.

    Raises
    ------
    InputError
        If there is no such folder, or it cannot be read.
    """
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        raise InputError(f"{folder}: there is no such folder; give the folder of your runs") from None
    except NotADirectoryError:
        raise InputError(f"{folder}: this is a file; give the folder of your runs") from None
    except OSError as error:
        raise InputError(f"{folder} cannot be read ({error.strerror}): give the folder of your runs") from None
    found = [_facts(folder / name) for name in names if os.path.lexists(folder / name / MANIFEST)]
    return sorted(found, key=lambda one: one.started or "")


def _facts(folder: Path) -> RunFacts:
    try:
        manifest = manifest_of(LocalStore(folder))
    except (OSError, ValueError, InputError, RunError):
        return RunFacts(folder.name, "damaged", path=str(folder.absolute()), bytes=_bytes(folder))
    status = manifest["status"]
    if status == "running" and not _is_held(folder):
        status = "killed"
    plan = manifest.get("plan")
    pattern = plan.get("pattern") if isinstance(plan, dict) else _asked_pattern(folder)
    answer = manifest.get("count")
    workload, started = manifest.get("workload"), manifest.get("started")
    return RunFacts(
        folder.name,
        status,
        workload if isinstance(workload, str) else None,
        pattern if isinstance(pattern, str) else None,
        _seconds(manifest, status),
        answer if isinstance(answer, int) else None,
        True if manifest.get("truncated") and isinstance(answer, int) else None,
        started if isinstance(started, str) else None,
        _total(manifest, status),
        manifest.get("finished") if status not in ("running", "killed") else None,
        manifest.get("resumed"),
        manifest.get("versions"),
        str(folder.absolute()),
        folder.name.removesuffix(NEW) if folder.name.endswith(NEW) else None,
        _bytes(folder),
    )


def _asked_pattern(folder: Path) -> str | None:
    """Return the edges of the pattern in the config of a run that has no plan yet; None if it has none or several."""
    from longwall.pipeline.patterns.parse import is_pattern_file, parse_pattern

    with suppress(OSError, ValueError, TypeError, InputError, RunError):
        text = tomllib.loads((folder / CONFIG).read_text("utf-8")).get("workload", {}).get("pattern")
        if isinstance(text, str) and not is_pattern_file(text):
            return parse_pattern(text).edge_text
    return None


def _bytes(folder: Path) -> int | None:
    with suppress(OSError, InputError):
        return sum(size for name, size in LocalStore(folder).list().items() if is_own(name))
    return None


def _total(manifest: dict[str, Any], status: str) -> float | None:
    """Return the seconds of all attempts, until now while the run goes on."""
    if status == "killed":
        return None
    with suppress(TypeError, ValueError, KeyError):
        now = datetime.now(UTC).isoformat()
        seconds = attempts_until(manifest, now) if status == "running" else manifest["attempt_seconds"]
        return round(sum(map(float, seconds)), 3)
    return None


def _seconds(manifest: dict[str, Any], status: str) -> float | None:
    """Return the time from the last beginning of a run to its end, or until now while it runs."""
    if status == "killed":
        return None
    with suppress(TypeError, ValueError, KeyError):
        began = datetime.fromisoformat([manifest["started"], *manifest.get("resumed", [])][-1])
        end = datetime.now(UTC) if status == "running" else datetime.fromisoformat(manifest["finished"])
        return round((end - began).total_seconds(), 3)
    return None


def _is_held(folder: Path) -> bool:
    """Return whether a process has the run: a shared lock, let go at once, finds that out."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
