"""Patterns as minimum DFS codes, many at once, and their rightmost extensions (gSpan)."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.pattern_growth import NO_EXTENSION, GrowthBatch
from longwall.storage.graph.typed_graph import EdgeTypes

Ints = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class DfsPatterns:
    """Patterns of as many edges each; labels are ranks.

    Attributes
    ----------
    roots : int32[p]
        Label of vertex 0.
    codes : int32[p, edges, 5]
        (i, j, label of i, label of the edge, label of j) of each edge, in the order of the code.
    """

    roots: Ints
    codes: Ints

    def __len__(self) -> int:
        return len(self.roots)

    @property
    def num_edges(self) -> int:
        """Edges of each pattern."""
        return int(self.codes.shape[1])

    @cached_property
    def sizes(self) -> Ints:
        """Vertices of each pattern, int32[p]."""
        if not self.num_edges:
            return np.ones(len(self), np.int32)
        largest: Ints = self.codes[:, :, :2].max(axis=(1, 2)).astype(np.int32) + np.int32(1)
        return largest

    def sliced(self, begin: int, end: int) -> "DfsPatterns":
        """Patterns begin to end - 1."""
        return DfsPatterns(self.roots[begin:end], self.codes[begin:end])

    def grown(self, parents: NDArray[np.int64], edges: Ints) -> "DfsPatterns":
        """Patterns with one more edge each: `edges[i]` (int32[5]) after the code of pattern `parents[i]`."""
        return DfsPatterns(self.roots[parents], np.concatenate([self.codes[parents], edges[:, None]], axis=1))

    @cached_property
    def vertices(self) -> tuple[Ints, Ints, Ints]:
        """Label, parent on the search tree, and embedding table's column of each vertex; int32[p, largest size]."""
        width = int(self.sizes.max(initial=1))
        labels, parents = np.full((len(self), width), -1, np.int32), np.full((len(self), width), -1, np.int32)
        columns = np.full((len(self), width), -1, np.int32)
        labels[:, 0], columns[:, 0] = self.roots, 1
        for number in range(self.num_edges):
            forward = np.flatnonzero(self.codes[:, number, 0] < self.codes[:, number, 1])
            code = self.codes[forward, number]
            i, j, label = code[:, 0], code[:, 1], code[:, 4]
            labels[forward, j], parents[forward, j], columns[forward, j] = label, i, number + 2
        return labels, parents, columns

    @cached_property
    def paths(self) -> tuple[Ints, Ints]:
        """The rightmost paths, from the rightmost vertex to vertex 0: sizes, int32[p], and vertices, -1 beyond."""
        _, parents, _ = self.vertices
        width = int(self.sizes.max(initial=1))
        paths = np.full((len(self), width), -1, np.int32)
        rows, at = np.arange(len(self)), self.sizes - 1
        for place in range(width):
            paths[:, place] = at
            at = np.where(at > 0, parents[rows, at], -1).astype(np.int32)
        return (paths >= 0).sum(axis=1).astype(np.int32), paths


@dataclass(frozen=True, eq=False)
class RightmostExtensions:
    """The rightmost extensions of a batch of patterns, numbered: how a pattern grows by one edge of a type (gSpan).

    Attributes
    ----------
    growth
        What the kernels read.
    total
        Number of extensions.
    """

    patterns: DfsPatterns
    types: EdgeTypes
    growth: GrowthBatch
    total: int
    _starts: NDArray[np.int64]
    _lows: NDArray[np.int64]

    def numbers(self, pattern: NDArray[np.int64], edges: Ints) -> NDArray[np.int64]:
        """Return the numbers of the extensions of patterns (of the batch) by edges; the inverse of `edges`."""
        near, far, source_label, edge_label, target_label = edges.T
        backward = far < near
        _, paths = self.patterns.paths
        place = (paths[pattern] == np.where(backward, far, near)[:, None]).argmax(axis=1)
        bases = np.where(backward, self.growth.backward[pattern, place], self.growth.forward[pattern, place])
        numbers: NDArray[np.int64] = bases + self.types.find(source_label, target_label, edge_label)
        return numbers

    def edges(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], Ints]:
        """Return the pattern (of the batch) of each extension, and the edge that it grows by, int32[numbers, 5]."""
        width = self._lows.shape[1] // 2
        run = np.searchsorted(self._starts, numbers, side="right") - 1
        pattern, direction = np.divmod(run, 2 * width)
        backward, place = np.divmod(direction, width)
        kind = numbers - self._starts[run] + self._lows.ravel()[run]
        labels, _, _ = self.patterns.vertices
        _, paths = self.patterns.paths
        other = paths[pattern, place]
        newest = self.patterns.sizes[pattern] - 1
        near = np.where(backward == 1, newest, other)
        far = np.where(backward == 1, other, newest + 1)
        edges = np.stack(
            [near, far, labels[pattern, near], self.types.edge_label[kind], self.types.target_label[kind]], axis=1
        )
        return pattern, edges.astype(np.int32)


def rightmost_extensions(patterns: DfsPatterns, first: int, types: EdgeTypes, max_vertices: int) -> RightmostExtensions:
    """Number the rightmost extensions of patterns.

    Parameters
    ----------
    patterns
        A batch of a level's patterns.
    first
        Number of the first one in the level.
    types
        The edge types to grow by.
    max_vertices
        Most vertices of a pattern.
    """
    labels, _, columns = patterns.vertices
    path_sizes, paths = patterns.paths
    width = paths.shape[1]
    rows = np.arange(len(patterns))[:, None]
    on_path = paths >= 0
    path_labels = np.where(on_path, labels[rows, paths], 0)

    known = np.full((len(patterns), width, width), -1, np.int32)
    places = np.full((len(patterns), width), -1, np.int32)  # of each vertex on the path
    places[np.nonzero(on_path)[0], paths[on_path]] = np.nonzero(on_path)[1]
    for number in range(patterns.num_edges):
        i, j, label_i, label, label_j = patterns.codes[:, number].T
        for u, v, near, far in ((i, j, label_i, label_j), (j, i, label_j, label_i)):
            place = places[rows[:, 0], u]
            known[rows[:, 0], place, v] = np.where(
                place >= 0, types.find(near, far, label), known[rows[:, 0], place, v]
            )

    low = np.searchsorted(types.source_label, path_labels, side="left")
    high = np.searchsorted(types.source_label, path_labels, side="right")
    growing = on_path & (patterns.sizes < max_vertices)[:, None]
    wanted = path_labels[:, :1].astype(np.int64) * len(types.vertex_labels) + path_labels
    low_back, high_back = (
        np.searchsorted(types.pairs, wanted, side="left"),
        np.searchsorted(types.pairs, wanted, side="right"),
    )
    closing = on_path & (known[rows, 0, paths] < 0)
    closing[:, :2] = False  # the rightmost vertex itself, and its parent

    lows = np.concatenate([low, low_back], axis=1)
    sizes = np.concatenate([np.where(growing, high - low, 0), np.where(closing, high_back - low_back, 0)], axis=1)
    ends = np.cumsum(sizes.ravel())
    starts = ends - sizes.ravel()
    bases = np.where(sizes > 0, starts.reshape(sizes.shape) - lows, NO_EXTENSION)
    growth = GrowthBatch(
        np.array([first], np.int64),
        patterns.sizes,
        columns,
        labels,
        path_sizes,
        paths,
        known,
        np.ascontiguousarray(bases[:, :width]),
        np.ascontiguousarray(bases[:, width:]),
    )
    return RightmostExtensions(patterns, types, growth, int(ends[-1]) if len(ends) else 0, starts, lows)
