"""Rows of a graph that is laid out by label: launches of ``label_rows.cu``.

A small graph is made with one wait for the device: rooms are as large as the statistics of the data graph allow, and
kernels read what others found. A large one waits once more, for the number of its arcs.
"""

from functools import lru_cache, partial
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cuda.device import WARP, Device, fetch, send
from longwall.kernels.cuda.runtime.constants import LABEL_TOTALS
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.label_rows import KeptEdges, LabelRows, NewArray, Roles, WrongSizes

Array = Any  # a CuPy array

SMALL = 16 << 20  # bytes of the neighbours that there may be at most
_THREADS = 128  # of a block that numbers
_LEAST_CHUNK, _MOST_CHUNKS = 128, 2048  # what one warp numbers; each adds up what all chunks before its own have
_NUMBERS, _LABELS, _PLACES, _COUNTS = map(np.dtype, (np.uint32, np.int32, np.int64, np.uint64))
_ALIGNED = 8  # bytes: arrays begin at multiples of it


def rows_by_label(
    device: Device,
    graph: GraphArrays,
    roles: Roles,
    kept: KeptEdges,
    *,
    sliced: bool,
    new_array: NewArray,  # noqa: ARG001 - rows stay on the device
    edge_labels: NDArray[np.int32] | None = None,
) -> LabelRows:
    """Make rows by label."""
    assert edge_labels is None, "rows with labels of edges are made on the host"
    return _Layout(device, graph, roles, kept, sliced).made()


def room_for_arcs(graph: GraphArrays, roles: Roles) -> int:
    """Return the most arcs that a graph in these roles can have."""
    return int(max(roles.times.tolist())) ** 2 * graph.num_arcs


class _Layout:
    """A graph on its way: the arrays that only its kernels read are in one room."""

    def __init__(self, device: Device, graph: GraphArrays, roles: Roles, kept: KeptEdges, sliced: bool):
        self._device, self._graph, self._sliced, self._given = device, graph, sliced, roles
        self._rows = graph.rows
        self._kinds, self._roles = len(roles.times), kept.allowed.shape[0]
        self._number, n = roles.number, graph.num_vertices
        self._chunk, self._chunks = _chunks(n)
        self._new_chunk, self._new_chunks = _chunks(self._number)
        zeros = LABEL_TOTALS + self._roles + 2 * self._new_chunks
        words = _words(roles, kept)
        sizes = {
            "sums": 16 * self._new_chunks,
            "place": 4 * n,
            "origin": 4 * self._number,
            "slices": 4 * self._number * (self._roles + 1),
            "final": 4 * self._number,
            "new_role": 2 * self._number,
            "role": 2 * self._number,
            "counts": 4 * self._kinds * self._chunks,
            "kind": n,
            "words": words.nbytes,
        }
        self._work = _Block(device, {"totals": 8 * (LABEL_TOTALS + self._roles), **sizes})
        self._at = self._work.at
        self._words = self._at["words"]
        send(words, self._words)
        self._zeros = zeros

    def made(self) -> LabelRows:
        """Make the rows."""
        number, stride = self._number, self._roles + 1
        labelled = self._graph.labels.size == self._graph.num_vertices
        most = room_for_arcs(self._graph, self._given)
        at_once = 4 * most <= SMALL
        new = _Block(
            self._device,
            {
                "origin": 4 * number,
                "indptr": 8 * (number + 1),
                "split": 8 * number,
                "labels": 4 * number if labelled else 0,
                "slices": 4 * number * stride if self._sliced else 0,
                "indices": 4 * most if at_once else 0,
            },
        )
        arcs_block = new
        labels = new.at["labels"] if labelled else self._graph.labels
        slices = new.at["slices"] if self._sliced else None
        self._number_vertices()
        self._keep_vertices(labelled, new.at["origin"], labels, slices, new.at["indptr"])
        if not at_once:
            arcs_block = _Block(self._device, {"indices": 4 * int(self._totals()[1])})
        self._fill(new.at["origin"], slices, new.at["indptr"], arcs_block.at["indices"], new.at["split"])
        there, arcs, longest, longest_out, squares, numbered, *role_arcs = self._totals().tolist()
        if numbered != number:
            raise WrongSizes
        return LabelRows(
            origin=new.array("origin", _NUMBERS, there),
            labels=new.array("labels", _LABELS, there) if labelled else self._graph.labels,
            slices=new.array("slices", _NUMBERS, there * stride) if self._sliced else None,
            indptr=new.array("indptr", _PLACES, there + 1),
            split=new.array("split", _PLACES, there),
            indices=arcs_block.array("indices", _NUMBERS, arcs),
            edge_labels=None,
            role_arcs=tuple(accumulate(role_arcs, max)),
            max_degree=longest,
            max_out_degree=longest_out,
            sum_degree_squared=squares,
            capacity=new.nbytes + (0 if at_once else arcs_block.nbytes),
            fetch=partial(_fetched, self._device),
        )

    def _number_vertices(self) -> None:
        """Number the vertices in their roles."""
        at, n = self._at, self._graph.num_vertices
        cut = self._kinds, self._roles, self._chunk, self._chunks
        zeros = at["totals"], self._zeros
        self._over_chunks(
            "find_kinds", self._chunks, (self._graph.labels, n, self._words, *cut, at["kind"], at["counts"], *zeros)
        )
        out = at["place"], at["origin"], at["role"], at["totals"]
        given = self._words, self._kinds, self._roles, int(self._sliced), self._chunk, self._chunks
        self._over_chunks("number_roles", self._chunks, (at["kind"], n, *given, at["counts"], self._number, *out))

    def _keep_vertices(self, labelled: bool, origin: Array, labels: Array, slices: Array, indptr: Array) -> None:
        """Count rows, and leave out those without neighbours."""
        at, cut = self._at, (self._new_chunk, self._new_chunks)
        which = at["kind"], at["origin"], at["role"], self._words, self._kinds, self._roles
        counted = at["totals"], self._number, at["slices"], at["sums"]
        self._over("count_label_rows", self._number, (*self._rows, *which, *cut, *counted))
        old = at["origin"], at["role"], at["slices"], self._roles, *cut, self._number, at["sums"]
        new = at["final"], origin, at["new_role"], labels, slices, indptr
        self._over_chunks("leave_out", self._new_chunks, (self._graph.labels, int(labelled), *old, *new, at["totals"]))

    def _fill(self, origin: Array, slices: Array, indptr: Array, indices: Array, split: Array) -> None:
        """Write the rows."""
        at = self._at
        which = at["kind"], at["place"], self._words, self._kinds, self._roles, origin, at["new_role"], at["final"]
        out = indptr, indices, split, at["totals"]
        if self._sliced:
            self._over("fill_label_slices", self._number * self._roles, (*self._rows, *which, slices, *out))
        else:
            self._over("fill_label_rows", self._number, (*self._rows, *which, *out))

    def _over(self, function: str, warps: int, arguments: tuple[Any, ...]) -> None:
        self._device.launch_over("label_rows.cu", function, max(warps, 1) * WARP, arguments)

    def _over_chunks(self, function: str, chunks: int, arguments: tuple[Any, ...]) -> None:
        warps = _THREADS // WARP
        shared = 4 * warps * self._kinds
        self._device.launch(
            "label_rows.cu", function, arguments, blocks=-(-chunks // warps), threads=_THREADS, shared=shared
        )

    def _totals(self) -> NDArray[np.uint64]:
        """Wait for the kernels; return what they found. See `exact`."""
        return fetch(self._work.array("totals", _COUNTS, LABEL_TOTALS + self._roles))


class _Block:
    """Arrays that share one block of memory, since the host takes 10 us to make an array.

    Attributes
    ----------
    at
        Addresses of the arrays, for kernels.
    nbytes
        Bytes of the block.
    """

    def __init__(self, device: Device, sizes: dict[str, int]):
        ends = list(accumulate([-(-size // _ALIGNED) * _ALIGNED for size in sizes.values()], initial=0))
        self._xp, self.nbytes = device.xp, ends[-1]
        self._memory = device.xp.empty(self.nbytes, np.uint8).data
        base = int(self._memory.ptr)
        self.at = {name: base + start for name, start in zip(sizes, ends, strict=False)}

    def array(self, name: str, kind: np.dtype[Any], number: int) -> Array:
        """Return the first entries of an array; they keep the whole block alive."""
        return self._xp.ndarray((number,), kind, self._memory + (self.at[name] - int(self._memory.ptr)))


def _chunks(number: int) -> tuple[int, int]:
    """Return how many numbers a chunk has, and how many chunks there are, one at least."""
    chunk = max(_LEAST_CHUNK, -(-number // (_MOST_CHUNKS * WARP)) * WARP)
    return chunk, max(-(-number // chunk), 1)


@lru_cache(maxsize=64)  # a layout makes its roles and edges once, and these are keys by identity
def _words(roles: Roles, kept: KeptEdges) -> NDArray[np.int32]:
    """Return the roles as kernels read them."""
    times = roles.times.tolist()
    kinds = (kind for kind, number in enumerate(times) for _ in range(number))
    allowed = kept.allowed[:, :, 0].ravel().tolist()
    return np.array([*roles.labels.tolist(), *times, *roles.first_role.tolist(), *kinds, *allowed], np.int32)


def _fetched(device: Device, array: Array, out: NDArray[Any] | None = None) -> NDArray[Any]:
    """Copy an array, whose kernel has ended, to the host: from any thread, and while other kernels run."""
    with device.xp.cuda.Device(device.number), device.faults():
        found: NDArray[Any] = array.get(stream=device.xp.cuda.Stream(non_blocking=True), out=out)
        return found
