"""Orbits of graphlets of up to 5 vertices: both engines against brute force, networkx and published counts."""

from __future__ import annotations

import json
import math
from math import comb
from operator import attrgetter
from typing import Any

import closed_families as families
import closed_forms as forms
import naive_orbits
import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from explained import explain
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from motif_counts import brute_force, by_form, mine, per_vertex, published, run
from plans import motifs
from strategies import graphs

import longwall
from longwall.kernels.exact_numbers import PRIMES, moduli_for
from longwall.kernels.host.patterns.graphlets import graphlet_orbits, graphlets, orbits_up_to
from longwall.kernels.interface.local_counts import COUNTED
from longwall.pipeline.planning.motifs import orbit_vectors, orbits_by_counting
from longwall.pipeline.planning.motifs.orbits_by_counting import exact_sum
from longwall.pipeline.workloads.motifs import Motifs
from longwall.storage.errors import RunError
from longwall.storage.generators.kinds import generate

relaxed = settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow])


def table_of(context: Any) -> Any:
    return pq.read_table(context.results / "vertices.parquet")


@relaxed
@given(small=graphs(max_vertices=9), k=st.integers(3, 5))
def test_orbits_are_those_of_brute_force(lab, engine_kind, small, k):
    context = lab.context(lab.graph(small.edges), engine=engine_kind, threads=2, workload=per_vertex(k))
    counts = mine(context)
    assert {f: n for f, n in by_form(counts, k).items() if n} == brute_force(small.edges, k)
    expected, number = naive_orbits.orbits(small.edges, k), orbits_up_to(k)
    table = table_of(context)
    assert table.column_names == ["vertex", *(f"orbit_{orbit}" for orbit in range(number))]
    assert all(str(kind) == "int64" for kind in table.schema.types)
    for row in table.to_pylist():
        assert [row[f"orbit_{orbit}"] for orbit in range(number)] == [expected[row["vertex"]][i] for i in range(number)]


@pytest.mark.parametrize("k", [3, 4])
def test_smaller_orbits_by_counting(lab, engine_kind, k):
    graph = generate("rmat", seed=2, scale=6, edge_factor=4)
    found = []
    for method in ("orbit-enumeration", "orbit-counting"):
        context = lab.context(graph, engine=engine_kind, workload=per_vertex(k))
        found.append((motifs(method, k, graph).counts(context), table_of(context)))
    assert found[0] == found[1]


def test_the_method_of_smaller_orbits_depends_on_leaves(lab):
    """Each was measured to be the quicker one; a hub without leaves took 90 times as long to count, of 3 vertices."""
    leaves = [(0, v) for v in range(1, 5000)]
    random = nx.gnm_random_graph(4999, 10_000, seed=1).edges
    graphs = {"star": leaves, "hub": [*leaves, *((u + 1, v + 1) for u, v in random)], "random": random}
    chosen = {
        (name, k): Motifs(**per_vertex(k)).plan(lab.graph(edges)).method
        for name, edges in graphs.items()
        for k in (3, 4)
    }
    assert chosen.pop(("star", 4)) == "orbit-counting"
    assert set(chosen.values()) == {"orbit-enumeration"}


def test_a_hub_of_many_pairs(lab):
    """An enumeration finds each pair of leaves; the counts around the hub look at one leaf only."""
    leaves = 5000
    context = lab.context(lab.graph([(0, i) for i in range(1, leaves + 1)]), workload=per_vertex(4))
    assert Motifs(**per_vertex(4)).plan(context.graph).method == "orbit-counting"
    assert [n for n in by_form(mine(context), 4).values() if n] == [comb(leaves, 3)]


@pytest.mark.parametrize("density", [0.08, 0.3, 0.9])
def test_orbits_add_up_to_motifs(lab, engine_kind, density):
    """Every subgraph is counted at each of its vertices."""
    graph = lab.graph(nx.gnp_random_graph(18, density, seed=5).edges)
    context = lab.context(graph, engine=engine_kind, threads=2, workload=per_vertex(5))
    assert mine(context) == run(lab, graph, 5, "cpu", method="enumeration")
    table = table_of(context)
    sums = [sum(table[f"orbit_{orbit}"].to_pylist()) for orbit in range(73)]
    for number in range(30):
        shares = [(sums[i], one.size) for i, one in enumerate(graphlet_orbits()) if one.graphlet == number]
        assert len({total // size for total, size in shares}) == 1
        assert all(total % size == 0 for total, size in shares)


def test_smaller_orbits_are_the_same(lab, engine_kind):
    graph = generate("rmat", seed=2, scale=6, edge_factor=4)
    tables = {}
    for k in (4, 5):
        context = lab.context(graph, engine=engine_kind, workload=per_vertex(k))
        mine(context)
        tables[k] = table_of(context)
    assert tables[5].select(tables[4].column_names) == tables[4]


def test_published_counts_of_citeseer(lab, data):
    graph = longwall.open_graph(data / "graphs" / "citeseer.edges.gz")
    counts = run(lab, graph, 5, "cpu", output="vertices")
    assert by_form(counts, 5) == published(data, "citeseer-motifs-5m", 5)


@pytest.mark.slow
def test_known_counts_of_a_collaboration_graph(lab, data):
    truth = json.loads((data / "truth" / "counts.json").read_text())["ca-GrQc"]
    table = longwall.orbits(data / "graphs" / "ca-GrQc.edges.gz", 5, engine="cpu", progress=False)
    sums = {orbit: exact_sum(table[f"orbit_{orbit}"].to_numpy()) for orbit in (3, 8, 14, 72)}
    assert sums[3] == 3 * truth["induced"]["triangle"]
    assert sums[8] == 4 * truth["induced"]["cycle-4"]
    assert sums[14] == 4 * truth["induced"]["clique-4"]
    assert sums[72] == 5 * truth["cliques"]["5"]


def test_which_orbits_a_kernel_counts():
    for number, orbit in enumerate(graphlet_orbits()):
        graphlet = graphlets()[orbit.graphlet]
        left = nx.Graph(graphlet.edges)
        several = left.degree(orbit.root) > 1
        left.remove_node(orbit.root)
        assert (number in COUNTED) == (several and nx.is_connected(left))
        assert (orbit_vectors.step_of(number) is None) == (number in COUNTED)


def homomorphisms_to_a_star(orbit: int, leaves: int) -> tuple[int, int]:
    """Maps of a graphlet into a star that send a vertex of the orbit to its centre, and to a leaf."""
    one = graphlet_orbits()[orbit]
    graph = nx.Graph(graphlets()[one.graphlet].edges)
    if not nx.is_bipartite(graph):
        return 0, 0
    same = sum(distance % 2 == 0 for distance in nx.single_source_shortest_path_length(graph, one.root).values())
    return leaves ** (len(graph) - same), leaves ** (same - 1)


def test_counts_of_hubs_are_exact():
    """What is computed modulo 2**64 is exact: homomorphisms of a star of 5 vertices pass 2**64 here."""
    leaves = 70_000
    maps = [homomorphisms_to_a_star(orbit, leaves) for orbit in range(73)]
    assert max(maps)[0] > 2**64
    found = orbit_vectors.orbits_of_homomorphisms(np.array(np.array(maps, object) % 2**64, np.uint64).view(np.int64))
    centre = {orbit: count for orbit, count in enumerate(found[:, 0].tolist()) if count}
    assert centre == {0: leaves, 2: comb(leaves, 2), 7: comb(leaves, 3), 23: comb(leaves, 4)}
    leaf = {orbit: count for orbit, count in enumerate(found[:, 1].tolist()) if count}
    assert leaf == {0: 1, 1: leaves - 1, 6: comb(leaves - 1, 2), 22: comb(leaves - 1, 3)}


@pytest.mark.parametrize("leaves", [70_000, 1 << 17, 1 << 20, (1 << 31) - 1])
def test_counts_of_any_size_follow_from_residues(leaves):
    maps = [homomorphisms_to_a_star(orbit, leaves) for orbit in range(73)]
    words = orbit_vectors.orbits_of_homomorphisms(np.array(np.array(maps, object) % 2**64, np.uint64).view(np.int64))
    residues = {
        prime: orbit_vectors.orbits_of_homomorphisms(np.array(np.array(maps, object) % prime, np.int64), prime)
        for prime in moduli_for(float(comb(leaves, 4)), PRIMES)
    }
    assert bool(residues) == (comb(leaves, 4) >= 2**60)
    found = orbit_vectors.large_orbits(words, residues)
    centre = {0: leaves, 2: comb(leaves, 2), 7: comb(leaves, 3), 23: comb(leaves, 4)}
    leaf = {0: 1, 1: leaves - 1, 6: comb(leaves - 1, 2), 22: comb(leaves - 1, 3)}
    assert found == [[centre.get(orbit, 0), leaf.get(orbit, 0)] for orbit in range(73)]


@pytest.mark.slow
@pytest.mark.parametrize("least", [2**60, 2**62, 2**63, 2**64])
def test_counts_around_a_hub_are_exact_whatever_their_size(lab, engine_kind, least):
    """The smallest star whose centre has a number of quadruples of leaves, plus a triangle, and an edge elsewhere."""
    leaves = next(n for n in range(70_000, 200_000) if comb(n, 4) >= least)
    edges = [(0, i) for i in range(1, leaves + 3)] + [(leaves + 1, leaves + 2), (-1, -2)]
    context = lab.context(lab.graph(edges), engine=engine_kind, workload=per_vertex(5))
    counts = by_form(mine(context), 5)
    table = table_of(context)
    centre = {name: int(n) for name, n in table.filter(pc.equal(table["vertex"], 0)).to_pylist()[0].items()}
    assert {name: n for name, n in centre.items() if n} == {
        "orbit_0": leaves + 2,
        "orbit_2": comb(leaves + 2, 2) - 1,
        "orbit_3": 1,
        "orbit_7": comb(leaves + 2, 3) - leaves,
        "orbit_11": leaves,
        "orbit_23": comb(leaves, 4) + 2 * comb(leaves, 3),
        "orbit_33": comb(leaves, 2),
    }
    assert sum(counts.values()) == comb(leaves, 4) + 2 * comb(leaves, 3) + comb(leaves, 2)
    large = [field.name for field in table.schema if field.type == pa.decimal128(38, 0)]
    assert large == (["orbit_23"] if centre["orbit_23"] >= 2**63 else [])


@relaxed
@given(small=graphs(max_vertices=9), k=st.integers(3, 5), rows_fit=st.booleans())
def test_orbits_modulo_primes_are_those_of_brute_force(lab, engine_kind, small, k, rows_fit):
    """As for a large hub: every vertex has too many subgraphs for 64 bits and, mostly, too many homomorphisms."""
    context = lab.context(lab.graph(small.edges), engine=engine_kind, threads=2, workload=per_vertex(k))
    plan = motifs("orbit-counting", k, context.graph)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(orbit_vectors, "_EXACT_BELOW", 0.0)
        patch.setattr(orbit_vectors, "_ROWS_BELOW", math.inf if rows_fit else 0.0)
        patch.setattr(orbits_by_counting, "moduli_for", lambda magnitude, primes: list(primes[:2]))
        plan.count(context)
    expected, number = naive_orbits.orbits(small.edges, k), orbits_up_to(k)
    for row in table_of(context).to_pylist():
        assert [row[f"orbit_{orbit}"] for orbit in range(number)] == [expected[row["vertex"]][i] for i in range(number)]


@pytest.mark.slow
@pytest.mark.real_gpu("a kernel takes more than a minute")
@pytest.mark.parametrize(
    "graph", [families.double_star(1_700_000, 3), families.bipartite(2, 1_665_000)], ids=attrgetter("name")
)
def test_orbits_of_hubs_of_any_size(engine_kind, graph):
    """From 1,664,511 neighbours on, the kernel's own numbers pass 2**62."""
    table = longwall.orbits(graph.edges(), 5, engine=engine_kind, progress=False).sort_by("vertex").drop(["vertex"])
    lengths = [one.vertices for one in graph.classes]
    for orbit, expected in enumerate(zip(*forms.orbits(graph, 5), strict=True)):
        column = table.column(orbit)
        assert column.type == (pa.int64() if max(expected) < 2**63 else pa.decimal128(38, 0))
        for start, length, number in zip(graph.starts, lengths, expected, strict=False):
            assert [int(value) for value in pc.unique(column.slice(start, length)).to_pylist()] == [number]


def test_vectors_that_contradict_each_other_are_noticed():
    vectors = np.zeros((73, 3), np.int64)
    vectors[0] = 1  # an edge without the paths that its ends have
    assert (orbit_vectors.orbits_of_homomorphisms(np.zeros((73, 3), np.int64)) == 0).all()
    with pytest.raises(RunError, match="internal fault"):
        orbit_vectors.require_consistent(orbit_vectors.orbits_of_homomorphisms(vectors))


def test_sums_of_any_size():
    counts = np.full(4, 2**62 + 3, np.int64)
    assert exact_sum(counts) == 2**64 + 12


def test_a_worker_without_room_says_so(lab):
    graph = generate("rmat", seed=1, scale=8)
    context = lab.context(graph, host=graph.nbytes + 100_000, workload=per_vertex(5))
    with pytest.raises((longwall.InputError, longwall.RunError), match=r"memory\.host"):
        mine(context)


def test_explain_names_the_orbits():
    generator = {"kind": "erdos-renyi", "vertices": 20, "edges": 40, "seed": 1}
    text = explain({"graph": {"generator": generator}, "workload": per_vertex(5), "engine": {"kind": "cpu"}})
    assert "orbits       0 to 72" in text
    assert "homomorphisms" in text
