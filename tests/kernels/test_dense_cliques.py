"""Cliques of graphs that lack few edges: bitmaps of root subgraphs, and the last four vertices by their complement."""

import random
from itertools import combinations, pairwise
from math import comb

import naive_cliques
import numpy as np
import pytest
from cases import each_case
from engines import make_engine
from selection import on_device

from longwall.kernels.cpu.kcliques.complement import quads_of_bitmap, quads_of_word
from longwall.kernels.cpu.kcliques.roots import add
from longwall.stages.source import host_arrays

MEMORY = 1 << 27


@pytest.fixture(scope="session")
def count(lab, engine_kind):
    """Count the k-cliques of a graph by bitmaps, in ranges of arcs."""
    engine = make_engine(engine_kind)

    def bitmaps(edges, k, cuts=()):
        graph = engine.load(host_arrays(lab.graph(list(edges))))
        counter = engine.kernels.clique_counter(engine.device, graph, k, MEMORY)
        ends = sorted({min(cut, graph.num_arcs) for cut in cuts})
        return sum(counter.count(first, last) for first, last in pairwise([0, *ends, graph.num_arcs]))

    return bitmaps


def random_pairs(n, share, seed):
    draw = random.Random(seed)
    return [pair for pair in combinations(range(n), 2) if draw.random() < share]


def without(n, apart):
    return sorted(set(combinations(range(n), 2)) - set(apart))


def test_the_oracle_by_the_complement():
    for share, seed in ((0.1, 1), (0.4, 2), (1.0, 3)):
        apart = random_pairs(9, share, seed)
        found = naive_cliques.sizes(naive_cliques.cliques_by_definition(without(9, apart)))
        for k in range(2, 10):
            assert naive_cliques.cliques_by_complement(9, apart, k) == found.get(k, 0)


@each_case("n", [4, 5, 9, 20, 40, 64, 65, 90])
@each_case("share", [0, 0.02, 0.1, 0.3, 0.5, 0.8, 1])
def test_four_vertices_by_the_complement(n, share):
    """Some of the candidates only; as a word, and as a bitmap."""
    apart = np.zeros((n, n), bool)
    for i, j in random_pairs(n, share, n):
        apart[i, j] = apart[j, i] = True
    draw = random.Random(n)
    chosen = np.array([draw.random() < 0.9 for _ in range(n)])
    near = ~apart & chosen & chosen[:, None] & ~np.eye(n, dtype=bool)
    wanted = 0
    for i, j in zip(*np.nonzero(np.tril(near)), strict=True):
        both = near[i] & near[j] & (np.arange(n) < j)
        wanted += int(near[np.ix_(both, both)].sum()) // 2
    rows, some = words_of(apart), words_of(chosen[None])[0]
    degrees = np.empty(max(n, 64), np.int64)
    assert quads_of_bitmap(some, some.size, rows, degrees) == wanted
    if n <= 64:
        assert quads_of_word(some[0], np.ascontiguousarray(rows[:, 0]), degrees) == wanted


def words_of(bits):
    width = -(-bits.shape[1] // 64)
    padded = np.zeros((len(bits), 64 * width), bool)
    padded[:, : bits.shape[1]] = bits
    return np.packbits(padded, axis=1, bitorder="little").view(np.uint64)


@pytest.mark.slow
@pytest.mark.parametrize("k", [5, 6, 7])
@pytest.mark.parametrize(("n", "share"), [(30, 0.02), (60, 0.02), (30, 0.1), (26, 0.3)])
def test_complements_of_sparse_graphs(count, n, share, k):
    apart = random_pairs(n, share, n + k)
    assert count(without(n, apart), k, (70,)) == naive_cliques.cliques_by_complement(n, apart, k)


@pytest.mark.parametrize(("n", "edges"), [(69, 20), (72, 9), pytest.param(140, 20, marks=pytest.mark.slow)])
def test_more_candidates_than_a_word_has_bits(count, n, edges):
    apart = random.Random(n).sample(list(combinations(range(n), 2)), edges)
    for k in (5, 6, 7):
        assert count(without(n, apart), k, (1000, 1003)) == naive_cliques.cliques_by_complement(n, apart, k)


def test_counts_of_more_than_64_bits():
    total, numbers = np.zeros(2, np.uint64), [2**63 - 1, 5, 2**63 - 1, 7, 2**62, 2**63 - 1]
    for number in numbers:
        add(total, number)
    assert int(total[0]) + (int(total[1]) << 64) == sum(numbers) > 2**64


@pytest.mark.parametrize("n", [9, 33, 60, pytest.param(100, marks=pytest.mark.slow)])
def test_complete_graphs(count, n):
    edges = list(combinations(range(n), 2))
    for k in (5, 6, 7) if n > 40 else (5, 6, 7, 8, 9):
        assert count(edges, k, (5, 300)) == comb(n, k)


@pytest.mark.parametrize(("parts", "size"), [(8, 3), (20, 3), (24, 3), (6, 5)])
def test_complete_graphs_of_parts(count, parts, size):
    edges = naive_cliques.moon_moser(parts, size)
    for k in (5, 6, 7):
        assert count(edges, k) == comb(parts, k) * size**k


@pytest.mark.slow
def test_larger_cliques_among_more_candidates_than_a_word_has_bits(count):
    apart = random.Random(8).sample(list(combinations(range(69), 2)), 20)
    for k in on_device((8, 9), (7,)):
        assert count(without(69, apart), k) == naive_cliques.cliques_by_complement(69, apart, k)


@pytest.mark.parametrize(("independent", "others"), [(24, 14), (44, 26)])
def test_candidates_some_of_which_are_all_apart(count, independent, others):
    """Their complement has more paths than the graph has triangles; leaves give them the smallest ids."""
    n, leaves = independent + others, 30
    edges = [*without(n, combinations(range(independent), 2))]
    edges += [(i, n + leaves * i + leaf) for i in range(independent) for leaf in range(leaves)]
    for k in (5, 6, 7):
        assert count(edges, k) == comb(others, k) + independent * comb(others, k - 1)
