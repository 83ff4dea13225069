"""The record of a run's access heat: what every level read of every page, and where the page was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa


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
        """Bytes that the record of a given number of levels takes. Writing takes up to 72 bytes a page more."""
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

        from longwall.storage.parquet_files import ParquetSink

        schema = _schema()
        history = np.zeros(self._num_pages, np.int64)
        with ParquetSink(path, schema) as sink:
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
                sink.write(pa.table(columns, schema=schema))


def add_records(paths: Sequence[Path], path: Path) -> None:
    """Add up the records that several processes wrote of the same pages.

    Parameters
    ----------
    paths
        Files as `HeatRecord.write` makes them, at least one.
    path
        The file to write, likewise; it counts the extensions of all. What a process did not read of a page, or in a
        level, is not in its file.
    """
    import pyarrow as pa

    from longwall.storage.parquet_files import write_parquet
    from longwall.storage.tables.parquet_rows import read_parquet

    tables = []
    for part in paths:
        with part.open("rb") as file:
            tables.append(read_parquet(file, str(part)))
    extensions = pa.concat_tables([table.group_by("level").aggregate([("extensions", "max")]) for table in tables])
    of_level = dict(
        zip(*extensions.group_by("level").aggregate([("extensions_max", "sum")]).to_pydict().values(), strict=True)
    )
    sums = pa.concat_tables(tables).group_by(["level", "page"]).aggregate([("bytes", "sum"), ("hot_extensions", "sum")])
    sums = sums.sort_by([("level", "ascending"), ("page", "ascending")])
    level, page, size, hot = (
        sums.column(name).to_numpy() for name in ("level", "page", "bytes_sum", "hot_extensions_sum")
    )
    history = np.empty(size.size, np.int64)
    so_far = np.zeros(int(page.max(initial=-1)) + 1, np.int64)
    for number in sorted(of_level):
        rows = slice(*np.searchsorted(level, [number, number + 1]))
        so_far[page[rows]] += size[rows]
        history[rows] = so_far[page[rows]]
    columns = [level, page, size, history, np.array([of_level[number] for number in level.tolist()], np.int64), hot]
    write_parquet(pa.table(columns, schema=_schema()), path)


def _schema() -> pa.Schema:
    import pyarrow as pa

    columns = ("page", "bytes", "history", "extensions", "hot_extensions")
    return pa.schema([("level", pa.int32())] + [(name, pa.int64()) for name in columns])
