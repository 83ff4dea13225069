"""Files of the checkpoint that the processes of a run hand to each other; most are arrays, ``.npy`` files."""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.run_store.commit_log import checkpoint_bytes
from longwall.pipeline.run_store.store import fetched
from longwall.storage.errors import RunError
from longwall.storage.hashed_file import HashedFile

_HEADER = 128  # bytes of a .npy file beside its array


def write_array(
    context: Environment, folder: str, shape: tuple[int, ...], dtype: DTypeLike, pieces: Iterable[NDArray[Any]]
) -> dict[str, Any]:
    """Write an array; it is on disk when this returns.

    Parameters
    ----------
    context
        The run; its budget of the disk has the file from now on.
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
    BudgetExceeded
        If the disk's budget has no room for it.
    """
    dtype = np.dtype(dtype)
    size = _HEADER + dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    prefix = f"checkpoint/{folder}/"
    name = f"{prefix}{context.checkpoint.next_number(prefix)}.npy"
    path = context.checkpoint.folder.parent / name
    with context.resources.disk.reserve(size, "arrays of the checkpoint"):
        path.parent.mkdir(exist_ok=True)
        facts = write_npy(path, shape, dtype, pieces)
    context.resources.disk.charge(size, "arrays of the checkpoint")
    described = {"shape": [int(one) for one in shape], "dtype": dtype.str}
    return {"name": name, "stored": facts["bytes"], "sha256": facts["sha256"]} | described


def write_npy(
    path: Path, shape: tuple[int, ...], dtype: np.dtype[Any], pieces: Iterable[NDArray[Any]]
) -> dict[str, Any]:
    """Write a ``.npy`` file piece by piece; return its `bytes` and `sha256`, as a commit names them, once it is synced.

    No file is left where it cannot be written.
    """
    header = {"descr": dtype.str, "fortran_order": False, "shape": shape}
    try:
        with HashedFile(path) as file:
            np.lib.format.write_array_header_1_0(file, header)
            for piece in pieces:
                file.write(np.ascontiguousarray(piece, dtype).data)
            return file.finish()
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def read_array(context: Environment, file: dict[str, Any], begin: int = 0, end: int | None = None) -> NDArray[Any]:
    """Read rows `begin` to `end` - 1 of an array that is in a commit; all that are left by default.

    Only these rows are read. The array cannot be written to.

    Raises
    ------
    RunError
        If it is gone or damaged.
    """
    store = context.checkpoint.store
    (rows, *others), dtype = file["shape"], np.dtype(file["dtype"])
    wanted, each = max((rows if end is None else end) - begin, 0), dtype.itemsize * math.prod(others)
    at, size = _HEADER + begin * each, wanted * each
    try:
        found = store.read(file["name"], at, at + size)
    except OSError:
        found = b""
    if len(found) != size:
        raise RunError(
            f"{store.where}/{file['name']}: it is gone or damaged: restore the file, or start a new run"
        ) from None
    return np.frombuffer(found, dtype).reshape(wanted, *others)


@contextmanager
def opened(context: Environment, file: dict[str, Any]) -> Iterator[Path]:
    """Have a file that is in a commit here for a while.

    Of one that is only at the URL of the run that is a copy, which the disk's budget has meanwhile.

    Raises
    ------
    RunError
        If it cannot be copied; what is raised while the copy is in use names the URL.
    """
    size, disk = checkpoint_bytes([file]), context.resources.disk
    with fetched(context.checkpoint.store, file["name"], size, disk) as path:
        yield path
