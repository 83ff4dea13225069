"""Counters whose blocks take one row of a range after the other, with a bitmap table or counters for each block."""

from typing import Any

from longwall.kernels.cuda.device import THREADS, Device, fetch_sum

Array = Any  # a CuPy array

CONTROL_BYTES = 16
"""Bytes of a block's shared memory for the row that it works on."""


def table_words(device: Device, rows: int, columns: int, blocks: int) -> tuple[int, int]:
    """Return the words of a bitmap table that a block has in shared memory, and those of its store if it is larger.

    Parameters
    ----------
    rows, columns
        Of the largest table.
    blocks
        Per multiprocessor.
    """
    most = rows * ((columns + 31) // 32 | 1)  # an odd stride
    words = min(most, max(device.shared_memory // blocks - 1024 - CONTROL_BYTES, 0) // 4)
    return words, most if most > words else 0


class BlockCounter:
    """Launches of a kernel over ranges of rows.

    The kernel takes `given`, the first and one past the last row, `workspace`, the next row, the stop flag, the result.
    """

    workspace_bytes = 0

    def __init__(
        self,
        device: Device,
        source: str,
        function: str,
        given: tuple[Any, ...],
        workspace: tuple[Any, ...],
        *,
        blocks: int,
        shared: int,
        threads: int = THREADS,
        generated: str = "",
    ):
        self._device, self._source, self._function = device, source, function
        self._given, self._workspace = given, workspace
        self._blocks, self._threads, self._shared, self._generated = blocks, threads, shared, generated

    def start(self, first: int, last: int) -> Array:
        """Launch the kernel for the rows first to last - 1. Return its result, on the device."""
        device, result = self._device, self._device.result()
        if first < last:
            device.launch(
                self._source,
                self._function,
                (*self._given, first, last, *self._workspace, device.counters(), device.stop_flag, result),
                blocks=min(self._blocks, last - first),
                threads=self._threads,
                shared=self._shared,
                generated=self._generated,
            )
        return result

    def count(self, first: int, last: int) -> int:
        """Return the count of the rows first to last - 1."""
        return fetch_sum(self.start(first, last))
