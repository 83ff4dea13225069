"""Labels of vertices: streams of (vertex, label) pairs, and how they are matched with the vertices of a graph."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from longwall.kernels.jit.compile import compiled
from longwall.storage.errors import InputError
from longwall.storage.ingest.names.label_names import LabelNames
from longwall.storage.memory.reservations import MemoryBudget

Int64s = npt.NDArray[np.int64]
Unused = Callable[[int], None]

_UNLABELLED = -1
_LIMIT = 2**31
_BYTES_A_ROW = 32  # the ranks, masks over the pairs, and what the index needs for its part


class VertexIndex(Protocol):
    """Where the vertices of a graph stand: their ranks."""

    def lookup(self, ids: Int64s, unsigned: bool = False) -> Int64s:
        """Return the rank of every id, -1 where the id is no vertex of the graph.

        Parameters
        ----------
        ids : int64[k]
            Any ids, in any order, repeated or not.
        unsigned
            As of `LabelBlock`.

        Returns
        -------
        int64[k]
        """

    def vertex(self, rank: int) -> str:
        """Return the id or the name of the vertex of a rank."""


@dataclass(frozen=True, eq=False)
class LabelBlock:
    """Consecutive labelled vertices of an input."""

    ids: Int64s
    """int64[k]: vertices, in the input's ids."""
    values: Int64s
    """int64[k]: their labels."""
    place: Callable[[int], str]
    """Row of the block -> where in the input it stands ("line 7"), for messages."""
    name: Callable[[int], str] | None = None
    """Row of the block -> the vertex's name, where vertices have names: the ids are their hashes then."""
    unsigned: bool = False
    """Whether ids below 0 stand for those from 2^63 on, less 2^64."""

    def vertex(self, row: int) -> str:
        """Return the vertex of a row, for messages."""
        ids = self.ids.view(np.uint64) if self.unsigned else self.ids
        return str(ids[row]) if self.name is None else self.name(row)


class LabelSource(ABC):
    """Labelled vertices of an input, which can be read more than once.

    Attributes
    ----------
    source
        What is read, for messages.
    noun, verb
        What is given to a vertex, for messages, and how one says that it is.
    named
        Whether the vertices of the graph have names; set before `blocks` is called.
    """

    source: str
    noun = "label"
    verb = "labelled"

    named = False
    texts: LabelNames | None = None
    """Numbers the labels that are texts, if there may be some, while `blocks` are read."""

    @property
    def label_names(self) -> tuple[str, ...] | None:
        """The labels by number where they are texts; known once `blocks` is exhausted."""
        return None if self.texts is None else self.texts.names

    @property
    def declares(self) -> bool:
        """Whether the input may name a vertex only once; otherwise the same label may be given again."""
        return False

    @abstractmethod
    def blocks(self) -> Iterator[LabelBlock]:
        """Read the labels from the beginning; raises InputError where the input is wrong."""

    def unlabelled(
        self,
        vertex: str,
        lacks: Callable[[Int64s], npt.NDArray[np.bool_]],  # noqa: ARG002 - for inputs that can say more
    ) -> InputError:
        """Make the error for a graph with unlabelled vertices.

        Parameters
        ----------
        vertex
            The id or the name of one of them.
        lacks
            Returns for int64[k] ids bool[k]: whether they are vertices without a label.
        """
        return InputError(
            f"{self.source}: vertex {vertex} has an edge but no {self.noun}; "
            f"give a {self.noun} to every vertex that has an edge"
        )


class LabelArrays(LabelSource):
    """Labels that are in memory.

    Parameters
    ----------
    ids : integer[k]
        Vertices.
    values : integer[k]
        Their labels.
    """

    source = "labels"

    def __init__(self, ids: npt.NDArray[Any], values: Int64s) -> None:
        unsigned = ids.dtype == np.uint64
        words = np.ascontiguousarray(ids, np.uint64 if unsigned else np.int64).view(np.int64)
        numbers = np.ascontiguousarray(values, np.int64)
        self._block = LabelBlock(words, numbers, "entry {}".format, unsigned=unsigned)

    def blocks(self) -> Iterator[LabelBlock]:
        """Return all labels as one block."""
        yield self._block


def place_labels(
    labels: LabelSource,
    index: VertexIndex,
    known: tuple[int, int] | None,
    num_vertices: int,
    host: MemoryBudget,
    unused: Unused | None = None,
) -> npt.NDArray[np.int32]:
    """Return each vertex's label, by rank.

    Parameters
    ----------
    labels
        The vertices and their labels.
    index
        The vertices that need a label.
    known
        Smallest and largest id, if the graph's file declares its vertices: a label of another vertex is an error. All
        other labels of vertices without an edge are ignored, as isolated vertices are.
    num_vertices
        The number of ranks, n.
    host
        The budget for temporary arrays of the call, block by block. The result outlives the call, so the CALLER
        reserves its 4 n bytes, before the call, as well as the memory that `labels` was opened with.

    unused
        Called with the number of labels of vertices without an edge.

    Returns
    -------
    int32[n]

    Raises
    ------
    InputError
        A label out of range, for an unknown vertex or in conflict with another; a vertex without a label; or labels
        of other vertices alone.
    BudgetExceeded
        If a block does not fit in the budget.
    """
    placed = np.full(num_vertices, _UNLABELLED, np.int32)
    example = ""
    for block in labels.blocks():
        if not example and len(block.ids):
            example = block.vertex(0)
        with host.reserve(_BYTES_A_ROW * len(block.ids), f"matching the labels of {labels.source}"):
            _place_block(labels, block, index, known, placed, unused)
    missing = int(np.argmin(placed)) if num_vertices else 0
    if example and num_vertices and (placed == _UNLABELLED).all():
        raise InputError(
            f"{labels.source}: none of its vertices, such as {example}, has an edge in the graph, whose vertices are "
            f"such as {index.vertex(0)}; write the ids of the graph, or name the attribute that has its names "
            "(graph.vertex_name)"
        )
    if num_vertices and placed[missing] == _UNLABELLED:

        def lacks(ids: Int64s) -> npt.NDArray[np.bool_]:
            ranks = index.lookup(ids)
            mask: npt.NDArray[np.bool_] = (ranks >= 0) & (placed[ranks] == _UNLABELLED)
            return mask

        raise labels.unlabelled(index.vertex(missing), lacks)
    return placed


def _place_block(
    labels: LabelSource,
    block: LabelBlock,
    index: VertexIndex,
    known: tuple[int, int] | None,
    placed: npt.NDArray[np.int32],
    unused: Unused | None,
) -> None:
    """Write the labels of a block, or raise the error of its first bad row."""
    ids, values = block.ids, block.values
    bad = (values < 0) | (values >= _LIMIT)
    if known is not None:
        bad |= (ids < known[0]) | (ids > known[1])
    end = int(np.argmax(bad)) if bad.any() else len(ids)
    ranks = index.lookup(ids[:end], block.unsigned)
    if unused is not None:
        unused(int(np.count_nonzero(ranks < 0)))
    clash = _write_labels(ranks, values, labels.declares, placed)
    row = end if clash < 0 else clash
    if row == len(ids):
        return
    vertex, value = block.vertex(row), values[row]
    if clash >= 0 and labels.declares:
        what = f"vertex {vertex} is declared a second time; remove one of the lines"
    elif clash >= 0:
        what = f"vertex {vertex} is {labels.verb} a second time, with a different {labels.noun}; keep one of them"
    elif known is not None and 0 <= value < _LIMIT:
        what = (
            f"vertex {vertex} does not exist, the graph's ids go from {known[0]} to {known[1]}; "
            "remove the line or use the graph's own ids"
        )
    else:
        what = f"label {value} is out of range; use labels from 0 to 2147483647"
    raise InputError(f"{labels.source}, {block.place(row)}: {what}")


@compiled("i8[::1], i8[:], b1, i4[::1]")
def _write_labels(ranks: Int64s, values: Int64s, once: bool, placed: npt.NDArray[np.int32]) -> int:
    """Write the labels of rows with a rank; stop at a row whose vertex has another label (or any, if `once`).

    Returns
    -------
    That row, -1 if there is none.
    """
    for row in range(ranks.size):
        rank = ranks[row]
        if rank >= 0:
            old = placed[rank]
            if old >= 0 and (once or old != values[row]):
                return row
            placed[rank] = values[row]
    return -1
