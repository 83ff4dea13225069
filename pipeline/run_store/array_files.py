"""Arrays that the processes of a run hand to each other: ``.npy`` files in folders of the checkpoint."""

import hashlib
import io
import math
import os
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from longwall.pipeline.execution.environment import Environment
from longwall.storage.errors import RunError, naming
from longwall.storage.remote.remote_folder import RemoteFolder

_HEADER = 128  # bytes of a .npy file beside its array


def write_array(
    context: Environment, folder: str, shape: tuple[int, ...], dtype: DTypeLike, pieces: Iterable[NDArray[Any]]
) -> dict[str, Any]:
    """Write an array; it is on disk when this returns.

    Parameters
    ----------
    context
        The run; its account of the disk has the file from now on.
    folder
        Name of the folder in the checkpoint.
    shape, dtype
        Of the array.
    pieces
        The array's rows, in their order.

    Returns
    -------
    dict
        The file, as a commit names it.

    Raises
    ------
    OverBudget
        If the disk's budget has no room for it.
    """
    dtype = np.dtype(dtype)
    size = _HEADER + dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    prefix = f"checkpoint/{folder}/"
    name = f"{prefix}{context.checkpoint.next_number(prefix)}.npy"
    path = context.checkpoint.folder.parent / name
    with context.resources.disk.reserve(size, "arrays of the checkpoint"):
        path.parent.mkdir(exist_ok=True)
        try:
            header = io.BytesIO()
            np.lib.format.write_array_header_1_0(header, {"descr": dtype.str, "fortran_order": False, "shape": shape})
            digest = hashlib.sha256(header.getvalue())
            with naming(path), path.open("wb") as file:
                file.write(header.getvalue())
                for piece in pieces:
                    data = np.ascontiguousarray(piece, dtype).data
                    file.write(data)
                    digest.update(data)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            path.unlink(missing_ok=True)
            raise
    context.resources.disk.charge(size, "arrays of the checkpoint")
    facts = {"shape": [int(one) for one in shape], "dtype": dtype.str, "sha256": digest.hexdigest()}
    return {"name": name, "stored": size} | facts


def read_array(context: Environment, file: dict[str, Any], begin: int = 0, end: int | None = None) -> NDArray[Any]:
    """Read rows `begin` to `end` - 1 of an array that is in a commit; all that are left by default.

    Raises
    ------
    RunError
        If it is gone or damaged.
    """
    path, mirror = context.checkpoint.folder.parent / file["name"], context.checkpoint.mirror
    if mirror is not None and not path.exists():
        return _read_part(mirror, file, begin, end)
    try:
        with path.open("rb") as opened:
            np.lib.format.read_magic(opened)
            shape, _, dtype = np.lib.format.read_array_header_1_0(opened)
            shape = (max((shape[0] if end is None else end) - begin, 0), *shape[1:])
            size = int(np.prod(shape, dtype=np.int64))
            opened.seek(begin * (size // max(shape[0], 1)) * dtype.itemsize, os.SEEK_CUR)
            found: NDArray[Any] = np.fromfile(opened, dtype, size)
            return found.reshape(shape)
    except (OSError, ValueError):
        raise RunError(f"{path}: it is gone or damaged: restore the file, or start a new run") from None


def _read_part(mirror: RemoteFolder, file: dict[str, Any], begin: int, end: int | None) -> NDArray[Any]:
    """Read rows of an array at a URL; only they come here, and nobody may write to them."""
    (rows, *others), dtype = file["shape"], np.dtype(file["dtype"])
    wanted, each = max((rows if end is None else end) - begin, 0), dtype.itemsize * math.prod(others)
    at, size = _HEADER + begin * each, wanted * each
    found = mirror.read(file["name"], at, at + size) if size else b""
    if len(found) != size:
        raise RunError(f"{mirror.url}/{file['name']}: it is damaged: restore the file, or start a new run")
    return np.frombuffer(found, dtype).reshape(wanted, *others)
