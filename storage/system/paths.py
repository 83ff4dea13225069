"""The one rule for paths from users: ``~`` is expanded here, once, and what cannot be a path is refused.

Libraries are handed files that are open, not paths: some expand ``~`` again, or take ``a:b`` for a URL.
"""

import errno
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from longwall.storage.errors import InputError
from longwall.storage.system.arguments import brief, require_type

_MOST_NAME_BYTES, _MOST_PATH_BYTES = 255, 4095  # of a file's name, and of a whole path


def user_path(address: str | os.PathLike[str]) -> Path:
    """Return the path that a user means; it need not exist.

    Parameters
    ----------
    address
        As it was given; ``~`` and ``~name`` at its beginning are home folders, ``./~`` is a file of that name.

    Raises
    ------
    InputError
        If no file can have such a path.
    """
    text = os.fspath(address)
    if fault := path_fault(text):
        raise InputError(fault)
    path = Path(text)
    if text.startswith("~"):
        try:
            path = path.expanduser()
        except RuntimeError:
            raise InputError(
                f"{brief(text)}: there is no such home folder; write ./~... for a file whose name begins with ~"
            ) from None
    if path.parts and path.parts[0].startswith("~"):
        path = path.absolute()  # or it would be taken for a home folder the next time
    try:
        os.lstat(path)
    except OSError as error:  # limits of this file system, and of what ~ stands for
        if error.errno == errno.ENAMETOOLONG:
            raise InputError(f"{brief(text)} is too long for a path ({len(text):,} characters)") from None
    return path


def path_exists(address: str | os.PathLike[str]) -> bool:
    """Whether there is something at a path, whatever stands there."""
    try:
        return user_path(address).exists()
    except InputError:
        return False


def require_path(name: str, value: object, expected: str, advice: str = "", *, optional: bool = False) -> None:
    """Refuse what is no path or URL, or no path that there can be; parameters as in `require_type`.

    Raises
    ------
    InputError
        Naming the argument and what is wrong.
    """
    if value is None and optional:
        return
    require_type(name, value, (str, os.PathLike), expected, advice)
    fault = path_fault(str(value))
    if fault:
        raise InputError(f"{name}: {fault}; give {expected}")


def path_fault(path: str) -> str:
    """Say why no file can have a path; nothing where one can."""
    if not path:
        return "the path is empty"
    if "\0" in path:
        return f"{brief(path)} has a NUL character, which no path has"
    try:
        sizes = [len(part.encode()) for part in path.split("/")]
    except UnicodeEncodeError:
        return f"{brief(path)} is not UTF-8: rename the file or the folder"
    if max(sizes) > _MOST_NAME_BYTES or sum(sizes) + len(sizes) > _MOST_PATH_BYTES:
        return f"{brief(path)} is too long for a path ({len(path):,} characters)"
    return ""


def missing_folders(folder: Path) -> list[Path]:
    """Return a folder and the folders around it, as far as they do not exist, the innermost first."""
    return [one for one in (folder, *folder.parents) if not one.exists()]


def remove_empty(folders: Iterable[Path]) -> None:
    """Remove nested folders, the innermost first, as long as they are empty."""
    with suppress(OSError):  # others work there, or keep files there
        for folder in folders:
            folder.rmdir()
