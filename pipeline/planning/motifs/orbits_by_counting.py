"""Graphlet degree vectors of up to 5 vertices, without enumerating what they count.

A kernel counts homomorphisms of graphlets around every vertex; the vectors of other orbits, and the orbits themselves,
are linear algebra (:mod:`longwall.pipeline.planning.motifs.orbit_vectors`).
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from longwall.kernels.exact_numbers import PRIMES, moduli_for
from longwall.kernels.host.patterns.graphlets import graphlet_orbits, graphlets, orbits_up_to
from longwall.kernels.host.patterns.pattern_codes import dictionary
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.phases.count_per_vertex import CountPerVertex
from longwall.pipeline.planning.motifs.arc_triangles import triangle_graph
from longwall.pipeline.planning.motifs.census import CensusPlan
from longwall.pipeline.planning.motifs.orbit_vectors import (
    homomorphism_vectors,
    large_orbits,
    magnitudes,
    orbits_of_homomorphisms,
    require_consistent,
)
from longwall.pipeline.planning.motifs.twins import ARC_BYTES, VERTEX_BYTES, arcs_at_once, twins_of
from longwall.pipeline.result_tables import number_array, number_type
from longwall.stages.orbit_counting import CountOrbitHomomorphisms
from longwall.storage.parquet_files import ParquetSink

_VERTICES_AT_ONCE = 1 << 14  # whose orbits are computed and written together
_COPIES = 3  # of their numbers
_LARGEST_WORD = 2**63 - 1


@dataclass(frozen=True)
class CountHomomorphismsOfVertices(CountPerVertex):
    """Count the homomorphisms around every vertex."""

    def arrays(self, env: Environment) -> GraphArrays:
        """See `RangePhase`."""
        return triangle_graph(env)


@dataclass(frozen=True)
class OrbitCountingPlan(CensusPlan):
    """Orbits of graphlets of 2 to `k` vertices, per vertex."""

    @property
    def phase(self) -> CountHomomorphismsOfVertices:
        """What counts them."""
        return self.modulo(0)

    def modulo(self, prime: int) -> CountHomomorphismsOfVertices:
        """Return what counts them modulo a prime, or modulo 2**64 if that is 0."""
        return CountHomomorphismsOfVertices(CountOrbitHomomorphisms(prime), self.cost)

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data."""
        return {"kind": "graphlet orbits by counting", "k": self.k, "estimated_cost": self.cost}

    def describe(self) -> str:
        """The plan as text."""
        last = orbits_up_to(self.k) - 1
        return (
            f"orbits       0 to {last}, of the connected induced subgraphs of 2 to {self.k} vertices\n"
            f"{self.phase.describe()}\n"
            "             of them the orbits: a linear map, modulo 2**64, and modulo primes where a vertex needs them\n"
            f"estimate     {self.cost:.3g} elementary steps"
        )

    def counts(self, env: Coordinator) -> list[int]:
        """Write ``vertices.parquet``; return the induced subgraphs of each connected pattern of `k` vertices."""
        graph, host, number = env.graph, env.resources.host, len(graphlet_orbits())
        size = 8 * number * (graph.num_vertices + _COPIES * _VERTICES_AT_ONCE)
        size += ARC_BYTES * arcs_at_once(graph) + VERTEX_BYTES * graph.num_vertices
        with host.reserve(size, "the graphlet degree vectors"):
            about, twins = magnitudes(graph, orbits_up_to(self.k)), twins_of(graph)
            large = np.flatnonzero(about.large & (twins.numbers > 0))
            primes = moduli_for(about.most, PRIMES) if large.size else []
            began = time.perf_counter()
            # The vectors of all vertices are computed modulo one prime after another; those of large vertices are kept.
            size = 8 * number * (len(primes) * large.size + (graph.num_vertices if primes else 0))
            with host.reserve(size, "the graphlet degree vectors modulo primes"):
                with self.phase.run(env) as rows:
                    twins.give(rows)
                    known = primes if about.rows_fit else []
                    residues = {prime: homomorphism_vectors(graph, rows, prime)[:, large] for prime in known}
                    vectors = homomorphism_vectors(graph, rows)
                for prime in primes[len(known) :]:
                    with self.modulo(prime).run(env) as rows:
                        twins.give(rows)
                        residues[prime] = homomorphism_vectors(graph, rows, prime)[:, large]
                sums = _OrbitTable(vectors, twins.first, large, residues, orbits_up_to(self.k)).write(env)
            seconds = time.perf_counter() - began
            env.metrics.record("orbits", 0, 2 * graph.num_edges, graph.num_vertices, seconds)
        return _patterns(self.k, sums)


@dataclass(frozen=True)
class _OrbitTable:
    """``vertices.parquet``: the orbits of every vertex.

    Attributes
    ----------
    vectors : int64[73, num_vertices]
        The homomorphisms of all vertices modulo 2**64.
    first : int64[num_vertices]
        The first of the twins of every vertex.
    large : int64[...]
        The first twins whose numbers may not be exact so, ascending.
    residues
        Their homomorphisms by prime, int64[73, len(large)].
    orbits
        How many of the orbits are written.
    """

    vectors: NDArray[np.int64]
    first: NDArray[np.int64]
    large: NDArray[np.int64]
    residues: Mapping[int, NDArray[np.int64]]
    orbits: int

    def write(self, env: Coordinator) -> list[int]:
        """Write the orbits of every vertex; return the sum of each."""
        ids = env.graph.all_ids()
        names = [f"orbit_{orbit}" for orbit in range(self.orbits)]
        types = [number_type(most) for most in self._largest()]
        schema = pa.schema([("vertex", ids.type), *zip(names, types, strict=True)])
        sums = [0] * self.orbits
        with ParquetSink(env.results / "vertices.parquet", schema) as sink:
            for first in range(0, self.vectors.shape[1], _VERTICES_AT_ONCE):
                counts = self._exact(first)
                sums = [total + exact_sum(row) for total, row in zip(sums, counts, strict=True)]
                columns = [_column(row, kind) for row, kind in zip(counts, types, strict=True)]
                sink.write(pa.table([ids.slice(first, len(columns[0])), *columns], schema=schema))
        return sums

    def _largest(self) -> list[int]:
        """Return the largest number of every orbit at a large vertex: the others fit 64-bit integers."""
        most = [0] * self.orbits
        for begin in range(0, len(self.large), _VERTICES_AT_ONCE):
            exact = self._numbers(np.arange(begin, min(begin + _VERTICES_AT_ONCE, len(self.large))))
            most = [max(so_far, *numbers) for so_far, numbers in zip(most, exact, strict=True)]
        return most

    def _numbers(self, places: NDArray[np.int64]) -> list[list[int]]:
        """Return the orbits of some large vertices, given by their places among these, as numbers of any size."""
        words = orbits_of_homomorphisms(self.vectors[:, self.large[places]])
        residues = {prime: orbits_of_homomorphisms(of[:, places], prime) for prime, of in self.residues.items()}
        return large_orbits(words, residues)[: self.orbits]

    def _exact(self, first: int) -> list[NDArray[Any]]:
        """Return the orbits of the vertices from `first` on, each int64[vertices], or Python integers of any size."""
        vertices = slice(first, first + _VERTICES_AT_ONCE)
        counts = orbits_of_homomorphisms(np.ascontiguousarray(self.vectors[:, vertices]))[: self.orbits]
        firsts = self.first[vertices]
        is_large = np.isin(firsts, self.large)
        require_consistent(counts[:, ~is_large])
        if not is_large.any():
            return list(counts)
        places, own = np.unique(np.searchsorted(self.large, firsts[is_large]), return_inverse=True)
        rows: list[NDArray[Any]] = []
        for row, numbers in zip(counts, self._numbers(places), strict=True):
            if max(numbers) > _LARGEST_WORD:
                rows.append(row.astype(object))
                rows[-1][is_large] = np.array(numbers, object)[own]
            else:
                rows.append(row)
                row[is_large] = np.array(numbers, np.int64)[own]
        return rows


def _column(row: NDArray[Any], kind: pa.DataType) -> pa.Array:
    if row.dtype == np.int64:
        return pa.array(row).cast(kind)
    numbers, places = np.unique(row, return_inverse=True)
    return number_array(numbers.tolist(), kind).take(pa.array(places))


def exact_sum(counts: NDArray[Any]) -> int:
    """Add counts up, however large their sum is: int64, or Python integers."""
    if counts.dtype == object:
        return sum(counts.tolist())
    return (int((counts >> 32).sum()) << 32) + int((counts & 0xFFFFFFFF).sum())


def _patterns(k: int, sums: list[int]) -> list[int]:
    """Return the number of induced subgraphs of every connected pattern of k vertices, by the order of their codes."""
    book = dictionary(k)
    counts = [0] * len(book.codes)
    for orbit, total in zip(graphlet_orbits(), sums, strict=False):
        graphlet = graphlets()[orbit.graphlet]
        if graphlet.size == k:
            code = sum(1 << v * (v - 1) // 2 + u for u, v in graphlet.edges)
            counts[int(book.entries[code]) & 1023] = total // orbit.size
    return counts
