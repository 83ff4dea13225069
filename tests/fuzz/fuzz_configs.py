"""Configs as text, as mappings and on the command line, and patterns: what is accepted can be planned and written."""

from __future__ import annotations

import importlib.resources
import os
import random
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from longwall.pipeline.config import RunSpec, load_config
from longwall.pipeline.inputs import open_resources
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.workloads import workload_kinds
from longwall.pipeline.workloads.match import Match
from longwall.storage.errors import InputError

SECONDS = 5.0
BYTES = 256 * 2**20
_MOST_PLANNED = 4  # vertices of a pattern or a motif; plans of larger ones take longer than a case should
_NUMBERS = ("0", "-1", "1", "3", "16", "1e400", "nan", "-inf", "0x" + "f" * 6000, "9" * 5000, "9" * 400, "9" * 25)
_WORDS = (
    *_NUMBERS,
    *("true", "[]", "{}", "[[]]", '""', "''", '"\\u0000"', '"\\ud800"', '"\\U0010ffff"', "1979-05-27", "07:32:00"),
    *('"auto"', '"8GiB"', '"rmat"', '"0-1,1-2"', '"s3://b/x"', '"~"', '"."', '"/dev/zero"', '"' + "x" * 5000 + '"'),
    *(
        "[" * 3000,
        "{a=" * 3000,
        "a." * 3000 + "b = 1",
        "[graph]",
        "[[graph]]",
        "[workload]",
        "\x00",
        "\r",
        "\ufeff",
        "#",
    ),
)
_TEXTS = (
    *(
        "",
        ".",
        "..",
        "/",
        "~",
        "~/x",
        "a\x00b",
        "x" * 300,
        "x" * 5000,
        "a/" * 3000,
        "\udcff",
        "\ud800",
        "é",
        "a\nb",
        "a b",
    ),
    *("file:///x", "memory://x", "nope://x", "/dev/zero", "/proc/self/mem", "auto", "8GiB", "0B", "1e9GiB", "9" * 5000),
    *("tcp://a:1", "tls://a:1", "tcp://a:99999999999", "-", "0-1", "0-0", "0-1," * 2000 + "1-2", "1-2-3", "clique-99"),
)


def _deep(levels: int, leaf: Any = 1) -> dict[str, Any]:
    for _ in range(levels):
        leaf = {"a": leaf}
    return {"a": leaf}


_OBJECTS: tuple[Callable[[], Any], ...] = (
    lambda: None,
    lambda: object(),
    lambda: b"bytes",
    lambda: {1: 2},
    lambda: {None: {}},
    lambda: {1, 2},
    lambda: [None],
    lambda: [[1], [2]],
    lambda: Decimal("1.5"),
    lambda: 1 + 2j,
    lambda: float("nan"),
    lambda: float("inf"),
    lambda: 10**5000,
    lambda: -(10**400),
    lambda: 2**63,
    lambda: date(2020, 1, 1),
    lambda: np.int64(4),
    lambda: np.float32("nan"),
    lambda: np.array([0, 1, 0]),
    lambda: np.array(3),
    lambda: np.array([object()]),
    lambda: np.datetime64("2020-01-01"),
    lambda: Path("a\x00b"),
    lambda: Path("graph.txt"),
    lambda: _deep(3000),
    lambda: _deep(3000)["a"],
    lambda: [[]] * 3,
    lambda: ("v0", "v0"),
    lambda: RunSpec,
    lambda: len,
)


@dataclass
class State:
    """What all cases share."""

    texts: list[str]
    graph: Any


def prepare(folder: Path) -> State:
    """Read the configs of the project, and make a graph to plan for."""
    from longwall.storage.generators.kinds import generate

    files = [file for file in importlib.resources.files("longwall.configs").iterdir() if file.name.endswith(".toml")]
    os.chdir(folder)
    (folder / "graph.txt").write_text("1 2\n2 3\n3 1\n3 4\n")
    graph = generate("erdos-renyi", seed=1, vertices=30, edges=100, num_labels=3)
    return State([file.read_text() for file in sorted(files, key=lambda file: file.name)], graph)


def run(state: State, rng: random.Random, folder: Path) -> None:
    """Draw a config or a pattern."""
    rng.choice((_text, _text, _mapping, _overrides, _pattern, _pattern_file))(state, rng, folder)


def _text(state: State, rng: random.Random, folder: Path) -> None:
    """A config of the project, damaged here and there."""
    path = folder / rng.choice(("mine.toml", "odd name (1).toml", "x" * 200 + ".toml", "no-suffix"))
    path.write_bytes(_damaged(rng.choice(state.texts), rng, _WORDS).encode("utf-8", "surrogatepass"))
    _accept(state, load_config(path), folder)


def _damaged(text: str, rng: random.Random, words: Sequence[str]) -> str:
    for _ in range(rng.choice((0, 1, 1, 2, 3, 8))):
        at = rng.randrange(len(text) + 1)
        end = min(len(text), at + rng.choice((0, 1, 1, 3, 30)))
        deed = rng.randrange(5)
        if deed == 0:
            text = text[:at] + rng.choice(words) + text[end:]
        elif deed == 1:
            text = text[:at] + text[end:]
        elif deed == 2:
            text = text[:at] + chr(rng.choice((0, 10, 13, 34, 61, 91, 93, 123, 127, 0xE9, 0xD800))) + text[end:]
        elif deed == 3:
            text = text[:at] + text[at:end] * 3 + text[end:]
        else:
            lines = text.splitlines(keepends=True) or [""]
            line = rng.randrange(len(lines))
            key, equals, _ = lines[line].lstrip("# ").partition("=")
            lines[line] = f"{key}= {rng.choice(words)}\n" if equals else ""
            text = "".join(lines)
    return text


def _mapping(state: State, rng: random.Random, folder: Path) -> None:
    """Sections as a program gives them, one or two values being odd."""
    config: dict[Any, Any] = tomllib.loads(rng.choice(state.texts))
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        section, key = _key(rng)
        value = rng.choice(_OBJECTS)() if rng.randrange(3) else rng.choice(_TEXTS)
        if rng.randrange(12) == 0:
            config[rng.choice((section, 1, None, "x" * 5000))] = value
        elif isinstance(config.setdefault(section, {}), dict):
            config[section][key] = value
    _accept(state, load_config(config), folder)


def _key(rng: random.Random) -> tuple[str, Any]:
    section = rng.choice(list(RunSpec.model_fields))
    annotation: Any = RunSpec.model_fields[section].annotation
    classes = workload_kinds().values() if section == "workload" else [annotation]
    keys = list(dict.fromkeys(key for one in classes for key in one.model_fields))
    return section, rng.choice([*keys, *keys, "nothing", "", "x" * 300])


def _overrides(state: State, rng: random.Random, folder: Path) -> None:
    """Keys that the command line sets."""
    overrides = []
    for _ in range(rng.choice((1, 1, 2, 4))):
        section, key = _key(rng)
        value = rng.choice(_WORDS) if rng.randrange(2) else rng.choice(_TEXTS)
        text = f"{section}.{key}={value}"
        if rng.randrange(4) == 0:
            text = _damaged(text, rng, _TEXTS)
        overrides.append(text)
    path = folder / "mine.toml"
    path.write_text(rng.choice(state.texts))
    _accept(state, load_config(path, overrides), folder)


def _accept(state: State, spec: RunSpec, folder: Path) -> None:
    """See that a config that was accepted survives being written, and that its pattern can be planned."""
    (folder / "again.toml").write_text(spec.with_absolute_paths().to_toml(), encoding="utf-8")
    again = load_config(folder / "again.toml")
    # Not a number equals nothing.
    assert again == spec.with_absolute_paths() or "nan" in spec.to_toml(), (again, spec)
    with open_resources(spec.on_host()):
        pass
    workload = spec.workload
    if isinstance(workload, Match):
        size = parse_pattern(workload.pattern, workload.pattern_labels).num_vertices
    else:
        size = getattr(workload, "k", 0)
    if workload.kind == "cliques" or size <= _MOST_PLANNED:
        workload.plan(state.graph).to_dict()


_PATTERNS = ("diamond", "clique-5", "quasi-clique-4", "0-1,1-2,2-0", " 0 - 1 , 1-2 ", "star-15")


def _pattern(state: State, rng: random.Random, folder: Path) -> None:
    """A name or an edge list."""
    text = rng.choice(
        ("diamond", "clique-5", "quasi-clique-4", "0-1,1-2,2-0", " 0 - 1 , 1-2 ", "star-15", rng.choice(_TEXTS))
    )
    labels = rng.choice((None, None, [0, 1, 2], [], [10**400] * 3, [0, -1, 0], [2**31, 0, 0]))
    if rng.randrange(4) == 0:
        edges = [(rng.randrange(6), rng.randrange(6)) for _ in range(rng.randrange(1, 9))]
        found = _or_none(",".join(f"{u}-{v}" for u, v in edges))
        assert (found is not None) == _is_pattern(edges), edges
        assert found is None or set(found.edges) == {(min(edge), max(edge)) for edge in edges}
    parse_pattern(_damaged(text, rng, _TEXTS), labels)


def _or_none(text: str) -> Any:
    try:
        return parse_pattern(text)
    except InputError:
        return None


def _is_pattern(edges: Sequence[tuple[int, int]]) -> bool:
    """Whether edges make a connected simple graph on the vertices from 0 up."""
    if any(u == v for u, v in edges):
        return False
    reached = {edges[0][0]}
    for _ in edges:
        reached |= {w for edge in edges for w in edge if reached & set(edge)}
    return reached == set(range(max(max(edge) for edge in edges) + 1))


_GRAPH = "t 4 5\nv 0 1 3\nv 1 0 3\nv 2 2 2\nv 3 0 2\ne 0 1\ne 0 2\ne 0 3\ne 1 2\ne 1 3\n"
_GRAPHML = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="d0" for="node" attr.name="label" attr.type="int"/>
<graph edgedefault="undirected">
<node id="a"><data key="d0">1</data></node><node id="b"><data key="d0">2</data></node>
<node id="c"><data key="d0">1</data></node>
<edge source="a" target="b"/><edge source="b" target="c"/>
</graph></graphml>
"""
_PIECES = (
    *_NUMBERS,
    *(
        "t 0 0\n",
        "t 99 99\n",
        "v 0 0 0\n",
        "v 9 9 9\n",
        "e 0 9\n",
        "e 1 1\n",
        "t # -1\n",
        "#\n",
        "\x00",
        "é",
        " ",
        "\t",
    ),
    *("<node/>", '<node id="z"/>', "</graph>", '<edge source="a"/>', "<hyperedge/>", "<!-- -->", "directed", "double"),
    *(
        '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">]>',
        "&a;",
        "&#0;",
        "<a>" * 2000,
        'attr.type="boolean"',
        "utf-16",
        "string",
    ),
)


def _pattern_file(state: State, rng: random.Random, folder: Path) -> None:
    """A file with a pattern, damaged here and there."""
    name, text = rng.choice((("q.graph", _GRAPH), ("q.graphml", _GRAPHML)))
    (folder / name).write_bytes(_damaged(text, rng, _PIECES).encode("utf-8", "surrogatepass"))
    pattern = parse_pattern(str(folder / name))
    assert pattern == parse_pattern(str(folder / name)), "read again"
    load_config({"graph": {"path": "graph.txt"}, "workload": {"kind": "match", "pattern": str(folder / name)}})
