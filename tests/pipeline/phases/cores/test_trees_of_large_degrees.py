"""Motifs of trees with large degrees, by closed forms: products of degrees pass 31, 32, 53, 62, 64 and 128 bits."""

from math import comb

import numpy as np
import pytest
from cases import each_case

import longwall

# n**4 just below and beyond 2**31, 2**32, 2**53, 2**62, 2**63 and 2**64, and far beyond; n**3 is below.
SIZES = [215, 216, 255, 257, 9_741, 9_743, 46_340, 46_342, 55_108, 55_110, 65_535, 65_537, 66_000, 98_000, 110_000]


def _tree(edges):
    return longwall.graph(np.concatenate([np.asarray(part).reshape(-1, 2) for part in edges]))


def _leaves(centre, first, number):
    return np.stack([np.full(number, centre), np.arange(first, first + number)], 1)


def _motifs(graph, k):
    found = longwall.motifs(graph, k, threads=1).to_pylist()
    return {row["name"]: int(row["count"]) for row in found if int(row["count"])}


@pytest.mark.slow
@each_case("n", SIZES)
def test_stars(n):
    assert _motifs(_tree([_leaves(0, 1, n)]), 5) == {"star-4": comb(n, 4)}


@pytest.mark.slow
@pytest.mark.parametrize(("n", "k"), [(2_642_245, 4), (2_642_247, 4), (4_800_000, 4), (1_664_510, 5), (1_664_512, 5)])
def test_stars_of_millions(n, k):
    assert _motifs(_tree([_leaves(0, 1, n)]), k) == {f"star-{k - 1}": comb(n, k - 1)}


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(("a", "b"), [(66_000, 66_000), (98_000, 5), (65_537, 46_342)])
def test_double_stars(a, b):
    graph = _tree([[(0, 1)], _leaves(0, 2, a), _leaves(1, a + 2, b)])
    found = _motifs(graph, 5)
    assert sorted(found.values()) == sorted([comb(a + 1, 4) + comb(b + 1, 4), comb(a, 2) * b + comb(b, 2) * a])


@pytest.mark.parametrize("n", [46_342, 66_000, 98_000])
def test_brooms(n):
    """A hub with n leaves and a path of four more vertices."""
    graph = _tree([[(0, 1), (1, 2), (2, 3), (3, 4)], _leaves(0, 5, n)])
    found = _motifs(graph, 5)
    assert sorted(found.values()) == sorted([comb(n + 1, 4), comb(n, 2), n + 1])


@pytest.mark.parametrize("legs", [46_342, 66_000])
def test_spiders(legs):
    """A hub with legs of two vertices."""
    feet = np.stack([np.arange(1, legs + 1), np.arange(legs + 1, 2 * legs + 1)], 1)
    found = _motifs(_tree([_leaves(0, 1, legs), feet]), 5)
    assert sorted(found.values()) == sorted([comb(legs, 4), legs * comb(legs - 1, 2), comb(legs, 2)])


def test_a_hub_beside_a_path():
    """A hub with 66,000 leaves, ten of which are a path."""
    n = 66_000
    graph = _tree([_leaves(0, 1, n), [(i, i + 1) for i in range(1, 10)]])
    want = sum(comb(11 - k, k) * comb(n - 10, 4 - k) for k in range(5))
    assert _motifs(graph, 5)["star-4"] == want
    assert longwall.count(graph, "star-4", induced=True) == want


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("n", [66_000, 1_700_000])
def test_a_long_star(n):
    """A pattern with five leaves and a leg of two vertices in a broom with a leg of two: n**6 passes 2**96, 2**124."""
    graph = _tree([[(0, 1), (1, 2)], _leaves(0, 3, n)])
    assert longwall.count(graph, "0-1,0-2,0-3,0-4,0-5,0-6,6-7") == comb(n, 5)
