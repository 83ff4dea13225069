"""Build a graph of any size inside a memory budget: clean the edges, rank by degree, lay out as CSR.

One algorithm for graphs in memory and in stores; what it does not have room for waits in scratch files:

1. edges become words, sorted and freed of loops and repetitions (`edge_collector`);
2. degrees are counted, vertices ranked (`degrees`);
3. both directions of every edge, as ranks, are sorted (`relabel`) and stream into a `Sink`.
"""

from collections import Counter
from pathlib import Path

import numpy as np
import numpy.typing as npt

from longwall.kernels.interface.graph_arrays import MAX_VERTICES
from longwall.kernels.jit.compile import compiled
from longwall.storage.errors import InputError
from longwall.storage.graph.degree_histogram import NO_RANK, DegreeHistogram, count_degrees, rank_by_degree, summarize
from longwall.storage.graph.graph import Graph
from longwall.storage.graph.graph_data import NewArray
from longwall.storage.graph.graph_sink import Sink
from longwall.storage.graph.stats import GraphStats, WedgeSample, summarize_graph
from longwall.storage.graph.store_writer import StoreSink, create_store
from longwall.storage.ingest.edge_collector import EdgeCollector, VertexPositions
from longwall.storage.ingest.memory_sink import MemorySink
from longwall.storage.ingest.place_transactions import Numbered, RankedTransactions, distinct_ids
from longwall.storage.ingest.ranked_rows import BucketRows, MergedRows, rank_rows
from longwall.storage.ingest.readers.edge_stream import Declared, EdgeBlock, EdgeStream
from longwall.storage.ingest.vertex_labels import LabelArrays, LabelSource, Unused, place_labels
from longwall.storage.mapping.mapped_arrays import MappedArrays
from longwall.storage.memory.resources import Resources, given_or_default
from longwall.storage.observer import NullObserver, Observer
from longwall.storage.sorting.scratch_arrays import Scratch, ScratchArray
from longwall.storage.system.paths import user_path

_ROW_BYTES = 24  # of a vertex: where its row begins and is split, and its id
_SCATTERED = 24  # bytes an id takes while it is put in its place: itself, its rank, a copy of either

Int64s = npt.NDArray[np.int64]


def build_in_memory(
    stream: EdgeStream,
    resources: Resources,
    observer: Observer | None = None,
    adjacency: NewArray = np.empty,
    files: MappedArrays | None = None,
) -> Graph:
    """Build a graph in memory; loops, repeated edges, directions and isolated vertices are dropped.

    Parameters
    ----------
    stream
        The input; it is read to its end.
    resources
        Budgets, and the spill folder where scratch files go when the host budget is short. The graph's `nbytes` stay
        reserved in `resources.host`.
    observer
        Receives the progress.
    adjacency
        Makes the array of the neighbours.
    files
        Makes the arrays that do not fit the host's budget; None: all must fit.

    Raises
    ------
    InputError
        A file has no edge, 2^32 or more vertices, or labels that do not fit the graph.
    RunError
        A budget or the disk is too small.
    """
    sink = MemorySink(adjacency, files)
    try:
        with Scratch(resources) as scratch:
            return sink.graph(_build(stream, scratch, sink, observer or NullObserver()))
    except BaseException:
        sink.release()
        raise


def build_store(
    stream: EdgeStream, path: str | Path, resources: Resources, observer: Observer | None = None
) -> GraphStats:
    """Build a graph as a store, which appears under `path` complete or not at all; see `build_in_memory`.

    Raises
    ------
    InputError
        As `build_in_memory`, or the path exists or cannot be written to.
    RunError
        As `build_in_memory`.
    """

    def fill(sink: StoreSink) -> GraphStats:
        with Scratch(resources) as scratch:
            return _build(stream, scratch, sink, observer or NullObserver())

    return create_store(user_path(path), fill)


def build_graph(
    src: npt.ArrayLike,
    dst: npt.ArrayLike,
    *,
    edge_labels: npt.NDArray[np.int32] | None = None,
    vertex_labels: tuple[Int64s, Int64s] | None = None,
) -> Graph:
    """Build a graph of edges in memory, under this machine's default budgets.

    Parameters
    ----------
    src, dst : integer[e]
        Ends of the edges, any ids of 64 bits with a sign.
    edge_labels : int32[e], optional
        A label per edge; an edge given twice needs the same label twice.
    vertex_labels : (int64[k], int64[k]), optional
        Vertices, in the ids of `src` and `dst`, and their labels.

    Raises
    ------
    InputError
        As `build_in_memory`.
    """
    block = EdgeBlock(np.asarray(src, np.int64), np.asarray(dst, np.int64), edge_labels)
    labels = LabelArrays(*vertex_labels) if vertex_labels is not None else None
    stream = EdgeStream("the graph", iter([block]), labels, Declared(may_be_empty=True))
    with given_or_default(None) as resources:
        return build_in_memory(stream, resources)


def _build(stream: EdgeStream, scratch: Scratch, sink: Sink, observer: Observer) -> GraphStats:
    collected = EdgeCollector(stream, scratch)
    positions, edges = collected.positions, collected.edges
    for source in (stream.vertex_labels, stream.transactions):
        if source is not None:
            source.named = positions.named
    observer.phase("ranking the vertices", None, "edges")
    degrees = count_degrees(edges, positions.key_base, positions.size, scratch)
    histogram = summarize(degrees, scratch)
    _note_dropped(stream, collected, histogram.num_vertices)
    n = histogram.num_vertices
    if n > MAX_VERTICES:
        raise InputError(f"{stream.source}: {n} vertices, Longwall holds at most {MAX_VERTICES}; split the graph")
    ranks = rank_by_degree(degrees, histogram, scratch)
    degrees.drop()

    observer.phase("sorting the edges", len(edges), "edges")
    plain = stream.transactions is None
    arguments = edges, positions.key_base, ranks, histogram, scratch, observer.advance
    with rank_rows(*arguments, plain=plain) as by_rank:
        edges.drop()
        observer.phase("writing the graph", histogram.num_arcs, "neighbours")
        labelled = by_rank.labelled
        label_counts = _write_vertices(stream, positions, ranks, histogram, sink, scratch, labelled=labelled)
        transactions = _write_transactions(stream, positions, ranks, n, sink, scratch)
        ranks.drop()
        positions.drop()
        sample = WedgeSample(histogram)
        max_out_degree = _write_rows(by_rank, histogram, sample, transactions, sink, scratch, observer)
    sample.prepare()
    start = 0
    for block in sink.read_back("indices", scratch.work):
        sample.test(start, block)
        start += len(block)
    sink.notes = stream.notes.all()
    return summarize_graph(histogram, max_out_degree, label_counts, sample.closed_fraction)


def _note_dropped(stream: EdgeStream, collected: EdgeCollector, num_vertices: int) -> None:
    """Count dropped edges, and vertices without an edge if the input declares its number of vertices."""
    kept, edges, notes, declared = collected.kept, len(collected.edges), stream.notes, stream.declared
    notes.add("loops", collected.rows - kept)
    if declared.matrix:
        # Of k arcs that make m edges, k - m are the second one of their edge.
        notes.add("directions", 2 * edges - collected.arcs)
        notes.add("repeated", kept - collected.arcs)
    else:
        notes.add("directions", kept if declared.directed else declared.directions)
        notes.add("repeated", kept - edges)
    if declared.vertices is not None:
        notes.add("isolated", declared.vertices - num_vertices)


def _unused(stream: EdgeStream, source: LabelSource) -> Unused | None:
    """Return a counter of labels of vertices without an edge, if nothing else counts these vertices."""
    if stream.declared.vertices is not None or source is not (stream.vertex_labels or source):
        return None
    kind = "isolated" if source.declares else "unused-labels"
    return lambda count: stream.notes.add(kind, count)


def _write_vertices(
    stream: EdgeStream,
    positions: VertexPositions,
    ranks: ScratchArray,
    histogram: DegreeHistogram,
    sink: Sink,
    scratch: Scratch,
    *,
    labelled: bool,
) -> Counter[int]:
    """Write row starts, ids and labels, all by rank; return how often each label occurs.

    `labelled` says whether edges have labels.
    """
    n = histogram.num_vertices
    sink.expect(_ROW_BYTES * n + 4 * histogram.num_arcs * (1 + labelled), scratch)
    sink.begin("indptr", np.int64, n + 1, scratch)
    size = max(1, scratch.work // 64)
    for start in range(0, n + 1, size):
        sink.append("indptr", histogram.consecutive_starts(start, min(start + size, n + 1)))

    sink.begin("original_ids", positions.id_type, n, scratch)
    size = max(1, min(n, scratch.capacity // 8))
    for low in range(0, n, size):
        length = min(size, n - low)
        with scratch.reserve(8 * length, "a table of ids"):
            table = np.empty(length, np.int64)
            _scatter_ids(positions, ranks, low, table, scratch.work // _SCATTERED)
            sink.append("original_ids", table.view(positions.id_type))
            del table
    positions.write_names(sink)

    counts: Counter[int] = Counter()
    if stream.vertex_labels is not None:
        sink.begin("labels", np.int32, n, scratch)
        with scratch.reserve(4 * n, "the vertex labels"):
            labels = _place(
                stream.vertex_labels,
                _Ranked(positions, ranks, n, scratch.work // 8),
                stream.id_range,
                n,
                scratch,
                _unused(stream, stream.vertex_labels),
            )
            sink.append("labels", labels)
            size = max(1, scratch.work // 32)
            for start in range(0, n, size):
                values, times = np.unique(labels[start : start + size], return_counts=True)
                counts.update(dict(zip(values.tolist(), times.tolist(), strict=True)))
            del labels
        sink.label_names["vertices"] = stream.vertex_labels.label_names
    if stream.edge_label_names is not None:
        sink.label_names["edges"] = stream.edge_label_names.names
    return counts


def _place(
    labels: LabelSource,
    index: "_Ranked",
    known: tuple[int, int] | None,
    n: int,
    scratch: Scratch,
    unused: Unused | None,
) -> npt.NDArray[np.int32]:
    # Blocks of labels are reserved by `place_labels` itself: leave it half of the work space's size.
    with scratch.reserve(scratch.work // 2, "matching labels") as capacity:
        capacity.release()
        return place_labels(labels, index, known, n, scratch.host, unused)


def _write_transactions(
    stream: EdgeStream,
    positions: VertexPositions,
    ranks: ScratchArray,
    n: int,
    sink: Sink,
    scratch: Scratch,
) -> RankedTransactions | None:
    """Write the transactions of the vertices, and their ids; what is returned stays reserved until the build ends."""
    if stream.transactions is None:
        return None
    ids = distinct_ids(stream.transactions, scratch)
    sink.begin("transactions", np.int32, n, scratch)
    scratch.reserve(4 * n, "the transactions of the vertices")
    numbered = Numbered(stream.transactions, ids, scratch)
    unused = _unused(stream, stream.transactions)
    placed = _place(numbered, _Ranked(positions, ranks, n, scratch.work // 8), stream.id_range, n, scratch, unused)
    sink.append("transactions", placed)
    sink.begin("transaction_ids", np.int64, len(ids), scratch)
    sink.append("transaction_ids", ids)
    return RankedTransactions(stream.transactions.source, placed, ids)


def _scatter_ids(positions: VertexPositions, ranks: ScratchArray, low: int, table: Int64s, step: int) -> None:
    """Fill a table, which covers the ranks from `low` on, with ids."""
    step = max(1, step)
    for start in range(0, positions.size, step):
        stop = min(start + step, positions.size)
        _scatter(ranks.read(start, stop), positions.ids(start, stop), low, table)


@compiled("u4[::1], i8[::1], i8, i8[::1]")
def _scatter(ranks: npt.NDArray[np.uint32], ids: Int64s, low: int, table: Int64s) -> None:
    for at in range(ranks.size):
        if ranks[at] != np.uint32(NO_RANK):
            rank = np.int64(ranks[at]) - low
            if 0 <= rank < table.size:
                table[rank] = ids[at]


class _Ranked:
    """Ranks of ids, for labels; see `vertex_labels.VertexIndex`."""

    def __init__(self, positions: VertexPositions, ranks: ScratchArray, num_vertices: int, memory: int) -> None:
        self._positions, self._ranks, self._memory = positions, ranks, memory
        self._num_vertices = num_vertices

    def lookup(self, ids: Int64s, unsigned: bool = False) -> Int64s:
        """Return int64[k]: the ranks of int64[k] ids, -1 for ids that are no vertices."""
        positions = self._positions.find(ids)
        if unsigned != (self._positions.id_type == np.uint64):
            positions[ids < 0] = -1  # the same bits are another id
        found = np.full(len(ids), -1, np.int64)
        for start, table in self._ranks.tables(self._memory):
            here = np.flatnonzero((positions >= start) & (positions < start + len(table)))
            found[here] = table[positions[here] - start]
        found[found >= self._num_vertices] = -1  # no rank, or one of a damaged scratch file
        return found

    def vertex(self, rank: int) -> str:
        """Return the id or the name of a rank."""
        for start, table in self._ranks.tables(self._memory):
            at = np.flatnonzero(table == rank)
            if at.size:
                position = start + int(at[0])
                return self._positions.show(position)
        raise IndexError(rank)


def _write_rows(
    by_rank: MergedRows | BucketRows,
    histogram: DegreeHistogram,
    sample: WedgeSample,
    transactions: RankedTransactions | None,
    sink: Sink,
    scratch: Scratch,
    observer: Observer,
) -> int:
    """Write the rows; return the largest number of smaller neighbours."""
    n = histogram.num_vertices
    sink.begin("indices", np.uint32, histogram.num_arcs, scratch)
    sink.begin("split", np.int64, n, scratch)
    if by_rank.labelled:
        sink.begin("edge_labels", np.int32, histogram.num_arcs, scratch)
    start = largest = open_count = 0
    open_row = 0
    crossing = None

    for rows in by_rank.blocks(histogram, transactions, scratch):
        if (crossing := rows.crossing) is not None:
            break
        sink.append("indices", rows.indices)
        if rows.labels is not None:
            sink.append("edge_labels", rows.labels)
        sample.look(start, rows.indices)
        start += len(rows.indices)
        observer.advance(len(rows.indices))
        if rows.splits is not None:
            largest = max(largest, int(rows.smaller.max()))
            sink.append("split", rows.splits)
            open_row = n
            continue
        # The last row may continue in the next block: its count waits.
        smaller = rows.smaller
        if rows.first == open_row:
            smaller[0] += open_count
        else:
            smaller = np.concatenate(([open_count], smaller))
        done = smaller[:-1]
        if len(done):
            largest = max(largest, int(done.max()))
            sink.append("split", histogram.consecutive_starts(open_row, open_row + len(done)) + done)
        open_row, open_count = open_row + len(done), int(smaller[-1])
    if transactions is not None and crossing is not None:
        by_rank.check()  # a damaged scratch file is another matter, and is reported first
        raise transactions.error(crossing, sink.read_back("original_ids", scratch.work))
    if open_row < n:
        sink.append("split", histogram.row_starts(np.array([open_row])) + open_count)
    return max(largest, open_count)
