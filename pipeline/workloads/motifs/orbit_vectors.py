"""From homomorphisms to orbits: what vectors over all vertices the other orbits need, and the linear maps in the end.

The homomorphisms of a graphlet whose vertex cuts it are the product of those of its parts; those with a vertex of one
neighbour are the sum, over the neighbours, of those of the rest. All is computed modulo 2**64: what is divided by
automorphisms is exact as long as no vertex has 2**60 subgraphs of an orbit, and that is known beforehand, since a
subgraph has a spanning tree and trees need degrees only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.local_counts import COUNTED
from longwall.kernels.patterns.graphlets import (
    Graphlet,
    graphlet_orbits,
    graphlets,
    injective_of_homomorphisms,
    orbit_of,
    root_automorphisms,
    spanning_trees_of,
    subgraphs_of_induced,
)
from longwall.storage.errors import FinalError, RunError
from longwall.storage.graph.graph import Graph

_EXACT_BELOW = 2.0**60  # of 64 bits at most 3 are lost where it is divided by 24
_ARCS_AT_ONCE = 1 << 18
ARC_BYTES = 24
"""Bytes of an arc of those that are summed at once."""


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


def homomorphism_vectors(graph: Graph, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the homomorphisms of all orbits by vertex, modulo 2**64: int64[73, num_vertices].

    Parameters
    ----------
    graph
        The graph.
    rows : int64[len(COUNTED), num_vertices]
        Those of the orbits that a kernel counts.
    """
    vectors = np.empty((len(graphlet_orbits()), graph.num_vertices), np.int64)
    vectors[list(COUNTED)] = rows
    for orbit in _in_order():
        _fill(graph, vectors, orbit)
    return vectors


def require_orbits_fit(graph: Graph) -> None:
    """Check that every vertex has so few subgraphs of each orbit that all of the numbers are exact.

    Raises
    ------
    FinalError
        If some may have more.
    """
    trees = [orbit for orbit in _in_order() if _is_tree(orbit)]
    vectors = np.empty((max(trees) + 1, graph.num_vertices), np.float64)
    for orbit in trees:
        _fill(graph, vectors, orbit)
    for orbit, automorphisms in enumerate(root_automorphisms()):
        most = float(np.min(vectors[spanning_trees_of(orbit)], axis=0).max(initial=0.0)) / automorphisms
        if most >= _EXACT_BELOW:
            raise FinalError(
                f"about {most:.3g} subgraphs around one vertex (orbit {orbit}) do not fit 64-bit integers: "
                "count orbits of fewer vertices"
            )


def orbits_of_homomorphisms(vectors: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how often vertices stand in each orbit: int64[73, vertices], for their homomorphisms modulo 2**64."""
    counts = np.empty_like(vectors)
    for orbit, (weights, automorphisms) in enumerate(
        zip(injective_of_homomorphisms().tolist(), root_automorphisms(), strict=True)
    ):
        _combine(vectors, weights, counts[orbit])
        counts[orbit] = _divided(counts[orbit], automorphisms)
    within = subgraphs_of_induced().tolist()
    for orbit in reversed(range(len(counts))):
        for denser in range(orbit + 1, len(counts)):
            if within[orbit][denser]:
                counts[orbit] -= within[orbit][denser] * counts[denser]
    if counts.size and counts.min() < 0:
        raise RunError("internal fault: the homomorphisms of graphlets contradict each other")
    return counts


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


def _fill(graph: Graph, vectors: NDArray[Any], orbit: int) -> None:
    """Write the vector of an orbit that follows from others."""
    step, out = _step(orbit), vectors[orbit]
    if step.factors:
        first, *others = step.factors
        out[:] = vectors[first]
        for factor in others:
            out *= vectors[factor]
    elif step.neighbour is None:
        out[:] = np.diff(graph.indptr)
    else:
        _sum_over_neighbours(graph, vectors[step.neighbour], out)


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
