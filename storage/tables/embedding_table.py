"""Embedding tables: a prefix tree in columns (GAMMA section V-A).

Each level holds one value per tree node; the children of a node stand together, so the link to the parent is
stored as offsets. A row is a node of the last level together with its ancestors. A v-ET holds vertices, an e-ET
holds edges (as their ends, ``larger << 32 | smaller``). This module holds no policy: how long a table may grow is
the executor's business.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from longwall.storage.system.arguments import brief, wrong_type

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from longwall.kernels.interface.graph_arrays import GraphArrays
    from longwall.kernels.interface.search_program import Level

Array = Any  # a NumPy or a CuPy array


@dataclass(frozen=True)
class EmbeddingTable:
    """Embeddings as a prefix tree.

    Attributes
    ----------
    values
        One array per level; `values[l][i]` is the vertex (uint32) or edge (int64) of node i of level l. None where
        the level was not read (column pruning): then only `column` and `columns` of what was read may be called.
    offsets
        One int64 array per level but the last: the children of node i of level l are the nodes
        `offsets[l][i]` to `offsets[l][i + 1] - 1` of level l + 1. None above the first level that was read.
    xp
        The array module of all arrays: numpy or cupy.
    """

    values: tuple[Array, ...]
    offsets: tuple[Array, ...]
    xp: Any = np

    def __len__(self) -> int:
        return int(self.offsets[-1][-1] if self.values[-1] is None else self.values[-1].size)

    @property
    def num_levels(self) -> int:
        """Number of columns."""
        return len(self.values)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(int(a.nbytes) for a in (*self.values, *self.offsets) if a is not None)

    def columns(self) -> Array:
        """The rows, flat.

        Returns
        -------
        array[num_levels, len(self)]
            Column l holds the values of level l; rows that share a prefix stand together.
        """
        return _operations(self.xp).columns(self.values, self.offsets)

    def column(self, level: int, ids: Array | None = None) -> Array:
        """One column of the rows, flat: array[len(self)].

        It takes at most 16 bytes per row beside the result.

        Parameters
        ----------
        level
            The level of the column; that of the last level, without `ids`, is a view of `values`.
        ids
            The id of each vertex, an array of `xp` (int64 or uint64); None: the column has vertices (uint32).
        """
        operations, values = _operations(self.xp), self.values
        if ids is not None:
            values = (*values[:level], operations.looked_up(ids, values[level]))
        if level == self.num_levels - 1:
            return values[level]
        return operations.column(values, self.offsets, level, len(self))

    def to(self, xp: Any) -> "EmbeddingTable":
        """The table in arrays of another module; itself where it is there already."""
        if xp is self.xp:
            return self

        def moved(array: Array) -> Array:
            if array is None:
                return None
            return array.get() if xp is np else xp.asarray(array)

        return EmbeddingTable(tuple(map(moved, self.values)), tuple(map(moved, self.offsets)), xp)

    def to_arrow(self, names: Sequence[str] | None = None) -> "pa.Table":
        """The rows as an Arrow table.

        Parameters
        ----------
        names
            One per level; by default ``c0``, ``c1``, ...

        Returns
        -------
        pyarrow.Table
            Internal ids. The last column shares the table's memory, the others are flattened.
        """
        import pyarrow as pa

        host = self.to(np)
        columns = [pa.array(host.column(level)) for level in range(host.num_levels)]
        return pa.table(columns, names=list(names) if names else [f"c{i}" for i in range(host.num_levels)])

    def to_pandas(self, names: Sequence[str] | None = None) -> "pd.DataFrame":
        """The rows as a pandas data frame; names and memory as in `to_arrow`."""
        import pandas as pd

        host = self.to(np)
        labels = list(names) if names else [f"c{i}" for i in range(host.num_levels)]
        return pd.DataFrame({name: host.column(level) for level, name in enumerate(labels)}, copy=False)

    def extended(self, counts: Array, values: Array) -> "EmbeddingTable":
        """The table with one more level.

        Parameters
        ----------
        counts : int64[len(self)]
            Number of children of each row.
        values
            The children, row by row.

        Returns
        -------
        EmbeddingTable
            Rows without children are gone, back to the root.
        """
        above, offsets = _operations(self.xp).extended(self.values, self.offsets, counts)
        return EmbeddingTable((*above, values), offsets, self.xp)

    def filtered(self, mask: Array) -> "EmbeddingTable":
        """The rows where the mask (bool[len(self)]) holds, compacted back to the root. Itself where these are all."""
        found = _operations(self.xp).filtered(self.values, self.offsets, mask)
        if found is None:
            return self
        values, offsets = found
        return EmbeddingTable(values, offsets, self.xp)

    def sliced(self, begin: int, end: int) -> "EmbeddingTable":
        """Rows begin to end - 1; the values are views. Itself where these are all."""
        if begin == 0 and end == len(self):
            return self
        if not self.offsets:
            return EmbeddingTable((self.values[0][begin:end],), (), self.xp)
        values, offsets = _operations(self.xp).sliced(self.values, self.offsets, begin, end)
        return EmbeddingTable(values, offsets, self.xp)


def from_columns(columns: Array, xp: Any) -> EmbeddingTable:
    """The prefix tree of flat rows.

    Parameters
    ----------
    columns : array[num_levels, rows]
        Rows that share a prefix stand together.
    xp
        numpy or cupy.
    """
    levels, rows = columns.shape
    values: list[Array] = []
    offsets: list[Array] = []
    new = xp.zeros(rows, dtype=bool)
    new[:1] = True
    before = None  # where the nodes of the level above begin
    for level in range(levels):
        if level == levels - 1:
            starts = xp.arange(rows, dtype=xp.int64)
        else:
            new[1:] |= columns[level, 1:] != columns[level, :-1]
            starts = xp.flatnonzero(new)
        values.append(columns[level, starts])
        if before is not None:
            ends = xp.searchsorted(starts, before)
            offsets.append(xp.concatenate([ends, xp.asarray([starts.size], dtype=ends.dtype)]))
        before = starts
    return EmbeddingTable(tuple(values), tuple(offsets), xp)


class Columns(Sequence[Array]):
    """The columns of a table for users' functions: int64, read-only, each flattened when it is asked for first.

    Ids are stored in 32 bits where they fit; arithmetic of users does not wrap. Each column that is asked for takes
    8 bytes per row for good, besides what `EmbeddingTable.column` takes. CuPy has no read-only arrays.
    """

    def __init__(self, table: EmbeddingTable):
        self._table = table
        self._flat: dict[int, Array] = {}

    @property
    def touched(self) -> set[int]:
        """The levels that were asked for."""
        return set(self._flat)

    def __len__(self) -> int:
        return self._table.num_levels

    def __getitem__(self, level: Any) -> Any:
        """Column `level`, int64[rows]; a slice returns a tuple of columns."""
        if isinstance(level, slice):
            return tuple(self[i] for i in range(*level.indices(len(self))))
        try:
            number = range(len(self))[level]
        except TypeError:
            raise wrong_type("columns", level, "the number of a column") from None
        except IndexError:  # iteration ends with it
            raise IndexError(f"columns: there is no column {brief(level)}, only 0 to {len(self) - 1}") from None
        if number not in self._flat:
            if self._table.values[number] is None:
                raise NotRead(number)
            self._flat[number] = read_only(self._table.column(number).astype("int64", copy=False))
        return self._flat[number]


def read_only(array: Array) -> Array:
    """A view that cannot be written to; the array itself where its module, CuPy, has no such views."""
    if not isinstance(array, np.ndarray):
        return array
    view = array.view()
    view.flags.writeable = False
    return view


class NotRead(Exception):
    """A column was asked for that was not read from disk."""


def concatenated(tables: Sequence[EmbeddingTable]) -> EmbeddingTable:
    """The rows of several tables of as many levels, one after the other; no copy is made of a single table."""
    if len(tables) == 1:
        return tables[0]
    xp, levels = tables[0].xp, tables[0].num_levels
    values = [xp.concatenate([table.values[level] for table in tables]) for level in range(levels)]
    offsets = []
    for level in range(levels - 1):
        parts, end = [xp.zeros(1, dtype=xp.int64)], 0
        for table in tables:
            parts.append(table.offsets[level][1:] + end)
            end += int(table.values[level + 1].size)
        offsets.append(xp.concatenate(parts))
    return EmbeddingTable(tuple(values), tuple(offsets), xp)


def edge_table(graph: "GraphArrays", levels: "tuple[Level, Level]", first: int, last: int, xp: Any) -> EmbeddingTable:
    """The edges of a range of arcs; :class:`longwall.stages.source.EdgeSource` says which."""
    values, offsets = _operations(xp).edges(graph, levels, first, last)
    return EmbeddingTable(values, offsets, xp)


def _operations(xp: Any) -> Any:
    """The module that works on trees in arrays of `xp`."""
    if xp is np:
        from longwall.kernels.cpu.search import prefix_tree

        return prefix_tree
    from longwall.kernels.cuda.search import prefix_tree as on_device

    return on_device
