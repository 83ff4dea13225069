"""The record of a run's access heat: what every level read of every page, and where the page was."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


@dataclass
class _Level:
    """Sums over the extensions of one level: uint64[num_pages], int64[num_pages], and their number."""

    spatial: NDArray[np.uint64]
    hot: NDArray[np.int64]
    extensions: int = 0


class HeatRecord:
    """Sums per level and page.

    Parameters
    ----------
    num_pages
        Number of pages.
    """

    def __init__(self, num_pages: int):
        self._num_pages = num_pages
        self._levels: dict[int, _Level] = {}

    @staticmethod
    def nbytes(num_pages: int, levels: int) -> int:
        """Bytes that the record of so many levels takes. Writing takes up to 72 bytes a page more."""
        return 16 * num_pages * levels

    def record(self, level: int, spatial: NDArray[np.uint64], hot: NDArray[np.bool_]) -> None:
        """Add one extension.

        Parameters
        ----------
        level
            The level that it extends to.
        spatial : uint64[num_pages]
            Bytes that it reads of each page (Definition 4.1).
        hot : bool[num_pages]
            The pages that are on the device.
        """
        if level not in self._levels:
            self._levels[level] = _Level(np.zeros(self._num_pages, np.uint64), np.zeros(self._num_pages, np.int64))
        sums = self._levels[level]
        sums.spatial += spatial
        sums.hot += hot
        sums.extensions += 1

    def write(self, path: Path) -> None:
        """Write a Parquet file: a row for every level and page of which it read something, in that order.

        Its columns are level (int32), page, bytes that were read of it, history (the bytes of this level and those
        before it), extensions (of the level) and hot_extensions (those in which the page was on the device); int64.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        schema = pa.schema(
            [("level", pa.int32())]
            + [(name, pa.int64()) for name in ("page", "bytes", "history", "extensions", "hot_extensions")]
        )
        history = np.zeros(self._num_pages, np.int64)
        with pq.ParquetWriter(path, schema, compression="zstd") as writer:
            for level in sorted(self._levels):
                sums = self._levels[level]
                spatial = sums.spatial.view(np.int64)
                history += spatial
                pages = np.flatnonzero(spatial)
                columns = [
                    np.full(pages.size, level, np.int32),
                    pages,
                    spatial[pages],
                    history[pages],
                    np.full(pages.size, sums.extensions, np.int64),
                    sums.hot[pages],
                ]
                writer.write_table(pa.table(columns, schema=schema))
