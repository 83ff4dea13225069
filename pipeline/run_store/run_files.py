"""Files of the checkpoint that phases, and the processes of a run, hand on to each other; most are ``.npy`` arrays."""

import math
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from longwall.pipeline.run_store.commit_log import checkpoint_bytes
from longwall.pipeline.run_store.run_names import RESULTS
from longwall.pipeline.run_store.store import RunStore, fetched
from longwall.storage.errors import RunError
from longwall.storage.hashed_file import HashedFile
from longwall.storage.memory.reservations import MemoryBudget

_HEADER = 128  # bytes of a .npy file beside its array


class RunFiles:
    """The files of a run as one of its processes writes and reads them.

    Parameters
    ----------
    store
        The run's.
    disk
        The budget that files of the checkpoint are in.
    next_number
        Returns the number of the next file whose name begins so, which no other process has chosen.
    results
        The folder of this process for result files; None: the run's.

    Attributes
    ----------
    store, next_number
        See above.
    """

    def __init__(
        self, store: RunStore, disk: MemoryBudget, next_number: Callable[[str], int], results: Path | None = None
    ):
        self.store, self.next_number = store, next_number
        self._disk, self._results = disk, results

    @property
    def results(self) -> Path:
        """The folder for result files; they become results of the run only when they are committed."""
        return self.store.folder / RESULTS if self._results is None else self._results

    def new_path(self, prefix: str, suffix: str = "") -> tuple[str, Path]:
        """Return the name of a new file, which begins so, and its path in this process; its folder is there."""
        name = f"{prefix}{self.next_number(prefix)}{suffix}"
        path = self.store.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return name, path

    def opened(self, file: dict[str, Any]) -> AbstractContextManager[Path]:
        """Have a file that is in a commit in this process for a while.

        Of one that is only at the URL of the run that is a copy, which the disk's budget has meanwhile.

        Raises
        ------
        RunError
            If it cannot be copied; what is raised while the copy is in use names the URL.
        """
        return fetched(self.store, file["name"], checkpoint_bytes([file]), self._disk)

    def write_array(
        self, folder: str, shape: tuple[int, ...], dtype: DTypeLike, pieces: Iterable[NDArray[Any]]
    ) -> dict[str, Any]:
        """Write an array; it is on disk when this returns, and in the disk's budget from now on.

        Parameters
        ----------
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
        with self._disk.reserve(size, "arrays of the checkpoint"):
            name, path = self.new_path(f"checkpoint/{folder}/", ".npy")
            header = {"descr": dtype.str, "fortran_order": False, "shape": shape}
            try:
                with HashedFile(path) as file:
                    np.lib.format.write_array_header_1_0(file, header)
                    for piece in pieces:
                        file.write(np.ascontiguousarray(piece, dtype).data)
                    checksum = file.finish()["sha256"]
            except BaseException:
                path.unlink(missing_ok=True)
                raise
        self._disk.charge(size, "arrays of the checkpoint")
        facts = {"shape": [int(one) for one in shape], "dtype": dtype.str, "sha256": checksum}
        return {"name": name, "stored": size} | facts

    def read_array(self, file: dict[str, Any], begin: int = 0, end: int | None = None) -> NDArray[Any]:
        """Read rows `begin` to `end` - 1 of an array that is in a commit; all that are left by default.

        Only these rows are read. The array cannot be written to.

        Raises
        ------
        RunError
            If it is gone or damaged.
        """
        (rows, *others), dtype = file["shape"], np.dtype(file["dtype"])
        wanted, each = max((rows if end is None else end) - begin, 0), dtype.itemsize * math.prod(others)
        at, size = _HEADER + begin * each, wanted * each
        try:
            found = self.store.read(file["name"], at, at + size)
        except OSError:
            found = b""
        if len(found) != size:
            raise RunError(
                f"{self.store.where}/{file['name']}: it is gone or damaged: restore the file, or start a new run"
            ) from None
        return np.frombuffer(found, dtype).reshape(wanted, *others)
