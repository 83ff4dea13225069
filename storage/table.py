"""Embedding tables: a prefix tree in columns (GAMMA section V-A).

Each level holds one value per tree node; the children of a node stand together, so the link to the parent is
stored as offsets. A row is a node of the last level together with its ancestors. A v-ET holds vertices, an e-ET
holds edges (as the adjacency slot whose neighbour has the smaller id). This module holds no policy: how long a
table may grow is the executor's business.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = Any  # a NumPy or a CuPy array


@dataclass(frozen=True)
class EmbeddingTable:
    """Embeddings as a prefix tree.

    Attributes
    ----------
    values
        One array per level; `values[l][i]` is the vertex (uint32) or edge (int64) of node i of level l.
    offsets
        One int64 array per level but the first: the children of node i of level l are the nodes
        `offsets[l][i]` to `offsets[l][i + 1] - 1` of level l + 1.
    xp
        The array module of all arrays: numpy or cupy.
    """

    values: tuple[Array, ...]
    offsets: tuple[Array, ...]
    xp: Any = np

    def __len__(self) -> int:
        return int(self.values[-1].size)

    @property
    def num_levels(self) -> int:
        """Number of columns."""
        return len(self.values)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(int(a.nbytes) for a in (*self.values, *self.offsets))

    def columns(self) -> Array:
        """The rows, flat.

        Returns
        -------
        array[num_levels, len(self)]
            Column l holds the values of level l; rows that share a prefix stand together.
        """
        xp = self.xp
        flat = xp.empty((self.num_levels, len(self)), dtype=self.values[-1].dtype)
        flat[-1] = self.values[-1]
        node = None
        for level in range(self.num_levels - 2, -1, -1):
            parents = self._parents(level)
            node = parents if node is None else parents[node]
            flat[level] = self.values[level][node]
        return flat

    def _parents(self, level: int) -> Array:
        """Parent node, at `level`, of every node of the next level."""
        # Every node has a child, so each offset between the ends begins one more parent.
        xp, begins = self.xp, self.offsets[level][1:-1]
        steps = xp.zeros(int(self.values[level + 1].size), dtype=xp.int64)
        steps[begins] = 1
        return xp.cumsum(steps)

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
        xp = self.xp
        kept = counts > 0
        base = self.filtered(kept)
        offsets = xp.zeros(len(base) + 1, dtype=xp.int64)
        xp.cumsum(counts[kept], out=offsets[1:])
        return EmbeddingTable((*base.values, values), (*base.offsets, offsets), xp)

    def filtered(self, mask: Array) -> "EmbeddingTable":
        """The rows where the mask (bool[len(self)]) holds, compacted back to the root.

        Compaction marks, takes prefix sums and gathers, level by level (GAMMA section V-A).
        """
        xp = self.xp
        before = _prefix_sums(mask, xp)
        if int(before[-1]) == len(self):
            return self
        values = [self.values[-1][mask]]
        offsets: list[Array] = []
        for level in range(self.num_levels - 2, -1, -1):
            bounds = before[self.offsets[level]]
            mask = xp.diff(bounds) > 0
            ends = bounds[1:][mask]
            offsets.insert(0, xp.concatenate([xp.zeros(1, dtype=xp.int64), ends]))
            values.insert(0, self.values[level][mask])
            before = _prefix_sums(mask, xp) if level else before
        return EmbeddingTable(tuple(values), tuple(offsets), xp)

    def sliced(self, begin: int, end: int) -> "EmbeddingTable":
        """Rows begin to end - 1; the values are views."""
        xp = self.xp
        values: list[Array] = [self.values[-1][begin:end]]
        offsets: list[Array] = []
        for level in range(self.num_levels - 2, -1, -1):
            whole = self.offsets[level]
            first = int(xp.searchsorted(whole, begin, side="right")) - 1
            last = int(xp.searchsorted(whole, end, side="left")) if end > begin else first
            offsets.insert(0, xp.clip(whole[first : last + 1], begin, end) - begin)
            begin, end = first, last
            values.insert(0, self.values[level][begin:end])
        return EmbeddingTable(tuple(values), tuple(offsets), xp)


def _prefix_sums(mask: Array, xp: Any) -> Array:
    """How many entries of the mask hold before each position, and in all; int64[len(mask) + 1]."""
    sums = xp.zeros(int(mask.size) + 1, dtype=xp.int64)
    xp.cumsum(mask, out=sums[1:])
    return sums
