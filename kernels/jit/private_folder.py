"""Folders that only one user can write to: what is read from there is trusted, as compiled code must be."""

import os
from pathlib import Path
from typing import NamedTuple

_ADVICE = "let XDG_CACHE_HOME name a folder that you own"
_notes: dict[str, None] = {}  # as an ordered set


class NotPrivate(Exception):
    """A folder cannot be used; the message says which one, and why."""


class CacheFolder(NamedTuple):
    """Where compiled kernels are kept."""

    path: Path | None
    """None where there is no such folder."""
    descriptor: int
    """Of the open folder: ``/proc/self/fd/<descriptor>`` stays this folder, whatever others put in its place."""

    def is_open(self) -> bool:
        """Return whether the descriptor still refers to the folder: a daemon closes all, and may reuse the number."""
        try:
            return self.path is None or os.path.samestat(os.fstat(self.descriptor), self.path.stat())
        except OSError:
            return False


def cache_notes() -> str:
    """Return why compiled kernels are not kept where one would expect it, as far as it is known; else nothing."""
    return "; ".join(_notes)


def cache_folder(variable: str | None, name: str) -> CacheFolder:
    """Choose a private folder for compiled kernels, and open it; see `cache_notes`.

    Parameters
    ----------
    variable
        Of the environment, which may name the folder; None: there is none.
    name
        Of the folder below ``longwall`` in the user's folder of caches, if that one is not private, or not named.
    """
    if variable is not None and (named := os.environ.get(variable)):
        path = Path(named).absolute()
        try:
            return CacheFolder(path, open_private(path))
        except NotPrivate as fault:
            note = f"{variable} is not used for compiled kernels: {fault}"
        _notes[note] = None
    try:
        path = _cache_home() / "longwall" / name
        return CacheFolder(path, open_private(path))
    except NotPrivate as fault:
        note = f"kernels are compiled in every run, a few seconds: they cannot be kept ({fault}); {_ADVICE}"
        _notes[note] = None
        return CacheFolder(None, -1)


def _cache_home() -> Path:
    """Return the folder of this user's caches, ``$XDG_CACHE_HOME`` or ``~/.cache``."""
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if named.is_absolute():  # the XDG specification ignores others
        return named
    try:
        return Path.home() / ".cache"
    except RuntimeError:
        raise NotPrivate("there is no home folder") from None


def open_private(path: Path) -> int:
    """Open a folder that only this user can write to; it is made where it does not exist.

    Parameters
    ----------
    path
        Of the folder. Its parents may be links, it may not.

    Returns
    -------
    int
        A descriptor.

    Raises
    ------
    NotPrivate
        It cannot be made or opened, belongs to another user, or others may write to it.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        reason = "it is a link" if os.path.islink(path) else error.strerror or str(error)  # noqa: PTH114 - never raises
        raise NotPrivate(f"{path}: {reason}") from error
    facts = os.fstat(descriptor)
    if facts.st_uid != os.geteuid():
        fault = "it belongs to another user"
    elif facts.st_mode & 0o022:
        fault = "other users may write to it"
    elif not os.access(f"/proc/self/fd/{descriptor}", os.W_OK | os.X_OK):
        fault = "it cannot be written"
    else:
        return descriptor
    os.close(descriptor)
    raise NotPrivate(f"{path}: {fault}")
