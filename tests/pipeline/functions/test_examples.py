"""The examples of the functions' docstrings do what they say."""

import doctest
import shutil
from importlib import import_module
from inspect import isfunction, unwrap

import pytest

import longwall

LEFT = {
    "longwall.pipeline.embeddings.aggregation": set(),
    "longwall.pipeline.embeddings.calls": {"edges.parquet"},
    "longwall.pipeline.functions.counts": set(),
    "longwall.pipeline.functions.matches": set(),
    "longwall.pipeline.functions.plans": set(),
    "longwall.pipeline.inputs": {"calls.csv"},
    "longwall.pipeline.patterns.pattern_of": set(),
    "longwall.pipeline.run": {"runs"},
    "longwall.pipeline.table": set(),
    "longwall.pipeline.workloads.custom.algorithm": {"runs"},
    "longwall.storage.generators.kinds": set(),
    "longwall.storage.ingest.objects.graph_of": set(),
}
"""Module -> what its examples leave behind."""


@pytest.mark.parametrize("name", LEFT)
def test_examples_are_true(name, folder):
    failed, tried = doctest.testmod(import_module(name))
    assert (failed, tried > 0) == (0, True)
    assert {path.name for path in folder.iterdir()} == LEFT[name]
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def test_every_public_function_has_an_example():
    functions = [item for name in longwall.__all__ if isfunction(item := getattr(longwall, name))]
    assert len(functions) > 18
    assert [item.__name__ for item in functions if ">>>" not in (item.__doc__ or "")] == []
    assert {unwrap(item).__module__ for item in (*functions, longwall.Algorithm, longwall.Table)} == set(LEFT)
