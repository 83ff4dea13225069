"""Graph stores and chunk files of strangers: changed at random, or forged with all checksums and hashes right.

What is opened must be a graph: it is held against checks of its own here, which share no code with Longwall's.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
import zipfile
from collections.abc import Callable
from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np

from longwall.storage.arrays import layout
from longwall.storage.errors import InputError
from longwall.storage.graph.graph import Graph
from longwall.storage.graph.graph_store import describe_store, open_store
from longwall.storage.graph.info import info
from longwall.storage.graph.store_writer import StoreSink
from longwall.storage.ingest.build import build_graph
from longwall.storage.memory.reservations import MemoryBudget
from longwall.storage.tables.chunk_file import read_chunk, write_chunk
from longwall.storage.tables.embedding_table import EmbeddingTable

SECONDS, BYTES = 5.0, 96 * 2**20
HOST = 16 * 2**20
WORDS = [
    *(0, 1, -1, 2, 3, 7, 255, 256, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1),
    *(2**64, 10**400, 0.5, -0.0, 1e308, float("inf"), float("nan"), True, False, None, "", "x", "0", "object", "|O"),
    *("int64", "uint32", "int32", "float64", "pickle", "blosc", "zstd", "\ud800", "\0", "../../etc"),
    *([], {}, [[]], {"a": {}}, [0], [2**63], [-1], {"name": "numcodecs.pickle", "configuration": {}}),
]
NUMBERS = [word for word in WORDS if type(word) is int and -(2**63) <= word < 2**63]
NOT_ARRAYS = {"stats", "content_hash", "label_names", "edge_label_names", "notes", "slices", "files"}
ARRAYS = tuple(field.name for field in fields(Graph) if field.name not in NOT_ARRAYS)

Files = dict[str, bytes]


class State:
    """Graphs, their stores as bytes by name, and chunk files."""

    def __init__(self, folder: Path) -> None:
        draw = np.random.default_rng(1)
        self.graphs: list[Graph] = []
        self.stores: list[Files] = []
        for n, edges, more, chunk in ((30, 60, False, 2**18), (90, 700, False, 256), (40, 150, True, 256)):
            ends = draw.integers(0, n // 2, (2, edges)) + n // 2 * draw.integers(0, 2, edges)
            ends = np.sort(ends[:, ends[0] != ends[1]], axis=0)
            labels = (np.arange(n), np.arange(n) % 4) if more else None
            graph = build_graph(*ends, edge_labels=(ends.sum(axis=0) % 3).astype(np.int32) if more else None,
                                vertex_labels=labels)  # fmt: skip
            if more:
                groups = (graph.original_ids >= n // 2).astype(np.int32)
                graph = replace(graph, transactions=groups, transaction_ids=np.array([5, 8], np.int64))
            layout.CHUNK_BYTES = chunk
            path = folder / f"store-{len(self.stores)}"
            write(graph, path)
            self.stores.append(files_of(path))
            self.graphs.append(open_store(path))
        values = draw.integers(0, 90, 40).astype(np.uint32), draw.integers(0, 90, 300).astype(np.uint32)
        offsets = np.array([0, *np.sort(draw.integers(0, 301, 39)), 300], np.int64)
        self.table = EmbeddingTable(values, (offsets,))
        write_chunk(self.table, folder / "chunk", MemoryBudget("disk", 2**30))
        self.chunk = (folder / "chunk").read_bytes()


def prepare(folder: Path) -> State:
    """Make the graphs and their stores."""
    return State(folder)


def run(state: State, rng: random.Random, folder: Path) -> None:
    """Open one store, or one chunk file, that was changed or forged."""
    if rng.random() < 0.15:
        _chunk_case(state, rng, folder)
        return
    number = rng.randrange(len(state.graphs))
    layout.CHUNK_BYTES = 2**18
    path = folder / "store"
    forged = rng.random() < 0.4
    if forged:
        layout.CHUNK_BYTES = rng.choice([2**18, 256])
        write(_forged(state.graphs[number], rng), path)
    else:
        lay_out(state.stores[number], path)
    if not forged or rng.random() < 0.1:
        for _ in range(rng.choice([0, 1, 1, 1, 2, 4])):
            rng.choice(CHANGES)(state, rng, path)
    layout.CHUNK_BYTES = 2**18
    _open(path, state.graphs[number], forged)


def _open(path: Path, original: Graph, forged: bool) -> None:
    """Open a store in both ways; what one accepts is a graph, and the other says the same of it or refuses it."""
    described, refusal = None, None
    try:
        described = describe_store(path)
    except InputError as error:
        refusal = error
    host = MemoryBudget("memory.host", HOST)
    try:
        graph = open_store(path, host)
    finally:
        assert host.peak <= HOST
    assert refusal is None, f"opened, but not described: {refusal}"
    assert info(graph) == described
    assert host.used == graph.nbytes
    check(graph)
    if not forged and graph.content_hash == original.content_hash:
        for name in ARRAYS:
            np.testing.assert_array_equal(getattr(graph, name), getattr(original, name))


def check(graph: Graph) -> None:
    """Hold a graph against what its docstring says, edge by edge."""
    n, indptr, stats = graph.num_vertices, graph.indptr.tolist(), graph.stats
    rows = [graph.indices[begin:end].tolist() for begin, end in pairwise(indptr)]
    assert indptr[0] == 0
    assert indptr[-1] == len(graph.indices) == sum(map(len, rows))
    degrees = [len(row) for row in rows]
    assert degrees == sorted(degrees, reverse=True)
    assert degrees[-1] > 0
    smaller = [sum(other < v for other in row) for v, row in enumerate(rows)]
    assert graph.split.tolist() == [indptr[v] + smaller[v] for v in range(n)]
    labels = [0] * len(graph.indices) if graph.edge_labels is None else graph.edge_labels.tolist()
    edges = {}
    for v, row in enumerate(rows):
        assert row == sorted(set(row))
        assert v not in row
        assert 0 <= row[0] <= row[-1] < n
        edges |= {(v, other): label for other, label in zip(row, labels[indptr[v] : indptr[v + 1]], strict=True)}
    assert all(edges[other, v] == label >= 0 for (v, other), label in edges.items())
    ids = graph.original_ids.tolist()
    assert len(set(ids)) == n
    assert min(ids) >= 0
    if graph.transactions is not None:
        assert graph.transaction_ids is not None
        groups, names = graph.transactions.tolist(), graph.transaction_ids.tolist()
        assert all(0 <= group < len(names) for group in groups)
        assert all(groups[v] == groups[other] for v, other in edges)
        assert names == sorted(set(names))
    assert (stats.num_vertices, stats.num_edges) == (n, len(edges) // 2)
    assert (stats.max_degree, stats.max_out_degree) == (max(degrees), max(smaller))
    assert stats.sum_degree_squared == sum(degree**2 for degree in degrees)
    assert 0 <= stats.closed_wedge_fraction <= 1
    found = [] if graph.labels is None else graph.labels.tolist()
    assert min(found, default=0) >= 0
    assert stats.label_counts == {label: found.count(label) for label in set(found)}
    assert stats.num_labels == len(set(found))


def write(graph: Graph, path: Path) -> None:
    """Write a store with hashes that are right, whatever is in the arrays."""
    path.mkdir()
    with StoreSink(path) as sink:
        for name in ARRAYS:
            array = getattr(graph, name)
            if array is not None:
                sink.begin(name, array.dtype, len(array), None)
                sink.append(name, array)
        sink.describe(graph.stats)


def files_of(path: Path) -> Files:
    """All files of a folder, by name."""
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


def lay_out(files: Files, path: Path) -> None:
    """Write files into a new folder."""
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)


def _forged(graph: Graph, rng: random.Random) -> Graph:
    """A graph with other arrays or statistics, now and then one that is right."""
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        name = rng.choice([name for name in ARRAYS if getattr(graph, name) is not None])
        if rng.random() < 0.25:
            field = rng.choice(fields(graph.stats)).name
            graph = replace(graph, stats=replace(graph.stats, **{field: _other(getattr(graph.stats, field), rng)}))
        elif rng.random() < 0.1:
            graph = replace(graph, **{name: None if name not in ARRAYS[:4] else getattr(graph, name)[:0]})
        else:
            graph = replace(graph, **{name: _other_array(getattr(graph, name), rng)})
    return graph


def _other(value: Any, rng: random.Random) -> Any:
    if isinstance(value, dict):
        if value and rng.random() < 0.5:
            return value | {rng.choice(list(value)): rng.choice(NUMBERS)}
        return {rng.choice(NUMBERS): rng.choice(NUMBERS) for _ in range(rng.randrange(3))}
    return value + rng.choice([-1, 1]) if rng.random() < 0.3 else rng.choice([*NUMBERS, 0.5, float("nan")])


def _other_array(array: Any, rng: random.Random) -> Any:
    array = array.copy()
    if not len(array):
        return np.append(array, array.dtype.type(1))
    at, other, kind = rng.randrange(len(array)), rng.randrange(len(array)), rng.randrange(8)
    words = np.array([word for word in NUMBERS if np.iinfo(array.dtype).min <= word <= np.iinfo(array.dtype).max])
    if kind == 0:
        array[at] = words[rng.randrange(len(words))]
    elif kind == 1:
        array[at], array[other] = array[other], array[at]
    elif kind == 2:
        array[at] = array[other]
    elif kind == 3:
        array[min(at, other) : max(at, other)] = array[at]
    elif kind == 4:
        array[at] += np.array(rng.choice([-1, 1])).astype(array.dtype)
    elif kind == 5:
        array = array[: len(array) - rng.randrange(3)]
    elif kind == 6:
        array = np.append(array, array[: rng.randrange(1, 3)])
    else:
        array.view(np.uint8)[rng.randrange(array.nbytes)] ^= 1 << rng.randrange(8)
    return array


def _some_file(path: Path, rng: random.Random) -> Path:
    """A file that is there and regular."""
    return rng.choice(sorted(file for file in path.rglob("*") if file.is_file() and not file.is_symlink()))


def _mangled(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    kind = rng.randrange(5)
    if kind <= 1 and changed:
        for _ in range(rng.choice([1, 1, 2, 8])):
            changed[rng.randrange(len(changed))] = rng.choice([0, 1, 127, 128, 255, rng.randrange(256)])
    elif kind == 2:
        del changed[rng.randrange(len(changed) + 1) :]
    elif kind == 3:
        at = rng.randrange(len(changed) + 1)
        changed[at:at] = rng.randbytes(rng.randrange(1, 40))
    elif changed:
        at = rng.randrange(len(changed))
        del changed[at : at + rng.randrange(1, 40)]
    return bytes(changed)


def _mangle_file(_: State, rng: random.Random, path: Path) -> None:
    file = _some_file(path, rng)
    file.write_bytes(_mangled(file.read_bytes(), rng))


def _mangle_chunk(_: State, rng: random.Random, path: Path) -> None:
    """Change bytes of a shard, mostly where Blosc has its headers."""
    file = rng.choice(sorted(path.glob("*/c/*")) or [_some_file(path, rng)])
    if file.is_symlink() or not file.is_file() or not file.stat().st_size:
        return
    data = bytearray(file.read_bytes())
    for _ in range(rng.choice([1, 1, 2, 4])):
        data[rng.randrange(min(len(data), rng.choice([16, 32, len(data)])))] = rng.choice(
            [0, 1, 255, rng.randrange(256)]
        )
    file.write_bytes(data)


def _forge_index(_: State, rng: random.Random, path: Path) -> None:
    """Change the index of a shard, and make its checksum right."""
    files = [file for file in sorted(path.glob("*/c/*")) if file.is_file() and file.stat().st_size > 20]
    if not files:
        return
    file = rng.choice(files)
    data = file.read_bytes()
    size = min(16 * rng.choice([1, 1, 2, 4]), len(data) - 4)
    index = bytearray(data[-size - 4 : -4])
    at = rng.randrange(max(size // 8, 1))
    struct.pack_into("<Q", index, 8 * at, rng.choice([word for word in NUMBERS if word >= 0]))
    file.write_bytes(data[: -size - 4] + index + google_crc32c.value(bytes(index)).to_bytes(4, "little"))


def _edit_json(_: State, rng: random.Random, path: Path) -> None:
    """Change metadata somewhere, and make their checksum right."""
    files = [file for file in sorted(path.rglob("zarr.json")) if file.is_file() and not file.is_symlink()]
    if not files:
        return
    file = rng.choice([files[-1], *files])
    try:
        document = json.loads(file.read_bytes())
    except (ValueError, RecursionError):
        return
    _edit(document, rng)
    if isinstance(document, dict) and isinstance(attributes := document.get("attributes"), dict) and attributes:
        attributes.pop("checksum", None)
        if rng.random() < 0.9:
            text = json.dumps(attributes, sort_keys=True).encode()
            attributes["checksum"] = google_crc32c.value(text)
    text = json.dumps(document)
    if rng.random() < 0.05:
        text = text[:-1] + ', "deep": ' + "[" * 20_000 + "]" * 20_000 + "}"
    if rng.random() < 0.05:
        text = text.replace("1", "1" * 5000, 1)
    file.write_text(text)


def _edit(node: Any, rng: random.Random) -> None:
    """Change a value somewhere below a node of JSON."""
    keys = list(node) if isinstance(node, dict) else list(range(len(node)))
    if not keys:
        return
    key = rng.choice(keys)
    if isinstance(node[key], (dict, list)) and node[key] and rng.random() < 0.85:
        _edit(node[key], rng)
        return
    kind = rng.randrange(4)
    if kind == 0:
        del node[key]
    elif kind == 1 and isinstance(node, dict):
        node[rng.choice(["more", "consolidated_metadata", "codecs", "dimension_names"])] = rng.choice(WORDS)
    else:
        node[key] = rng.choice(WORDS)


def _exchange(state: State, rng: random.Random, path: Path) -> None:
    """Put another file in the place of one: of this store or of another."""
    file = _some_file(path, rng)
    others = rng.choice(state.stores)
    file.write_bytes(others[rng.choice(sorted(others))])


def _replace_by_no_file(_: State, rng: random.Random, path: Path) -> None:
    """Put a pipe, a link, a folder or nothing in the place of a file or a folder."""
    places = sorted(path.rglob("*"))
    if not places:
        return
    place = rng.choice(places)
    aside = path.with_name(f"aside-{rng.randrange(2**40)}")
    place.rename(aside)
    kind = rng.randrange(7)
    if kind == 0:
        os.mkfifo(place)
    elif kind <= 4:
        target = (aside, Path("/dev/zero"), Path("/dev/tty"), place)[kind - 1]
        place.symlink_to(target)
    elif kind == 5:
        place.mkdir()


def _add(_: State, rng: random.Random, path: Path) -> None:
    """Add what has nothing to do with the store."""
    place = path / rng.choice(["", "indices", "indices/c", "split/c"])
    if not place.is_dir() or place.is_symlink():
        return
    name = place / rng.choice([".DS_Store", "7", "zarr.json.bak", "other"])
    if os.path.lexists(name):
        return
    rng.choice([name.mkdir, name.touch, lambda: os.mkfifo(name)])()


CHANGES: list[Callable[[State, random.Random, Path], None]] = [
    *(_mangle_file, _mangle_chunk, _mangle_chunk, _forge_index, _edit_json, _edit_json),
    *(_exchange, _replace_by_no_file, _add),
]


def _chunk_case(state: State, rng: random.Random, folder: Path) -> None:
    """Read a chunk file that was changed or forged."""
    path = folder / "chunk"
    path.write_bytes(state.chunk)
    kind = rng.randrange(4)
    if kind == 0:
        path.write_bytes(_mangled(state.chunk, rng))
    elif kind == 1:
        _forge_chunk(path, rng)
    elif kind == 2:
        path.unlink()
        rng.choice([lambda: os.mkfifo(path), lambda: path.symlink_to("/dev/zero"), path.mkdir])()
    table = read_chunk(path, below=90)
    assert table.num_levels in (1, 2)
    for level, offsets in enumerate(table.offsets):
        assert offsets[0] == 0
        assert offsets[-1] == len(table.values[level + 1])
        assert (np.diff(offsets) >= 0).all()
        assert len(offsets) == len(table.values[level]) + 1
    assert all(int(values.max(initial=0)) < 90 and int(values.min(initial=0)) >= 0 for values in table.values)
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def _forge_chunk(path: Path, rng: random.Random) -> None:
    """Change metadata of a chunk, and make their checksum right; or bytes of a member."""
    with zipfile.ZipFile(path) as archive:
        members = {item.filename: archive.read(item) for item in archive.infolist()}
    if rng.random() < 0.5:
        name = rng.choice(sorted(members))
        members[name] = _mangled(members[name], rng)
    else:
        group = json.loads(members["zarr.json"])
        attributes = group["attributes"]
        del attributes["checksum"]
        _edit(attributes, rng)
        group["attributes"] = attributes | {"checksum": google_crc32c.value(json.dumps(attributes).encode())}
        members["zarr.json"] = json.dumps(group).encode()
    compression = rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
