"""The examples of the functions' docstrings do what they say."""

import doctest
from importlib import import_module
from inspect import isfunction
from pathlib import Path

import pytest

import longwall

MODULES = [
    "longwall.pipeline.functions.counts",
    "longwall.pipeline.functions.matches",
    "longwall.pipeline.functions.plans",
    "longwall.pipeline.patterns.pattern_of",
    "longwall.storage.ingest.objects.graph_of",
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_are_true(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testmod(import_module(name))
    assert (failed, tried > 0) == (0, True)
    assert not list(Path().iterdir())


def test_every_function_has_an_example():
    homes = {module: import_module(module) for module in MODULES}
    for name in longwall.__all__:
        item = getattr(longwall, name)
        if isfunction(item) and item.__module__ in homes:
            assert ">>>" in (item.__doc__ or ""), name
