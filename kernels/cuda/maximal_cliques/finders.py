"""Maximal cliques on the device: stores of the warps, and launches of ``finders.cu``."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cuda.device import WARP, Device, exact
from longwall.kernels.cuda.runtime.compile import constants
from longwall.kernels.cuda.runtime.constants import DONATION_HEAD_WORDS, FILL_BITS, FINDER_LEVELS, WIDE_NUMBERS
from longwall.kernels.interface.engine import WorkspaceTooLarge
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.maximal_cliques import COUNT, LIST, VERTICES, DegeneracyOrder
from longwall.kernels.interface.workspaces import NARROW

Array = Any  # a CuPy array

_WARPS = 8  # of a block, as in the kernel's launch bounds
_BLOCKS, _WIDE_BLOCKS = 4, 2  # per multiprocessor; where bitmaps are wide, kernels need more registers
_SLOTS, _LEAST_SLOTS = 1024, 8  # of the ring of tasks
_DONATION_ROWS = 512  # of excluded vertices that are handed over with a task
_LEAST_DONATION = 12  # candidates of a node that is
_PATIENCE = 10_000  # cycles that a warp works before it gives a part of its work away
_STEPS = 32  # nodes of the search between two looks at the other warps
_SHARED_SIZES = 512  # sizes of cliques that are counted per block
_CONTROL_WORDS = 4
_NO_CLIQUE = np.uint64(0xFFFFFFFFFFFFFFFF)
# Few vertices have more neighbours, and with theirs every warp's store would be large: they have a launch of their own.
_MOST_DEGREE = 2048


def longest_for(degeneracy: int) -> int:
    """Return the later neighbours for which kernels are compiled: few variants, so that they are found in the cache."""
    if degeneracy <= NARROW:
        return NARROW
    step = 64 if degeneracy <= 512 else 256
    return -(-degeneracy // step) * step


def clique_finder_header(mode: int, longest: int) -> str:
    """Write the ``generated.cuh`` that ``finders.cu`` includes."""
    return constants(
        {
            "kMode": mode,
            "kLongest": longest,
            "kSharedSizes": _shared_sizes(longest),
            "kStateBytes": _state_bytes(mode),
            "kDonationRows": _DONATION_ROWS,
            "kDonationWords": _slot_words(longest),
            "kLeastDonation": _LEAST_DONATION,
            "kBlocks": _blocks(longest),
            "kPatience": _PATIENCE,
            "kStepsBetweenPauses": _STEPS,
        }
    )


def _blocks(longest: int) -> int:
    return _BLOCKS if longest <= NARROW else _WIDE_BLOCKS


def _shared_sizes(longest: int) -> int:
    return min(longest + 2, _SHARED_SIZES)


def _state_bytes(mode: int) -> int:
    return (
        24 * FINDER_LEVELS
        + 8 * NARROW
        + 8 * FINDER_LEVELS
        + 4 * NARROW
        + 56
        + 16 * (FINDER_LEVELS if mode == VERTICES else 1)
    )


def _slot_words(longest: int) -> int:
    """Return the words of a slot of the ring; donations.cuh says how they are laid out."""
    narrow = ((DONATION_HEAD_WORDS + longest + 2 + NARROW + 1) & ~1) + 2 * NARROW + 2 * _DONATION_ROWS
    return max(narrow, (DONATION_HEAD_WORDS + 3 * (longest // 32) + 1) & ~1)


def _layout(mode: int, longest: int, rows: int, wide_words: int) -> tuple[list[int], int]:
    """Return where the arrays of a warp begin, and how many words of 32 bits they take; `Layout` in the kernel."""
    words, wide = longest // 32, max(longest - NARROW, 0)
    sizes = [
        2 * rows,
        longest + 2,
        3 * words,
        rows if wide else 0,
        longest if wide else 0,
        longest * words if wide else 0,
        wide_words if wide else 0,
        (wide + 2) * 3 * words if wide else 0,
        (wide + 2) * WIDE_NUMBERS if wide else 0,
        _state_bytes(mode) // 4 if mode == LIST else 0,
    ]
    ends = np.cumsum(sizes).tolist()
    return [0, *ends[:-1]], ends[-1] + ends[-1] % 2


class _Roots:
    """The vertices with degrees in a range, and the stores of the warps that search below them.

    Parameters
    ----------
    device, order
        The device, with the graph's order on it.
    mode
        What is wanted.
    degrees
        Roots have more neighbours than the first number says, and at most as many as the second one.
    memory
        The most bytes.
    """

    def __init__(
        self,
        device: Device,
        order: DegeneracyOrder,
        mode: int,
        degrees: tuple[int, int],
        memory: int,
    ):
        xp, longest = device.xp, longest_for(order.degeneracy)
        words, rows = longest // 32, degrees[1]
        # Rows of earlier neighbours, and of later ones that are excluded.
        layout, each = _layout(mode, longest, rows, min(2 * order.wide_words + longest * words, rows * words))
        slot = _slot_words(longest)
        slots = min(max(memory // 8 // (4 * slot), _LEAST_SLOTS), _SLOTS)
        left = memory - 4 * slots * slot
        if left < 4 * each:
            raise WorkspaceTooLarge(memory - left + 4 * each)
        wanted = device.multiprocessors * _blocks(longest) * _WARPS
        warps = min(wanted, left // (4 * each))
        self.warps = min(warps, _WARPS)
        self.blocks = warps // self.warps
        self.degrees = degrees
        self.store = xp.empty(self.blocks * self.warps * each, np.uint32)
        self.layout, self.each = xp.asarray(np.array(layout, np.int64)), each
        self.ring = xp.empty((slots, slot), np.uint32)
        self.control = xp.zeros(_CONTROL_WORDS, np.uint32)
        self._numbers = xp.arange(slots, dtype=np.uint32)
        self.begin()

    def begin(self) -> None:
        """Forget what was searched."""
        self.ring[:, 0] = self._numbers
        self.control[:] = 0


class _Finder:
    """Launches of the kernel; `mode` and where the results go are of a subclass."""

    workspace_bytes = 0

    def __init__(
        self, device: Device, graph: GraphArrays, order: DegeneracyOrder, mode: int, min_size: int, memory: int
    ):
        xp, longest = device.xp, longest_for(order.degeneracy)
        self._device, self._graph, self._order, self._min_size = device, graph, order, min_size
        self._generated = clique_finder_header(mode, longest)
        self._shared = 8 * _shared_sizes(longest), _state_bytes(mode)
        self._sizes = xp.zeros(longest + 2, np.int64)
        self._result = device.result()
        few = min(graph.max_degree, _MOST_DEGREE)
        self._roots = [_Roots(device, order, mode, (0, few), memory if few == graph.max_degree else memory // 2)]
        if few < graph.max_degree:
            self._roots.append(_Roots(device, order, mode, (few, graph.max_degree), memory - memory // 2))
        # What the kernel writes, where a subclass has it.
        self._vertices, self._offsets, self._members = (xp.zeros(1, kind) for kind in (np.int64, np.int64, np.uint32))
        self._listing, self._capacity = xp.zeros(2, np.uint64), 0

    def _launch(self, roots: _Roots, first: int, last: int, *, fresh: bool) -> None:
        graph, order, warps = self._graph, self._order, roots.blocks * roots.warps
        sizes, state = self._shared
        rows = (graph.indptr, graph.indices, order.rank, order.indptr, order.indices)
        work = (roots.store, roots.layout, roots.each, roots.ring, len(roots.ring), roots.control, int(fresh))
        found = (self._device.stop_flag, self._sizes, self._vertices, graph.num_vertices)
        listing = (self._listing, self._capacity, self._offsets, self._members, self._result)
        self._device.launch(
            "maximal_cliques/finders.cu",
            "find_cliques",
            (
                *rows,
                first,
                last,
                min(max((last - first) // (4 * warps), 1), WARP),
                *roots.degrees,
                self._min_size,
                *work,
                *found,
                *listing,
            ),
            blocks=roots.blocks,
            threads=roots.warps * WARP,
            shared=sizes + roots.warps * state,
            generated=self._generated,
        )

    def add(self, first: int, last: int) -> None:
        """Add the maximal cliques whose earliest vertices are `first` to `last` - 1."""
        for roots in self._roots:
            roots.begin()
            self._launch(roots, first, last, fresh=True)
        self._device.synchronize()

    def _exact_sizes(self) -> NDArray[np.int64]:
        """Cliques by size, int64[degeneracy + 2], on the host."""
        exact(self._result)
        sizes: NDArray[np.int64] = self._sizes.get()[: self._order.degeneracy + 2]
        return sizes


class CudaCliqueSizes(_Finder):
    """Counts maximal cliques by size."""

    def __init__(self, device: Device, graph: GraphArrays, order: DegeneracyOrder, min_size: int, memory: int):
        super().__init__(device, graph, order, COUNT, min_size, memory)

    def counts(self) -> NDArray[np.int64]:
        """Maximal cliques by size so far."""
        return self._exact_sizes()


class CudaCliqueVertices(_Finder):
    """Counts maximal cliques per vertex."""

    def __init__(self, device: Device, graph: GraphArrays, order: DegeneracyOrder, min_size: int, memory: int):
        results = 16 * graph.num_vertices
        if results >= memory:
            raise WorkspaceTooLarge(results)
        super().__init__(device, graph, order, VERTICES, min_size, memory - results)
        self._vertices = device.xp.zeros((2, graph.num_vertices), np.int64)

    def counts(self) -> NDArray[np.int64]:
        """Cliques of every vertex so far, the size of its largest one, and cliques by size."""
        counts = np.zeros((3, self._graph.num_vertices), np.int64)
        sizes = self._exact_sizes()[1:]
        counts[:2] = self._vertices.get()
        counts[2, : len(sizes)] = sizes
        return counts


class CudaCliqueLister(_Finder):
    """Lists maximal cliques.

    Where a list is full, the warps save what they are at, and the next launch goes on there.
    """

    def __init__(
        self,
        device: Device,
        graph: GraphArrays,
        order: DegeneracyOrder,
        min_size: int,
        capacity: int,
        memory: int,
    ):
        capacity = max(capacity, order.degeneracy + 1)
        results = 4 * capacity + 8 * (capacity // 2 + 2)
        if results >= memory:
            raise WorkspaceTooLarge(results)
        super().__init__(device, graph, order, LIST, min_size, memory - results)
        self._capacity = capacity
        self._members = device.xp.empty(capacity, np.uint32)
        self._offsets = device.xp.zeros(capacity // 2 + 2, np.int64)  # a clique has two vertices or more
        self._range, self._searched, self._fresh = (0, 0), 0, True

    def begin(self, first: int, last: int) -> None:
        """Begin with the cliques whose earliest vertices are `first` to `last` - 1."""
        self._range, self._searched, self._fresh = (first, last), 0, True
        for roots in self._roots:
            roots.begin()

    def following(self) -> tuple[NDArray[np.int64], NDArray[np.uint32]] | None:
        """Return the next cliques."""
        while self._searched < len(self._roots):
            self._listing[0], self._listing[1] = 0, _NO_CLIQUE
            self._launch(self._roots[self._searched], *self._range, fresh=self._fresh)
            self._device.synchronize()
            taken, refused = self._listing.get().tolist()
            self._fresh = refused == int(_NO_CLIQUE)
            if self._fresh:
                self._searched += 1
            last = min(taken, refused)
            rows, fill = last >> FILL_BITS, last & ((1 << FILL_BITS) - 1)
            if rows:
                return self._offsets[: rows + 1].get(), self._members[:fill].get()
        return None
