"""Grouping rows by users' keys, against NumPy, on both engines and in budgets that the groups do not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import longwall
from longwall.stages.aggregation.by_key import from_words, to_words

DTYPES = [np.int8, np.int16, np.int64, np.uint8, np.uint32, np.uint64, np.float16, np.float32, np.float64, np.bool_]


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(DTYPES).flatmap(lambda dtype: npst.arrays(dtype, st.integers(0, 30))))
def test_words_are_in_the_order_of_the_keys(keys: Any) -> None:
    words = to_words(keys, np)
    assert words.dtype == np.uint64
    distinct = np.unique(keys)
    np.testing.assert_array_equal(from_words(np.unique(words), keys.dtype), distinct)
    np.testing.assert_array_equal(from_words(words, keys.dtype), keys)


@pytest.fixture(scope="module")
def graph() -> Any:
    return longwall.generate_graph(kind="erdos-renyi", seed=4, vertices=200, edges=1200)


@pytest.fixture(scope="module")
def wedges(graph: Any) -> Any:
    """The columns of all paths of three vertices, in internal ids."""
    table = longwall.extend_vertices(longwall.vertices(graph), [0])
    table = longwall.extend_vertices(table, [1])
    chunks = [chunk.columns().astype(np.int64) for chunk in table.table.stream()]
    return np.concatenate(chunks, axis=1)


def grouped(graph: Any, key: Any, engine: str, **memory: Any) -> Any:
    with longwall.extend_vertices(longwall.vertices(graph, engine, **memory), [0]) as pairs:
        table = longwall.extend_vertices(pairs, [1])
    found = longwall.aggregate(table, key)
    return found["key"].to_numpy(), found["count"].to_numpy(), table


KEYS: dict[str, Any] = {
    "many": lambda c, graph, xp: (c[0] * 200 + c[1]) * 200 + c[2] - 10**6,
    "few": lambda c, graph, xp: c[0] % 3 - 1,
    "floats": lambda c, graph, xp: (c[0] - c[2]) / 7,
    "bools": lambda c, graph, xp: c[0] < c[2],
    "large": lambda c, graph, xp: c[1].astype(xp.uint64) + xp.uint64(2**64 - 300),
}


@pytest.mark.parametrize("name", KEYS)
def test_groups_are_numpys(graph: Any, wedges: Any, engine_kind: str, name: str) -> None:
    keys, counts, table = grouped(graph, KEYS[name], engine_kind)
    values, numbers = np.unique(KEYS[name](wedges, graph, np), return_counts=True)
    np.testing.assert_array_equal(keys, values)
    np.testing.assert_array_equal(counts, numbers)
    assert keys.dtype == values.dtype
    assert counts.sum() == len(table)


def test_groups_beyond_the_budget_are_sorted_on_disk(graph: Any, wedges: Any, engine_kind: str, tmp_path: Path) -> None:
    """The result needs 16 bytes a group; the keys that are sorted are more than the part of memory that they have."""
    values, numbers = np.unique(KEYS["many"](wedges, graph, np), return_counts=True)
    budget = graph.nbytes + 40 * len(values)
    keys, counts, table = grouped(graph, KEYS["many"], engine_kind, memory=budget, spill=tmp_path / "spill")
    np.testing.assert_array_equal(keys, values)
    np.testing.assert_array_equal(counts, numbers)
    assert table.session.host.peak <= budget
    used = table.session.host.used
    assert longwall.aggregate(table, KEYS["few"])["count"].to_numpy().sum() == len(table)
    assert table.session.host.used == used


def test_a_result_that_does_not_fit_is_reported(graph: Any, engine_kind: str, tmp_path: Path) -> None:
    with pytest.raises(longwall.RunError, match=r"^no room for the table of groups .*: raise memory$"):
        grouped(graph, KEYS["many"], engine_kind, memory=graph.nbytes + 300_000, spill=tmp_path / "spill")
    assert not (tmp_path / "spill").exists() or not list((tmp_path / "spill").rglob("scratch-*"))


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (lambda c, graph, xp: c[0].astype(xp.complex64), "a key must return integers, .* not complex64"),
        (
            lambda c, graph, xp: c[0] if int(c[0][0]) == 0 else c[0] / 2,
            "a key must return numbers of one kind, but returned int64, then float64",
        ),
    ],
)
def test_keys_of_other_kinds_are_refused(graph: Any, tmp_path: Path, key: Any, message: str) -> None:
    with pytest.raises(longwall.InputError, match=message):
        grouped(graph, key, "cpu", memory=graph.nbytes + 300_000, spill=tmp_path / "spill")


def test_keys_of_several_widths_get_the_widest(graph: Any, wedges: Any, tmp_path: Path) -> None:
    calls = []

    def key(columns: Any, graph: Any, xp: Any) -> Any:
        calls.append(1)
        return (columns[0] % 100).astype(np.int8 if len(calls) < 3 else np.int32)

    keys, counts, _ = grouped(graph, key, "cpu", memory=graph.nbytes + 300_000, spill=tmp_path / "spill")
    values, numbers = np.unique((wedges[0] % 100).astype(np.int32), return_counts=True)
    assert len(calls) > 3
    assert keys.dtype == np.int32
    np.testing.assert_array_equal(keys, values)
    np.testing.assert_array_equal(counts, numbers)
