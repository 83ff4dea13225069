"""From homomorphisms to orbits: what vectors over all vertices the other orbits need, and the linear maps in the end.

The homomorphisms of a graphlet whose vertex cuts it are the product of those of its parts; those with a vertex of one
neighbour are the sum, over the neighbours, of those of the rest. All is computed modulo 2**64: a number that is divided
by automorphisms is exact as long as no vertex has 2**60 subgraphs of an orbit. That is known beforehand, since a
subgraph has a spanning tree and trees need degrees only. Vertices that may have more are computed again modulo primes.
So is what the kernel counts, if that may not fit 64 bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.exact_numbers import combine
from longwall.kernels.host.patterns.graphlets import (
    Graphlet,
    graphlet_orbits,
    graphlets,
    injective_of_homomorphisms,
    orbit_of,
    root_automorphisms,
    spanning_trees_of,
    subgraphs_of_induced,
)
from longwall.kernels.interface.local_counts import COUNTED
from longwall.storage.errors import RunError
from longwall.storage.graph.graph import Graph

_EXACT_BELOW = 2.0**60  # of 64 bits at most 3 are lost where it is divided by 24
_KNOWN = 2**61  # the modulus that is left then
_ROWS_BELOW = 2.0**62  # the kernel's numbers that 64 bits hold, whatever floating point leaves out
_ARCS_AT_ONCE = 1 << 18


@dataclass(frozen=True)
class Step:
    """How the homomorphisms of an orbit follow from those of smaller graphlets.

    Attributes
    ----------
    factors
        Orbits whose vectors are multiplied, where the vertex cuts the graphlet.
    neighbour
        The orbit whose vector is summed over the neighbours; None where the graphlet is an edge.
    """

    factors: tuple[int, ...] = ()
    neighbour: int | None = None


@cache
def step_of(orbit: int) -> Step | None:
    """Return how the vector of an orbit follows from others; None where the kernel counts it."""
    if orbit in COUNTED:
        return None
    of = graphlet_orbits()[orbit]
    graphlet, root = graphlets()[of.graphlet], of.root
    parts = _parts(graphlet, root)
    if len(parts) > 1:
        return Step(tuple(_part(graphlet, {*part, root}, root) for part in parts))
    (neighbour,) = graphlet.neighbours(root)
    rest = set(range(graphlet.size)) - {root}
    return Step(neighbour=_part(graphlet, rest, neighbour) if len(rest) > 1 else None)


def homomorphism_vectors(graph: Graph, rows: NDArray[np.int64], prime: int | None = None) -> NDArray[np.int64]:
    """Return the homomorphisms of all orbits by vertex, modulo 2**64 or a prime below 2**31: int64[73, num_vertices].

    Parameters
    ----------
    graph
        The graph.
    rows : int64[len(COUNTED), num_vertices]
        Those of the orbits that a kernel counts, modulo the same; or themselves, if 64 bits hold them.
    prime
        The modulus; None for 2**64.
    """
    vectors = np.empty((len(graphlet_orbits()), graph.num_vertices), np.int64)
    for orbit, row in zip(COUNTED, rows, strict=True):
        vectors[orbit] = row
        _reduce(vectors[orbit], prime)
    for orbit in _in_order():
        _fill(graph, vectors, orbit, prime)
    return vectors


@dataclass(frozen=True)
class Magnitudes:
    """How many subgraphs around a vertex there may be, as floating-point numbers.

    Attributes
    ----------
    most
        The largest number of any orbit and vertex.
    large : bool[num_vertices]
        Whether a vertex may have 2**64 subgraphs of an orbit or more.
    rows_fit
        Whether 64 bits hold the homomorphisms that the kernel counts.
    """

    most: float
    large: NDArray[np.bool_]
    rows_fit: bool


def magnitudes(graph: Graph, orbits: int) -> Magnitudes:
    """Bound the subgraphs of the first orbits around every vertex by the trees that span them."""
    trees = [orbit for orbit in _in_order() if _is_tree(orbit)]
    vectors = np.empty((max(trees) + 1, graph.num_vertices), np.float64)
    for orbit in trees:
        _fill(graph, vectors, orbit)
    large, most, rows = np.zeros(graph.num_vertices, bool), 0.0, 0.0
    for orbit, automorphisms in enumerate(root_automorphisms()):
        maps = np.min(vectors[spanning_trees_of(orbit)], axis=0)
        if orbit in COUNTED:
            rows = max(rows, float(maps.max(initial=0.0)))
        if orbit < orbits:
            most = max(most, float(maps.max(initial=0.0)) / automorphisms)
            large |= maps >= _EXACT_BELOW * automorphisms
    return Magnitudes(most, large, rows < _ROWS_BELOW)


def orbits_of_homomorphisms(vectors: NDArray[np.int64], prime: int | None = None) -> NDArray[np.int64]:
    """Return how often vertices stand in each orbit: int64[73, vertices], modulo 2**61 or a prime.

    Parameters
    ----------
    vectors : int64[73, vertices]
        Their homomorphisms modulo 2**64, or the prime.
    prime
        The modulus; None for 2**64.
    """
    counts = np.empty_like(vectors)
    for orbit, (weights, automorphisms) in enumerate(
        zip(injective_of_homomorphisms().tolist(), root_automorphisms(), strict=True)
    ):
        _combine(vectors, weights, counts[orbit])
        if prime is None:
            counts[orbit] = _divided(counts[orbit], automorphisms)
        else:
            _reduce(counts[orbit], prime)
            counts[orbit] *= pow(automorphisms, -1, prime)
            _reduce(counts[orbit], prime)
    within = subgraphs_of_induced().tolist()
    for orbit in reversed(range(len(counts))):
        for denser in range(orbit + 1, len(counts)):
            if within[orbit][denser]:
                counts[orbit] -= within[orbit][denser] * counts[denser]
        _reduce(counts[orbit], prime)
    return counts


def require_consistent(counts: NDArray[np.int64]) -> None:
    """Check that no vertex stands in an orbit less than never; for numbers that are exact.

    Raises
    ------
    RunError
        If one does.
    """
    if counts.size and counts.min() < 0:
        raise RunError("internal fault: the homomorphisms of graphlets contradict each other")


def large_orbits(words: NDArray[np.int64], residues: Mapping[int, NDArray[np.int64]]) -> list[list[int]]:
    """Return how often vertices stand in each orbit, as numbers of any size.

    Parameters
    ----------
    words : int64[73, vertices]
        Their orbits as `orbits_of_homomorphisms` returns them for 2**64.
    residues
        The same by prime.
    """
    moduli = {_KNOWN: (words.view(np.uint64) % np.uint64(_KNOWN)).tolist()}
    moduli |= {prime: counts.tolist() for prime, counts in residues.items()}
    return [combine({modulus: rows[orbit] for modulus, rows in moduli.items()}) for orbit in range(len(words))]


def _in_order() -> list[int]:
    """Return the orbits that are not counted, each behind those that it follows from: smaller graphlets come first."""

    def parts(orbit: int) -> tuple[int, int]:
        return graphlets()[graphlet_orbits()[orbit].graphlet].size, -len(_step(orbit).factors)

    # Of one size, products of vectors need smaller ones only, but are the rest of none of that size either.
    return sorted((orbit for orbit in range(len(graphlet_orbits())) if step_of(orbit) is not None), key=parts)


def _step(orbit: int) -> Step:
    step = step_of(orbit)
    assert step is not None
    return step


def _is_tree(orbit: int) -> bool:
    graphlet = graphlets()[graphlet_orbits()[orbit].graphlet]
    return len(graphlet.edges) == graphlet.size - 1


def _reduce(numbers: NDArray[np.int64], prime: int | None) -> None:
    """Reduce numbers modulo a prime; modulo 2**64 they are already."""
    if prime is not None:
        np.remainder(numbers, prime, out=numbers)


def _fill(graph: Graph, vectors: NDArray[Any], orbit: int, prime: int | None = None) -> None:
    """Write the vector of an orbit that follows from others.

    Modulo a prime below 2**31, a product is below 2**62, and a sum over fewer than 2**32 neighbours below 2**63.
    """
    step, out = _step(orbit), vectors[orbit]
    if step.factors:
        first, *others = step.factors
        out[:] = vectors[first]
        for factor in others:
            out *= vectors[factor]
            _reduce(out, prime)
    elif step.neighbour is None:
        out[:] = np.diff(graph.indptr)
    else:
        _sum_over_neighbours(graph, vectors[step.neighbour], out)
    _reduce(out, prime)


def _sum_over_neighbours(graph: Graph, vector: NDArray[Any], out: NDArray[Any]) -> None:
    indptr, first = graph.indptr, 0
    while first < graph.num_vertices:
        last = int(np.searchsorted(indptr, indptr[first] + _ARCS_AT_ONCE, side="right")) - 1
        last = min(max(last, first + 1), graph.num_vertices)
        begin = int(indptr[first])
        values = vector[np.asarray(graph.indices[begin : int(indptr[last])])]
        out[first:last] = np.add.reduceat(values, np.asarray(indptr[first:last]) - begin)
        first = last


def _combine(vectors: NDArray[np.int64], weights: list[int], out: NDArray[np.int64]) -> None:
    out[:] = 0
    for vector, weight in zip(vectors, weights, strict=True):
        if weight:
            out += weight * vector


def _divided(multiples: NDArray[np.int64], divisor: int) -> NDArray[np.int64]:
    """Divide multiples of a number that are known modulo 2**64, and that are below 2**60 when they are divided."""
    shift = (divisor & -divisor).bit_length() - 1
    words = multiples.view(np.uint64) * np.uint64(pow(divisor >> shift, -1, 2**64))
    if (words & np.uint64((1 << shift) - 1)).any():
        raise RunError("internal fault: subgraphs were not found as often as they have automorphisms")
    return (words >> np.uint64(shift)).view(np.int64)


def _parts(graphlet: Graphlet, root: int) -> list[set[int]]:
    """Return the vertices of each connected part that is left without the root."""
    left, parts = set(range(graphlet.size)) - {root}, []
    while left:
        part = {min(left)}
        while beyond := {u for v in part for u in graphlet.neighbours(v)} & left - part:
            part |= beyond
        left -= part
        parts.append(part)
    return parts


def _part(graphlet: Graphlet, vertices: set[int], root: int) -> int:
    """Return the orbit of a vertex in a part of a graphlet."""
    part = Graphlet.of([edge for edge in sorted(graphlet.edges) if vertices.issuperset(edge)])
    return orbit_of(part, sorted(vertices).index(root))
