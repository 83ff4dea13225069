"""The first half of a build: from blocks of an input to distinct edges between positions, sorted.

Ids below 2^32 are sorted as they come. Larger ids wait in scratch arrays; then, and where the ids of a small graph
are spread over a wide range, the distinct ids are sorted and every id is replaced by its position among them.
"""

from collections.abc import Callable, Iterator
from enum import Enum
from functools import partial
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from longwall.kernels.interface.graph_arrays import MAX_VERTICES
from longwall.kernels.interface.sorting import KeyLayout
from longwall.kernels.jit.compile import compiled
from longwall.storage.errors import InputError
from longwall.storage.graph.graph_sink import Sink
from longwall.storage.ingest.arc_directions import drop_directions
from longwall.storage.ingest.data_notes import CHOICE
from longwall.storage.ingest.names.name_table import NameTable
from longwall.storage.ingest.names.named_positions import NamedPositions
from longwall.storage.ingest.readers.edge_stream import EdgeBlock, EdgeStream
from longwall.storage.ingest.tables.columns import EDGES
from longwall.storage.sorting.key_sorter import ScratchSorter
from longwall.storage.sorting.scratch_arrays import Scratch, ScratchArray
from longwall.storage.sorting.sorted_keys import KeyBlock, Keys, SortedKeys, merging_memory, sort_distinct
from longwall.storage.system.concurrency import core_count, map_ordered
from longwall.storage.system.plain_text import visible

_SHIFT = np.uint64(32)
_LOW = np.uint64(0xFFFF_FFFF)
_TOP = np.uint64(1 << 63)
_EDGE_BYTES = 64  # of temporaries, for an edge whose ids are looked at
_WORTH_A_THREAD = 2**14  # edges
_KEY_BYTES = 12  # of a key and its label
_ARC_IDS = 2**31  # below it a key has room for the direction of an edge
_NO_EDGE = np.uint64(0)  # as a key it would be a loop
_LABELLED, _LABELLED_ONCE = KeyLayout(2, reduce="distinct"), KeyLayout(2)  # words: the edge, its label

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Clash = Callable[[int, int, int], Exception]
"""Makes the error for an edge that is given again and must not be: (its word, one label, the other)."""


class Positions:
    """The ids that the vertices of a graph may have, in ascending order.

    Parameters
    ----------
    base
        The id of position 0, where positions are ids less a constant.
    size
        Positions.
    ids : ScratchArray, optional
        uint64[size]: the id of each position, where they are not; as words, see `_flipped`.
    memory
        Bytes for temporaries.
    sign
        What the ids of the input may be.

    Attributes
    ----------
    named
        Whether ids are hashes of names.
    key_base
        What the ends of edges are larger by than their positions.
    id_type
        uint64 where there are ids from 2^63 on, else int64.
    """

    named = False

    def __init__(self, base: int, size: int, ids: ScratchArray | None, memory: int, sign: "Sign | None" = None) -> None:
        self.size = size
        self.key_base = base if ids is None else 0
        self.id_type = np.dtype(np.uint64 if sign is Sign.UNSIGNED else np.int64)
        self._base, self._ids, self._memory, self._sign = base, ids, memory, sign

    def ids(self, start: int, stop: int) -> Int64s:
        """Return int64[stop - start]: the ids of consecutive positions; not to be changed."""
        if self._ids is None:
            return np.arange(self._base + start, self._base + stop)
        return _flipped(self._ids.read(start, stop), self._sign).view(np.int64)

    def find(self, ids: Int64s) -> Int64s:
        """Return int64[k]: the positions of int64[k] ids, -1 for ids without a position."""
        if self._ids is None:
            positions = ids - self._base
            positions[(ids < self._base) | (positions >= self.size)] = -1
            return positions
        positions = np.full(len(ids), -1, np.int64)
        words = _flipped(ids.view(np.uint64), self._sign)
        for start, table in self._ids.tables(self._memory):
            at = np.searchsorted(table, words)
            np.minimum(at, len(table) - 1, out=at)
            found = table[at] == words
            positions[found] = at[found] + start
        return positions

    def show(self, position: int) -> str:
        """Return an id for a message."""
        return str(self.ids(position, position + 1).view(self.id_type)[0])

    def write_names(self, sink: Sink) -> None:
        """Write nothing: ids are integers."""

    def drop(self) -> None:
        """Free the table of ids."""
        if self._ids is not None:
            self._ids.drop()


VertexPositions = Positions | NamedPositions


class Sign(Enum):
    """What the ids of an input may be, where some do not fit 63 bits."""

    SIGNED = "below 0"
    UNSIGNED = "from 2^63 on"


def _flipped(words: npt.NDArray[np.uint64], sign: Sign | None) -> npt.NDArray[np.uint64]:
    """Return ids as words that ascend with them, and these words as ids."""
    return words ^ _TOP if sign is Sign.SIGNED else words


class EdgeCollector:
    """Reads an input to its end.

    Attributes
    ----------
    known
        Smallest and largest id of the input, loops included; the largest one is 2^63 - 1 if some ids are larger.
    positions
        Where the ends of `edges` stand.
    edges
        Distinct edges: the ends' positions plus `positions.key_base`, the smaller in the high half.
    rows, kept
        The number of edges that were read, and the number of these that are no loops.
    arcs
        Of entries of a matrix: the number of distinct ones, loops excepted; an estimate if there are 2^31 vertices or
        more, as keys have no room for directions then. Otherwise 0.

    Parameters
    ----------
    stream
        The input.
    scratch
        Work space.

    Raises
    ------
    InputError
        A file has no edge, there are 2^32 or more vertices, or an edge has two labels.
    """

    positions: VertexPositions
    edges: SortedKeys

    def __init__(self, stream: EdgeStream, scratch: Scratch) -> None:
        self.known = (2**63, -1)
        self._sign: Sign | None = None
        self._label_names = stream.edge_label_names
        self._notes = stream.notes
        self._source, self._scratch, self._repeated = stream.source, scratch, stream.repeated
        self._declared = stream.declared
        self._wide, self._wide_labels = scratch.array(np.int64), scratch.array(np.int32)
        self.rows = self.kept = self.arcs = 0
        self._keep_directions = False
        self._collect(stream)
        if self._declared.matrix and not self._keep_directions:
            self.arcs = min(self.kept, 2 * len(self.edges))

    def _collect(self, stream: EdgeStream) -> None:
        blocks = iter(stream.blocks)
        first = next(blocks, None)
        if first is not None and first.names is not None:
            self._collect_named(chain((first,), blocks))
            return
        memory, step = self._scratch.work * 3 // 4, self._step()
        size = self._declared.vertices  # known from the first block on
        self._keep_directions = self._declared.matrix and size is not None and size < _ARC_IDS
        keys = self._keys(chain(() if first is None else (first,), blocks), step)
        narrow = self._sorted(keys, memory, self._clash_of(Positions(0, 2**32, None, 0)))
        self._require_edges()
        low, high = self.known
        # A table over the range of ids costs less than sorting all ends.
        if len(self._wide) == 0 and high - low < 8 * self.kept + 1024:
            self.positions = Positions(low, high - low + 1, None, memory // 4)
            self.edges = narrow
        else:
            self._compact(narrow)

    def _collect_named(self, blocks: Iterator[EdgeBlock]) -> None:
        """Collect edges between vertices with names: the ends are hashes, until all names have numbers."""
        scratch, memory, step = self._scratch, self._scratch.work // 2, self._step()
        table = NameTable(self._source, scratch, memory)
        for block in blocks:
            assert block.names is not None
            table.add(block.names.hashed, block.names.place)
            self.rows += len(block.src)
            if self.rows:
                self.known = (0, 0)
            for start in range(0, len(block.src), step):
                part = slice(start, start + step)
                labels = block.edge_labels[part] if block.edge_labels is not None else None
                self._put_aside(block.src[part], block.dst[part], labels, block.src[part] != block.dst[part])
        self._require_edges()
        self.positions = table.finish()
        empty = SortedKeys.empty(scratch, labelled=False)
        replaced = (self._replaced(ends, labels) for ends, labels in self._ends(empty, step))
        self.edges = self._sorted(replaced, memory, self._clash_of(self.positions))
        self._wide.drop()
        self._wide_labels.drop()

    def _require_edges(self) -> None:
        if self.known[1] < 0 and not self._declared.may_be_empty:
            raise InputError(f"{self._source}: there are no edges; give a graph with at least one edge")
        if self.kept == 0:
            self.known = (0, -1)
            if self.rows and any(note.kind == CHOICE for note in self._notes.all()):
                self._notes.guess(f"{self._source}: every edge is a loop in the columns that are read; {EDGES.advice}")

    def _put_aside(self, src: Int64s, dst: Int64s, labels: Int32s | None, chosen: npt.NDArray[np.bool_]) -> None:
        """Let edges whose ends are no words wait in scratch arrays."""
        self._wide.append(np.column_stack((src[chosen], dst[chosen])).ravel())
        self.kept += int(np.count_nonzero(chosen))
        if labels is not None:
            self._wide_labels.append(labels[chosen])

    def _step(self) -> int:
        """How many edges are looked at at once: temporaries take an eighth of the work space."""
        return max(1, self._scratch.work // 8 // _EDGE_BYTES)

    def _sorted(self, blocks: Iterator[KeyBlock], memory: int, clash: Clash) -> SortedKeys:
        """Sort edges, `memory` bytes of the work space being for chunks; of equal edges one stays, or none may be."""
        scratch = self._scratch
        # The first block says whether edges are labelled.
        first = next(blocks, KeyBlock(np.empty(0, np.uint64), None))
        blocks = chain((first,), blocks)
        if first.labels is None:
            made = sort_distinct((keys for keys, _ in blocks), scratch, memory)
            return self._without_directions(made) if self._keep_directions else made
        made = SortedKeys.empty(scratch, labelled=True)
        with ScratchSorter(scratch, _LABELLED_ONCE if self._repeated else _LABELLED, memory) as sorter:
            for keys, labels in blocks:
                assert labels is not None
                sorter.add((keys, labels.astype(np.uint64)))
            sorter.finish()
            last_key, last_label = np.empty(0, np.uint64), np.empty(0, np.int32)
            for (keys, words), _ in sorter.blocks(merging_memory(scratch)):
                labels = words.astype(np.int32)
                if self._keep_directions:
                    self.arcs, keys = self.arcs + len(keys), keys.copy()
                    last = (last_key[0], int(last_label[0])) if len(last_key) else (_NO_EDGE, 0)
                    count = drop_directions(keys, labels, *last)
                    keys, labels = keys[:count], labels[:count]
                _check_distinct(np.append(last_key, keys[:1]), np.append(last_label, labels[:1]), clash)
                _check_distinct(keys, labels, clash)
                made.append(KeyBlock(keys, labels))
                scratch.settle()
                if len(keys):
                    last_key, last_label = keys[-1:].copy(), labels[-1:].copy()
        return made

    def _without_directions(self, arcs: SortedKeys) -> SortedKeys:
        """Return the edges of arcs, which are counted and dropped."""
        self.arcs = len(arcs)
        if arcs.keys.is_whole:
            arcs.keys.shrink(lambda keys: int(drop_directions(keys, None, _NO_EDGE, 0)))
            return arcs
        made, last = SortedKeys.empty(self._scratch, labelled=False), _NO_EDGE
        for keys, _ in arcs.blocks(self._step() * _KEY_BYTES):
            edges = keys.copy()
            edges = edges[: drop_directions(edges, None, last, 0)]
            made.append(KeyBlock(edges, None))
            self._scratch.settle()
            last = keys[-1] >> np.uint64(1)
        arcs.drop()
        return made

    def _keys(self, blocks: Iterator[EdgeBlock], step: int) -> Iterator[KeyBlock]:
        """Yield the edges between ids below 2^32 as keys, which threads make; the others go to scratch arrays."""
        workers = max(1, min(core_count(), step // _WORTH_A_THREAD))
        pack = partial(_pack, directions=self._keep_directions)
        for packed in map_ordered(pack, _parts(blocks, max(1, step // (workers + 1))), workers):
            self.rows += packed.rows
            low, high = packed.low, packed.high
            if low < 0:
                self._require_sign(Sign.UNSIGNED if packed.unsigned else Sign.SIGNED)
                low, high = 0, 2**63 - 1
            self.known = min(self.known[0], low), max(self.known[1], high)
            if packed.wide is not None:
                src, dst, labels = packed.wide
                self._put_aside(src, dst, labels, ((src | dst).view(np.uint64) > _LOW) & (src != dst))
            self.kept += len(packed.block.keys)
            yield packed.block

    def _require_sign(self, sign: Sign) -> None:
        if self._sign not in (None, sign):
            raise InputError(
                f"{self._source}: ids below 0 and ids from 2^63 on do not fit one type of 64 bits; "
                'renumber the vertices, or set graph.ids = "names"'
            )
        self._sign = sign

    def _compact(self, narrow: SortedKeys) -> None:
        """Replace ids by positions among the distinct ids."""
        scratch, memory, step = self._scratch, self._scratch.work // 2, self._step()
        words = (_flipped(ends.view(np.uint64), self._sign) for ends, _ in self._ends(narrow, step))
        ids = sort_distinct(words, scratch, memory).keys
        if len(ids) > MAX_VERTICES:
            raise InputError(
                f"{self._source}: {len(ids)} vertices, Longwall holds at most {MAX_VERTICES}; split the graph"
            )
        ids.gather()
        # Loops are dropped, and so is the type that only their ids need.
        small = bool((ids.read(max(len(ids) - 1, 0), len(ids)) < _TOP).all())
        sign = None if small and self._sign is Sign.UNSIGNED else self._sign
        self.positions = Positions(0, len(ids), ids, memory // 4, sign)
        replaced = (self._replaced(ends, labels) for ends, labels in self._ends(narrow, step))
        if len(self._wide):
            self.edges = self._sorted(replaced, memory, self._clash_of(self.positions))
        else:
            # Positions ascend with ids: the order stays.
            self.edges = SortedKeys.empty(scratch, labelled=narrow.labels is not None)
            for block in replaced:
                self.edges.append(block)
        narrow.drop()
        self._wide.drop()
        self._wide_labels.drop()

    def _ends(self, narrow: SortedKeys, step: int) -> Iterator[tuple[Int64s, Int32s | None]]:
        """Yield the ends of `step` edges, int64[2k], both ends of an edge side by side, and int32[k] labels."""
        for keys, labels in narrow.blocks(step * _KEY_BYTES):
            yield np.column_stack((keys >> _SHIFT, keys & _LOW)).ravel().view(np.int64), labels
        count = len(self._wide) // 2
        for start in range(0, count, step):
            stop = min(start + step, count)
            labels = self._wide_labels.read(start, stop) if len(self._wide_labels) else None
            yield self._wide.read(2 * start, 2 * stop), labels

    def _replaced(self, ends: Int64s, labels: Int32s | None) -> KeyBlock:
        pairs = self.positions.find(ends).reshape(-1, 2)
        return KeyBlock(_pack((pairs[:, 0], pairs[:, 1], None, False)).block.keys, labels)

    def _clash_of(self, positions: VertexPositions) -> Clash:
        def clash(key: int, one: int, other: int) -> InputError:
            ends = key >> 32, key & 0xFFFF_FFFF
            if self._repeated is not None:
                return self._repeated(*(int(positions.ids(end, end + 1)[0]) for end in ends))
            u, v = map(positions.show, ends)
            texts = self._label_names.names if self._label_names is not None else None
            labels = " and ".join(str(label) if texts is None else visible(texts[label]) for label in (one, other))
            return InputError(
                f"{self._source}: edge {u}-{v} is given twice with different labels ({labels}); keep one of them"
            )

        return clash


class _Packed(NamedTuple):
    """Edges as keys."""

    block: KeyBlock
    low: int
    """The smallest id, of loops, too."""
    high: int
    """The largest one."""
    wide: tuple[Int64s, Int64s, Int32s | None] | None
    """The edges, where there are ids for which a key has no room; such edges are not in the block."""
    unsigned: bool
    """See `EdgeBlock`."""
    rows: int
    """The number of edges that were read, loops included."""


def _parts(blocks: Iterator[EdgeBlock], step: int) -> Iterator[tuple[Int64s, Int64s, Int32s | None, bool]]:
    for block in blocks:
        for start in range(0, len(block.src), step):
            part = slice(start, start + step)
            labels = block.edge_labels[part] if block.edge_labels is not None else None
            yield block.src[part], block.dst[part], labels, block.unsigned


def _pack(edges: tuple[Int64s, Int64s, Int32s | None, bool], directions: bool = False) -> _Packed:
    src, dst, labels, unsigned = edges
    keys, kept = np.empty(len(src), np.uint64), np.empty(len(src), np.int32) if labels is not None else None
    bounds = np.empty(2, np.int64)
    count = _pack_edges(src, dst, labels, int(directions), keys, kept, bounds)
    low, high = bounds.tolist()
    block = KeyBlock(keys[:count], kept[:count] if kept is not None else None)
    return _Packed(block, low, high, edges[:3] if high > _LOW or low < 0 else None, unsigned, len(src))


def _check_distinct(keys: Keys, labels: Int32s, clash: Clash) -> None:
    """Raise the error of the first edge that stands twice among sorted ones."""
    again = np.flatnonzero(keys[1:] == keys[:-1])
    if len(again):
        at = int(again[0])
        raise clash(int(keys[at]), int(labels[at]), int(labels[at + 1]))


@compiled("i8[:], i8[:], none, i8, u8[::1], none, i8[::1]", "i8[:], i8[:], i4[::1], i8, u8[::1], i4[::1], i8[::1]")
def _pack_edges(
    src: Int64s, dst: Int64s, labels: Int32s | None, directions: int, keys: Keys, kept: Int32s | None, bounds: Int64s
) -> int:
    """Write each edge that is no loop as a word, the smaller end high, and its label; return their number.

    `directions` of 1 keeps the direction in the lowest bit: ends are below 2^31 then. Edges with an end below 0, or of
    2^32 or more, are left out. The smallest and the largest end go to `bounds`.
    """
    count, smallest, largest = 0, np.int64(2**63 - 1), np.int64(-(2**63))
    shift = np.uint64(directions)
    for at in range(src.size):
        low, high = min(src[at], dst[at]), max(src[at], dst[at])
        smallest, largest = min(smallest, low), max(largest, high)
        if labels is not None and kept is not None:
            kept[count] = labels[at]
        backwards = shift & np.uint64(src[at] > dst[at])
        keys[count] = np.uint64(low) << np.uint64(32) + shift | np.uint64(high) << shift | backwards
        count += low != high and low >= 0 and high < 2**32
    bounds[0], bounds[1] = smallest, largest
    return count
