"""Addresses by URL, and inputs there: whatever fsspec reads is copied to the spill folder, read there, and removed.

A URL of this machine's files stands for their path.
"""

from __future__ import annotations

import re
import shutil
import uuid
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from longwall.storage.errors import InputError, RunError, StillNeeded
from longwall.storage.system.paths import user_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longwall.storage.memory.reservations import Reservation
    from longwall.storage.memory.resources import Resources

_PATTERN = re.compile(r"[*?\[]")
_BLOCK_BYTES = 4 << 20
_URL = re.compile(r"[a-z][a-z0-9+.-]+(::[a-z][a-z0-9+.-]+)*://", re.IGNORECASE)


def is_url(address: str | Path) -> bool:
    """Say whether an address is a URL, such as ``"s3://bucket/graph.zarr"``, and no path."""
    return isinstance(address, str) and _URL.match(address) is not None


@contextmanager
def on_disk(address: str | Path, resources: Resources) -> Iterator[Path]:
    """Yield the path of an input: its own, or that of a copy if it is at a URL of another machine.

    The copy is removed in the end. If `StillNeeded` is raised, it stays until the spill folder is removed.

    Parameters
    ----------
    address
        A path, or the URL of a file or of a graph store.
    resources
        The copy is in `spill` and is reserved in `disk`.

    Raises
    ------
    InputError
        If there is nothing at the URL, or it cannot be read; what is raised while the copy is in use names the URL.
    BudgetExceeded
        If `disk` has no room for the copy.
    """
    if not is_url(address):
        yield user_path(address)
        return
    url = str(address)
    system, root = file_system(url)
    if _is_local(system):
        yield user_path(root)
        return
    folder = resources.spill.path / f"fetched-{uuid.uuid4().hex[:12]}"
    with ExitStack() as copied:
        reserved = copied.enter_context(resources.disk.reserve(0, ""))
        folder.mkdir()
        copied.callback(shutil.rmtree, folder, ignore_errors=True)
        with resources.host.reserve(_BLOCK_BYTES, f"copying {url}"):
            path = _fetch(system, root, url, folder, reserved)
        try:
            yield path
        except StillNeeded as error:
            copied.pop_all()
            error.args = (str(error).replace(str(path), url),)
            raise
        except (InputError, RunError) as error:
            raise type(error)(str(error).replace(str(path), url)) from error


@contextmanager
def url_faults(url: str, done: str = "read", kind: type[InputError] | type[RunError] = InputError) -> Iterator[None]:
    """Work with fsspec; turn what it raises into a message about a URL.

    Parameters
    ----------
    url
        The URL.
    done
        What is being done with it, as a participle.
    kind
        What is raised.

    Raises
    ------
    InputError or RunError
        As `kind` says.
    """
    try:
        yield
    except (InputError, RunError):
        raise
    except FileNotFoundError:
        raise kind(f"{url}: there is no such {'file' if done == 'read' else 'place'}; check the URL") from None
    except ImportError as error:
        raise kind(f"{url}: a package for such URLs is missing: {error}") from None
    except Exception as error:  # every kind of file system has errors of its own
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise kind(f"{url}: cannot be {done} ({reason}); check the URL and what it takes to use it") from None


def file_system(url: str) -> tuple[Any, str]:
    """Return fsspec's file system for a URL, and the path there.

    Raises
    ------
    InputError
        If there is no such file system here.
    """
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise InputError(f"{url}: URLs are read and written with fsspec: pip install fsspec") from None
    with url_faults(url):
        system, path = url_to_fs(url)
    return system, path.rstrip("/")


def _is_local(system: Any) -> bool:
    from fsspec.implementations.local import LocalFileSystem

    return isinstance(system, LocalFileSystem)


def below(file: str, root: str, url: str) -> PurePosixPath:
    """The path of a file below a folder at a URL, as a listing names it; a server may name others.

    Raises
    ------
    InputError
        If it is one of the others.
    """
    try:
        path = PurePosixPath(file).relative_to(PurePosixPath(root))
    except ValueError:
        path = PurePosixPath("..")
    if ".." in path.parts:
        raise InputError(f"{url}: the listing names a file outside of the folder, {file!r}")
    return path


def _fetch(system: Any, root: str, url: str, folder: Path, reserved: Reservation) -> Path:
    """Copy a file, all files of a store or a folder, or those that a pattern matches, into a folder."""
    with url_faults(url):
        target = folder / (PurePosixPath(root).name or "graph")
        if not system.exists(f"{root}/zarr.json"):
            return _fetch_files(system, root, url, target, reserved)
        for file in system.find(root):
            name = below(file, root, url)
            if system.info(file).get("islink"):
                raise InputError(f"{url}/{name}: this is a symbolic link, copy the store without links (cp -rL)")
            _copy(system, file, target / name, url, reserved)
        return target


def _fetch_files(system: Any, root: str, url: str, target: Path, reserved: Reservation) -> Path:
    """Copy a file, or the files of a folder or of a pattern."""
    from longwall.storage.ingest.sources import is_aside  # which needs NumPy

    if _PATTERN.search(root) and not system.exists(root):
        files = {
            f"{number:06}-{PurePosixPath(file).name}": file for number, file in enumerate(sorted(system.glob(root)))
        }
        target, what = target.parent / "matching", "no file matches this pattern"
    elif system.info(root)["type"] == "directory":
        below_it = {below(file, root, url): file for file in system.find(root)}
        files = {str(name): file for name, file in below_it.items() if not is_aside(name)}
        what = "this is a folder without files, and no graph store"
    else:
        _copy(system, root, target, url, reserved)
        return target
    if not files:
        raise InputError(f"{url}: {what}; check the URL")
    for name, file in files.items():
        _copy(system, file, target / name, url, reserved)
    return target


def _copy(system: Any, file: str, target: Path, url: str, reserved: Reservation) -> None:
    kind = system.info(file)["type"]
    if kind != "file":  # to open a pipe would wait for its writer
        what = "a folder, and no graph store" if kind == "directory" else "a pipe or a device"
        raise InputError(f"{url}: {file} is not a regular file but {what}; give a file or a graph store")
    target.parent.mkdir(parents=True, exist_ok=True)
    with system.open(file, "rb") as source, target.open("wb") as copy:
        while block := source.read(_BLOCK_BYTES):
            reserved.resize(reserved.size + len(block), f"a copy of {url}")
            copy.write(block)
