"""K-cliques on an engine: roots, bitmap tables, leaves of pivot trees, and the kernels that count.

A leaf with h held vertices and p pivots stands for every clique of the h and any of the p: C(p, k - h) cliques of k
vertices (Pivoter: Jain and Seshadhri, WSDM 2020, section 4). Kernels count leaves by (h, p) in 64 bits, which no
search can exhaust, and the host makes the numbers of cliques of them, however large.
"""

from collections.abc import Iterable, Sequence
from math import comb
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.workspaces import NARROW, ArrayCounter, Device, RangeCounter, Targets, Workspace

ALL_SIZES = 0
"""Stands for every size where kernels take one."""

_LIMB_BITS = 64
PIVOT_LEVELS = NARROW // 2 + 2
"""Levels of a search among `NARROW` candidates: each has two candidates less than the one before."""
ROOTED_FROM = 6
"""Vertices of the smallest cliques that are counted in root subgraphs: bitmaps of an arc's candidates that are numbered
anew: below an arc four vertices are missing, which are counted by their complement."""
MOST_ROOTED = 2047
"""The most candidates of a root subgraph: sums over their complement stay far below 2**63, and its bitmaps take half a
MiB at most."""
ADJACENT, OF = 3, 10
"""A root subgraph has at least size * (size - 1) * `ADJACENT` / `OF` adjacent pairs: sparser ones are searched
directly."""
WORD_BYTES = 4
Degrees = TypeVar("Degrees", int, NDArray[np.int64])
_START_WORDS = 2  # where a table begins, 64 bits


class TablePiece(NamedTuple):
    """A range of arcs whose vertices' tables have room.

    Attributes
    ----------
    arcs
        The first arc, and one past the last.
    vertices
        The first vertex that has some of them, and one past the last.
    owned
        The first arc of these vertices, and one past the last.
    targets
        See `TabledCliqueCounter`.
    parts
        The parts that `targets` has.
    """

    arcs: tuple[int, int]
    vertices: tuple[int, int]
    owned: tuple[int, int]
    targets: Iterable[tuple[int, int] | None]
    parts: Sequence[tuple[int, int] | None] = ()


def table_words(degrees: Degrees, least: int) -> Degrees:
    """Return the words that the tables of vertices take, with what says where each begins.

    Row i of a table has a bit for each of the out-neighbours before out-neighbour i, in words of 32 bits.

    Parameters
    ----------
    degrees : int or int64[n]
        Numbers of out-neighbours.
    least
        Vertices of fewer out-neighbours have no table.
    """
    groups, rest = degrees >> 5, degrees & 31
    words: Degrees = (16 * groups + rest) * (groups + 1) * (degrees >= least) + _START_WORDS
    return words


def longest_table(max_out_degree: int) -> int:
    """Return the words of the table of the vertex with the most out-neighbours."""
    return table_words(max_out_degree, 0)


def leaf_shape(k: int, max_out_degree: int) -> tuple[int, int]:
    """Return the numbers of held vertices and of pivots that leaves may have, each plus one.

    Parameters
    ----------
    k
        Number of vertices of the cliques; `ALL_SIZES`: any.
    max_out_degree
        The largest number of neighbours that a vertex has before itself.
    """
    largest = max_out_degree + 1
    return (k if k else largest) + 1, largest + 1


def cliques_of_leaves(leaves: NDArray[Any], k: int = ALL_SIZES) -> list[int]:
    """Return the numbers of cliques by size: place s has those of s vertices, only place k where `k` is a size.

    Parameters
    ----------
    leaves : int64[h, p]
        Number of leaves with h held vertices and p pivots. With a size k, `leaves[k, 0]` are single cliques, however
        they were found.
    k
        The size of the cliques that are wanted, or `ALL_SIZES`.
    """
    rows, columns = np.nonzero(leaves)
    numbers = leaves[rows, columns].tolist()
    cells = zip(rows.tolist(), columns.tolist(), numbers, strict=True)
    if k:
        return [0] * k + [sum(number * comb(pivots, k - held) for held, pivots, number in cells)]
    counts = [0] * sum(leaves.shape)
    for held, pivots, number in cells:
        choices = 1
        for chosen in range(pivots + 1):
            counts[held + chosen] += number * choices
            choices = choices * (pivots - chosen) // (chosen + 1)
    while counts and not counts[-1]:
        counts.pop()
    return counts


def limbs_needed(out_degrees: Sequence[int], vertices: Sequence[int], k: int) -> int:
    """Return how many words of 64 bits hold the number of cliques of k vertices that a vertex can be in.

    Parameters
    ----------
    out_degrees, vertices
        Numbers of neighbours with a smaller id, and the number of vertices with each.
    k
        Number of vertices.
    """
    most = sum(number * comb(degree, k - 1) for degree, number in zip(out_degrees, vertices, strict=True))
    return max(-(-most.bit_length() // _LIMB_BITS), 1)


def leaf_weights(k: int, max_out_degree: int, limbs: int) -> NDArray[np.uint64]:
    """Return the number of ways to choose `chosen` of `pivots`: uint64[pivots, chosen, limbs], the lowest limb first.

    Modulo 2 ** (64 * `limbs`), which is exact for what can occur where `limbs_needed` are used.
    """
    _, pivots = leaf_shape(k, max_out_degree)
    weights = np.zeros((pivots, k, limbs), np.uint64)
    weights[:, 0, 0] = 1
    for number in range(1, pivots):
        before, carry = weights[number - 1], np.zeros(k - 1, np.uint64)
        for limb in range(limbs):
            sums = before[1:, limb] + before[:-1, limb]
            over = sums < before[1:, limb]
            sums += carry
            carry = (over | (sums < carry)).astype(np.uint64)
            weights[number, 1:, limb] = sums
    return weights


def weight_bytes(k: int, max_out_degree: int, limbs: int) -> int:
    """Return the bytes of `leaf_weights`."""
    return leaf_shape(k, max_out_degree)[1] * k * limbs * 8


def exact_values(limbs: NDArray[np.int64]) -> NDArray[np.object_]:
    """Return numbers of several words without a sign, int64[limbs, n], the lowest first, as Python integers."""
    words = limbs.view(np.uint64)
    total: NDArray[np.object_] = words[-1].astype(object)
    for word in words[-2::-1]:
        total = (total << _LIMB_BITS) + word.astype(object)
    return total


def exact_sum(limbs: NDArray[np.int64]) -> int:
    """Return the sum of such numbers."""
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    total = 0
    for place, words in enumerate(limbs.view(np.uint64)):
        total += (int((words & low).sum()) + (int((words >> half).sum()) << 32)) << (_LIMB_BITS * place)
    return total


def add_limbs(total: NDArray[np.int64], other: NDArray[np.int64]) -> None:
    """Add such numbers to others, in their place."""
    sums, addends = total.view(np.uint64), other.view(np.uint64)
    carry = np.zeros(sums.shape[1], np.uint64)
    for at, words in zip(sums, addends, strict=True):
        at += words
        over = at < words
        at += carry
        carry = (over | (at < carry)).astype(np.uint64)


class TabledCliqueCounter(RangeCounter, Protocol):
    """Workspace of one worker that counts cliques over ranges of arcs, while the lists of vertices are streamed.

    Attributes
    ----------
    table_room
        The words that one range may take; see `table_words`.
    least_degree
        Vertices of fewer out-neighbours have no table.
    """

    table_capacity: int
    least_degree: int

    def count(self, first: int, last: int, targets: Iterable[Targets | None] = (None,)) -> int:
        """Count the cliques whose two largest vertices are joined by the arcs first to last - 1.

        Parameters
        ----------
        first, last
            A range whose vertices' tables have room.
        targets
            All vertices that arcs of these vertices lead to, in parts; None: at once. When the next part is asked for,
            kernels that read the lists of the last one have been launched.
        """

    def count_pieces(self, pieces: Iterable[TablePiece]) -> int:
        """Count the cliques of ranges, each as `count` does, without waiting for kernels between them."""


class LeafCounter(Workspace, Protocol):
    """Workspace of one worker that counts leaves of pivot trees, which stand for cliques."""

    def add(self, first: int, last: int) -> None:
        """Add what belongs to the arcs `first` to `last` - 1."""

    def take(self) -> NDArray[np.int64]:
        """Return the leaves since the last call, on the host: int64[h, p], by held vertices and by pivots."""


class KCliqueKernels(Protocol):
    """Make workspaces that count k-cliques."""

    def clique_counter(self, device: Device, graph: GraphArrays, k: int, memory: int) -> RangeCounter:
        """Workspace for counting k-cliques (k >= 3) one by one; roots are arcs."""

    def large_clique_counter(self, device: Device, graph: GraphArrays, k: int, memory: int) -> RangeCounter:
        """Workspace as `clique_counter` makes it for k >= `ROOTED_FROM`: other kernels count there."""
        ...

    def clique_leaf_counter(self, device: Device, graph: GraphArrays, k: int, memory: int) -> LeafCounter:
        """Workspace for counting cliques by the leaves of pivot trees; roots are arcs.

        Parameters
        ----------
        device
            The engine's.
        graph
            The graph.
        k
            Number of vertices, 4 or more, or `ALL_SIZES`.
        memory
            The most bytes.

        Raises
        ------
        WorkspaceTooLarge
            Where these do not do.
        """

    def tabled_clique_counter(self, device: Device, graph: GraphArrays, k: int, memory: int) -> TabledCliqueCounter:
        """Workspace for counting k-cliques (k >= 4) while lists are streamed; roots are arcs of an oriented graph.

        Parameters and errors are those of `clique_counter`.
        """

    def clique_vertex_counter(
        self, device: Device, graph: GraphArrays, k: int, limbs: int, memory: int
    ) -> ArrayCounter:
        """Workspace for counting the k-cliques (k >= 3) of every vertex; roots are arcs.

        Its counts are int64[limbs, num_vertices]: words of 64 bits without a sign, the lowest first.
        """
