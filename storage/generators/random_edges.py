"""The edges of random graphs, block by block: the same seed draws the same edges on every machine.

All randomness is raw words of Philox, a counter-based generator, in numbered streams: any part of a block can be drawn
alone. NumPy promises that raw words never change, which it does not for its distributions.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from longwall.kernels.jit.compile import compiled
from longwall.storage.errors import InputError
from longwall.storage.ingest.readers.edge_stream import EdgeBlock
from longwall.storage.memory.reservations import BudgetExceeded
from longwall.storage.memory.resources import Resources
from longwall.storage.memory.sizes import round_size
from longwall.storage.system.arguments import brief
from longwall.storage.system.concurrency import core_count, map_all, map_ordered

_BLOCK = 2**20  # edges that share a block of random words
_PIECE = 2**17  # edges drawn at a time
_EDGES, _PERMUTATION, LABELS = range(3)
_TOGETHER = 2**11  # edges whose words are in a core's cache together
_BUCKET_BITS = 16  # of a vertex's number: 2**this many are put in order together, on average
_KEY = 8  # bytes of an edge that is sorted

# Bytes, temporaries included: a vertex while the permutation is made, an edge of R-MAT in a piece, an edge that
# Erdos-Renyi has chosen and a pair that it might have, an edge of Barabasi-Albert.
_SHUFFLED, _DRAWN, _CHOSEN, _COMPLEMENT, _ATTACHED = 28, 32, 80, 64, 16

Words = npt.NDArray[np.uint64]
Int64s = npt.NDArray[np.int64]


def word_source(seed: int, stream: int, block: int) -> np.random.Philox:
    """Return the generator of a block's words."""
    return np.random.Philox(key=np.array(_key(seed, stream, block), np.uint64))


def draw_words(seed: int, stream: int, block: int, size: int) -> Words:
    """Return the first `size` words of a block of a stream."""
    from longwall.kernels.host.philox import fill_words

    words = np.empty(size, np.uint64)
    fill_words(*_key(seed, stream, block), np.uint64(0), words)
    return words


def _key(seed: int, stream: int, block: int) -> tuple[np.uint64, np.uint64]:
    return np.uint64(seed), np.uint64(stream << 56 | block)


def rmat(
    seed: int, resources: Resources, *, scale: int, edge_factor: int, a: float, b: float, c: float
) -> Iterator[EdgeBlock]:
    """Draw `edge_factor` times 2^`scale` edges of R-MAT, on all cores; repetitions and loops are among them.

    Only the permutation of the vertices is held; all that is drawn is sorted, in memory and on the disk.

    Raises
    ------
    InputError
        When the iteration begins: a parameter is out of range.
    BudgetExceeded
        There is no room in memory, or not for what will be sorted.
    """
    from longwall.kernels.host.philox import draw_edges

    host = resources.host
    _need(1 <= scale <= 31, "scale", scale, "from 1 to 31")
    _need(1 <= edge_factor < 2**62, "edge_factor", edge_factor, "at least 1 and below 2^62")
    for name, chance in (("a", a), ("b", b), ("c", c)):
        _need(0 <= chance <= 1, name, chance, "from 0 to 1")
    _need(a + b + c <= 1 + 1e-9, "a + b + c", a + b + c, "at most 1")
    edges = edge_factor << scale
    _require_scratch(resources, edges)
    thresholds = np.array([min(round(p * 2**32), 2**32) for p in (a, a + b, a + b + c)], np.uint64)
    with host.reserve(_SHUFFLED << scale, "the permutation of an R-MAT graph's vertices") as reserved:
        permutation = _permutation(seed, scale)
        reserved.resize(permutation.nbytes, "")
        drawn = _DRAWN * min(_PIECE, edges)
        workers = max(1, min(core_count(), host.free // 2 // drawn - 1))

        def draw(piece: tuple[int, int, int, int]) -> EdgeBlock:
            block, length, start, size = piece
            src, dst, words = np.zeros(size, np.int64), np.zeros(size, np.int64), np.empty(_TOGETHER, np.uint64)
            key = _key(seed, _EDGES, block)
            draw_edges(*key, length, start, scale, thresholds, permutation, words, src, dst)
            return EdgeBlock(src, dst)

        with host.reserve(drawn * (workers + 1), "drawing edges"):
            yield from map_ordered(draw, _pieces(edges), workers)


def _permutation(seed: int, scale: int) -> npt.NDArray[np.uint32]:
    """Put the vertices in the order of random words, those of equal words in their own; on all cores."""
    from longwall.kernels.host.philox import fill_words, scatter_words

    n, bits = 1 << scale, max(0, scale - _BUCKET_BITS)
    key, words = _key(seed, _PERMUTATION, 0), np.empty(n, np.uint64)
    scattered, places, starts = np.empty_like(words), np.empty(n, np.uint32), np.zeros((1 << bits) + 1, np.int64)

    def fill(start: int) -> None:
        fill_words(*key, np.uint64(start), words[start : start + _PIECE])

    def sort(bucket: int) -> None:
        part = slice(starts[bucket], starts[bucket + 1])
        places[part] = places[part][np.argsort(scattered[part], kind="stable")]

    with ThreadPoolExecutor(core_count()) as pool:
        map_all(pool, core_count(), fill, range(0, n, _PIECE))
        scatter_words(words, bits, starts, scattered, places)
        map_all(pool, core_count(), sort, range(1 << bits))
    return places


def _pieces(edges: int) -> Iterator[tuple[int, int, int, int]]:
    """Cut edges that are drawn in blocks into pieces: (block, length of the block, start in it, size)."""
    for first in range(0, edges, _BLOCK):
        length = min(_BLOCK, edges - first)
        for start in range(0, length, _PIECE):
            yield first // _BLOCK, length, start, min(_PIECE, length - start)


def _require_scratch(resources: Resources, edges: int) -> None:
    """Refuse to draw for days what cannot be sorted in the end.

    Raises
    ------
    BudgetExceeded
        The keys of a given number of edges fit neither in memory nor on the disk.
    """
    host, disk = resources.host, resources.disk
    if _KEY * edges > host.free + disk.free:
        raise BudgetExceeded(
            f"{edges:,} edges that R-MAT draws (edge_factor * 2^scale) need {round_size(_KEY * edges)} to be sorted, "
            f"{host.option} has {round_size(host.free)} left and {disk.option} {round_size(disk.free)}: lower "
            f"parameter 'edge_factor' or parameter 'scale', or {disk.advice}"
        )


def erdos_renyi(seed: int, resources: Resources, *, vertices: int, edges: int) -> Iterator[EdgeBlock]:
    """Draw distinct edges, every set of that size equally likely; all of them are held. Errors as `rmat`."""
    _need(2 <= vertices < 2**32, "vertices", vertices, "from 2 to 4294967295")
    possible = vertices * (vertices - 1) // 2
    _need(1 <= edges <= possible, "edges", edges, f"from 1 to {possible} for {vertices} vertices")
    # A graph with more than half of all edges is drawn as the edges that it lacks.
    drawn = min(edges, possible - edges)
    needed = _CHOSEN * drawn + (_COMPLEMENT * possible if drawn < edges else 0)
    with resources.host.reserve(needed, "drawing the edges of an Erdos-Renyi graph"):
        keys = _choose(seed, vertices, drawn)
        if drawn < edges:
            small, large = np.triu_indices(vertices, 1)
            every = small.astype(np.uint64) << np.uint64(32) | large.astype(np.uint64)
            keys = np.setdiff1d(every, keys, assume_unique=True)
            del small, large, every
        for start in range(0, len(keys), _PIECE):
            part = keys[start : start + _PIECE]
            yield _block(part >> np.uint64(32), part & np.uint64(2**32 - 1))


def _choose(seed: int, vertices: int, drawn: int) -> Words:
    """Draw distinct edges, the smaller end high."""
    keys = np.empty(0, np.uint64)
    pairs = min(_BLOCK, 2 * drawn)
    block = 0
    while len(keys) < drawn:
        parts = [keys]
        for _ in range(-(-(drawn - len(keys)) // pairs)):
            words = draw_words(seed, _EDGES, block, 2 * pairs)
            u, v = words[::2] % np.uint64(vertices), words[1::2] % np.uint64(vertices - 1)
            v += v >= u
            parts.append(np.minimum(u, v) << np.uint64(32) | np.maximum(u, v))
            block += 1
        keys = np.concatenate(parts)
        _, first = np.unique(keys, return_index=True)
        first.sort()
        keys = keys[first]
    return keys[:drawn]


def barabasi_albert(seed: int, resources: Resources, *, vertices: int, edges_per_vertex: int) -> Iterator[EdgeBlock]:
    """Let each new vertex attach to others by degree; all edges are held. Errors as `rmat`."""
    _need(edges_per_vertex >= 1, "edges_per_vertex", edges_per_vertex, "at least 1")
    _need(edges_per_vertex < vertices < 2**32, "vertices", vertices, "above edges_per_vertex and below 2^32")
    edges = (vertices - edges_per_vertex) * edges_per_vertex
    with resources.host.reserve(_ATTACHED * edges, "drawing the edges of a Barabasi-Albert graph"):
        src, dst = np.empty(edges, np.uint64), np.empty(edges, np.uint64)
        _attach(np.uint64(seed), vertices, edges_per_vertex, src, dst)
        for start in range(0, edges, _PIECE):
            yield _block(src[start : start + _PIECE], dst[start : start + _PIECE])


def _block(src: Words, dst: Words) -> EdgeBlock:
    return EdgeBlock(src.astype(np.int64), dst.astype(np.int64))


@compiled("u8, i8, i8, u8[::1], u8[::1]")
def _attach(seed: np.uint64, vertices: int, each: int, src: Words, dst: Words) -> None:
    """Write the edges of a star of `each` + 1 vertices that grows: a new vertex picks `each` distinct ends of edges.

    An end is picked by its place in the list of all ends: vertices are picked in proportion to their degree.
    Words come from SplitMix64, which is counter-based like Philox and fits in a kernel.
    """
    state = seed
    done = 0
    for leaf in range(1, each + 1):
        src[done] = leaf
        dst[done] = 0
        done += 1
    for vertex in range(each + 1, vertices):
        first = done
        while done < first + each:
            state += np.uint64(0x9E3779B97F4A7C15)
            word = state
            word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            word ^= word >> np.uint64(31)
            end = word % np.uint64(2 * first)
            picked = src[end // np.uint64(2)] if end % np.uint64(2) == 0 else dst[end // np.uint64(2)]
            fresh = True
            for other in range(first, done):
                if dst[other] == picked:
                    fresh = False
                    break
            if fresh:
                src[done] = vertex
                dst[done] = picked
                done += 1


def _need(holds: bool, name: str, value: float, range_text: str) -> None:
    if not holds:
        raise InputError(f"generator parameter {name!r} is {brief(value)}, it must be {range_text}; change it")
