"""Seeded random graphs: the same seed gives the same graph on every machine.

All randomness is raw words of Philox, a counter-based generator, in numbered streams: any block can be drawn
alone. NumPy promises that raw words never change, which it does not for its distributions.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from longwall.storage.build import build_graph
from longwall.storage.errors import InputError
from longwall.storage.graph import Graph

_BLOCK = 2**20
_EDGES, _PERMUTATION, _LABELS = range(3)

Edges = tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]
"""Sources and destinations."""


def _words(seed: int, stream: int, block: int, size: int) -> npt.NDArray[np.uint64]:
    key = np.array([seed, stream << 56 | block], np.uint64)
    return np.random.Philox(key=key).random_raw(size)


def _rmat(seed: int, *, scale: int, edge_factor: int, a: float, b: float, c: float) -> Edges:
    _need(1 <= scale <= 31, "scale", scale, "from 1 to 31")
    _need(edge_factor >= 1, "edge_factor", edge_factor, "at least 1")
    for name, chance in (("a", a), ("b", b), ("c", c)):
        _need(0 <= chance <= 1, name, chance, "from 0 to 1")
    _need(a + b + c <= 1 + 1e-9, "a + b + c", a + b + c, "at most 1")
    edges = edge_factor << scale
    src, dst = np.zeros(edges, np.uint32), np.zeros(edges, np.uint32)
    thresholds = [np.uint64(min(round(p * 2**32), 2**32)) for p in (a, a + b, a + b + c)]
    for block in range(-(-edges // _BLOCK)):
        part = slice(block * _BLOCK, min((block + 1) * _BLOCK, edges))
        rows, columns = src[part], dst[part]
        pairs = _words(seed, _EDGES, block, (scale + 1) // 2 * len(rows)).reshape(-1, len(rows))
        for level in range(scale):
            draw = pairs[level // 2] >> np.uint64(32) if level % 2 else pairs[level // 2] & np.uint64(2**32 - 1)
            in_ab, in_abc = draw < thresholds[1], draw < thresholds[2]
            rows += rows
            rows += ~in_ab
            columns += columns
            columns += (in_ab & (draw >= thresholds[0])) | ~in_abc
    permutation = np.argsort(_words(seed, _PERMUTATION, 0, 1 << scale), kind="stable").astype(np.uint64)
    return permutation[src], permutation[dst]


def _erdos_renyi(seed: int, *, vertices: int, edges: int) -> Edges:
    _need(2 <= vertices < 2**32, "vertices", vertices, "from 2 to 4294967295")
    possible = vertices * (vertices - 1) // 2
    _need(1 <= edges <= possible, "edges", edges, f"from 1 to {possible} for {vertices} vertices")
    # A graph with more than half of all edges is drawn as the edges that it lacks.
    drawn = min(edges, possible - edges)
    keys = np.empty(0, np.uint64)
    pairs = min(_BLOCK, 2 * drawn)
    block = 0
    while len(keys) < drawn:
        parts = [keys]
        for _ in range(-(-(drawn - len(keys)) // pairs)):
            words = _words(seed, _EDGES, block, 2 * pairs)
            u, v = words[::2] % np.uint64(vertices), words[1::2] % np.uint64(vertices - 1)
            v += v >= u
            parts.append(np.minimum(u, v) << np.uint64(32) | np.maximum(u, v))
            block += 1
        keys = np.concatenate(parts)
        _, first = np.unique(keys, return_index=True)
        first.sort()
        keys = keys[first]
    keys = keys[:drawn]
    if drawn < edges:
        small, large = np.triu_indices(vertices, 1)
        every = small.astype(np.uint64) << np.uint64(32) | large.astype(np.uint64)
        keys = np.setdiff1d(every, keys, assume_unique=True)
    return keys >> np.uint64(32), keys & np.uint64(2**32 - 1)


def _barabasi_albert(seed: int, *, vertices: int, edges_per_vertex: int) -> Edges:
    _need(edges_per_vertex >= 1, "edges_per_vertex", edges_per_vertex, "at least 1")
    _need(edges_per_vertex < vertices < 2**32, "vertices", vertices, "above edges_per_vertex and below 2^32")
    return _attach_kernel()(np.uint64(seed), vertices, edges_per_vertex)


def _attach(seed: np.uint64, vertices: int, each: int) -> Edges:
    """Grow a star of `each` + 1 vertices: a new vertex picks `each` distinct ends of earlier edges.

    An end is picked by its place in the list of all ends: vertices are picked in proportion to their degree.
    Words come from SplitMix64, which is counter-based like Philox and fits in a kernel.
    """
    edges = (vertices - each) * each
    src, dst = np.empty(edges, np.uint64), np.empty(edges, np.uint64)
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
    return src, dst


@cache
def _attach_kernel() -> Callable[[np.uint64, int, int], Edges]:
    import numba

    compiled: Any = numba.njit(nogil=True, cache=True)(_attach)
    return cast(Callable[[np.uint64, int, int], Edges], compiled)


@dataclass(frozen=True)
class Generator:
    """A kind of random graph."""

    function: Callable[..., Edges]
    """(seed, **parameters) -> edges."""
    parameters: dict[str, type]
    """Parameter -> int or float."""
    defaults: dict[str, int | float]
    """Parameter -> value where it is not given; a parameter without one must be given."""
    summary: str
    """One line for `--help`."""


GENERATORS: dict[str, Generator] = {
    "rmat": Generator(
        _rmat,
        {"scale": int, "edge_factor": int, "a": float, "b": float, "c": float},
        {"edge_factor": 16, "a": 0.57, "b": 0.19, "c": 0.19},
        "R-MAT (Kronecker): edge_factor * 2^scale draws, skewed degrees; repetitions and loops are dropped",
    ),
    "erdos-renyi": Generator(
        _erdos_renyi,
        {"vertices": int, "edges": int},
        {},
        "Erdos-Renyi: exactly so many edges, every such graph equally likely",
    ),
    "barabasi-albert": Generator(
        _barabasi_albert,
        {"vertices": int, "edges_per_vertex": int},
        {},
        "Barabasi-Albert: each new vertex attaches to edges_per_vertex vertices, by degree",
    ),
}


def generate(kind: str, *, seed: int, num_labels: int = 0, **params: int | float) -> Graph:
    """Generate a random graph; isolated vertices are dropped, as everywhere.

    Parameters
    ----------
    kind
        A key of `GENERATORS`.
    seed
        From 0 to 2^64 - 1.
    num_labels
        Vertex labels, drawn uniformly from 0 to `num_labels` - 1; 0 for an unlabelled graph.
    **params
        The kind's parameters.

    Raises
    ------
    InputError
        The kind or a parameter is unknown, missing or out of range.
    """
    if kind not in GENERATORS:
        raise InputError(f"generator kind {kind!r} is unknown; choose one of {', '.join(GENERATORS)}")
    generator = GENERATORS[kind]
    unknown = sorted(set(params) - set(generator.parameters))
    if unknown:
        raise InputError(
            f"generator {kind}: parameter {unknown[0]!r} is unknown; it takes {', '.join(generator.parameters)}"
        )
    values = generator.defaults | params
    for name, wanted in generator.parameters.items():
        if name not in values:
            raise InputError(f"generator {kind}: parameter {name!r} is missing; give a value")
        if not _is_number(values[name], wanted):
            raise InputError(f"generator {kind}: parameter {name!r} must be {_NOUNS[wanted]}, not {values[name]!r}")
    if not (_is_number(seed, int) and 0 <= seed < 2**64):
        raise InputError(f"generator {kind}: parameter 'seed' must be an integer from 0 to 2^64 - 1, not {seed!r}")
    if not (_is_number(num_labels, int) and 0 <= num_labels < 2**31):
        raise InputError(
            f"generator {kind}: parameter 'num_labels' must be an integer from 0 to 2^31 - 1, not {num_labels!r}"
        )
    src, dst = generator.function(seed, **values)
    labels = None
    if num_labels:
        vertices = np.unique(np.concatenate((src, dst)))
        drawn = _words(seed, _LABELS, 0, len(vertices)) % np.uint64(num_labels)
        labels = vertices.astype(np.int64), drawn.astype(np.int64)
    return build_graph(src, dst, vertex_labels=labels, source=f"generator {kind}")


_NOUNS = {int: "an integer", float: "a number"}


def _is_number(value: object, wanted: type) -> bool:
    return isinstance(value, (int, wanted)) and not isinstance(value, bool)


def _need(holds: bool, name: str, value: float, range_text: str) -> None:
    if not holds:
        raise InputError(f"generator parameter {name!r} is {value}, it must be {range_text}; change it")
