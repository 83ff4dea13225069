"""Readers as streams: any block size and number of threads, errors in order, bounded memory, no thread left behind."""

import gzip
import mmap
import re
import tempfile
import threading
import tracemalloc
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_lists import BadLine, read_rows

from longwall.storage.errors import InputError
from longwall.storage.ingest.readers.edge_stream import EdgeStream, FileRequest
from longwall.storage.ingest.readers.matrix_market import open_matrix_market
from longwall.storage.ingest.readers.vertex_edge_lines import open_graph, open_lg, read_graph
from longwall.storage.ingest.tables.columns import EDGES, LABELS, ColumnRequest
from longwall.storage.ingest.tables.edge_list import LabelList, open_edge_list
from longwall.storage.ingest.tables.parquet import ParquetLabels, open_parquet
from longwall.storage.ingest.text import text_file
from longwall.storage.ingest.vertex_labels import LabelArrays, LabelSource, place_labels
from longwall.storage.memory.reservations import BudgetExceeded, MemoryBudget

SHORT = settings(max_examples=60, deadline=None)
MEMORY = 2**26

Triples = list[tuple[int, int, int | None]]


def edges_of(raw: EdgeStream) -> Triples:
    """Collect a stream of edges with their labels."""
    found: Triples = []
    with raw:
        for block in raw.blocks:
            labels = block.edge_labels.tolist() if block.edge_labels is not None else [None] * len(block.src)
            ends = [ids.view(np.uint64) if block.unsigned else ids for ids in (block.src, block.dst)]
            found += zip(ends[0].tolist(), ends[1].tolist(), labels, strict=True)
    return found


def pairs_of(labels: LabelSource) -> list[tuple[int, int, str]]:
    """Collect a stream of labels with their places."""
    return [
        (int(block.vertex(row)), int(value), block.place(row))
        for block in labels.blocks()
        for row, value in enumerate(block.values)
    ]


@contextmanager
def blocks_of(size: int) -> Iterator[None]:
    """Make readers of text take blocks of `size` bytes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_file, "LEAST_BLOCK", size)
        patch.setattr(text_file, "LARGEST_BLOCK", size)
        yield


@contextmanager
def file_of(content: str, name: str = "g.txt") -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        data = content.encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        yield path


ids = st.one_of(st.integers(0, 20), st.integers(0, 2**63 - 1))
wide_ids = st.sampled_from([st.integers(-(2**63), 2**63 - 1), st.integers(-3, 3), st.integers(2**63 - 2, 2**64 - 1)])
separators = st.sampled_from([" ", "\t", ",", ";", " | ", "   "])
quotes = st.sampled_from(["%d", '"%d"'])
no_rows = st.sampled_from(["", "  ", "# 1 2", "% note", " #"])
rows = st.builds(lambda u, v, separator, quote: [quote % u, separator, quote % v], ids, ids, separators, quotes)


@st.composite
def good_lists(draw: st.DrawFn) -> list[str]:
    """Lines of a list, all of whose rows have the same number of fields."""
    more = draw(st.lists(st.sampled_from(["7", "0.5", "x"]), max_size=3))
    lines = draw(st.lists(st.one_of(rows, no_rows), max_size=40))
    ends = draw(st.sampled_from(["", " "]))
    return [line if isinstance(line, str) else line[1].join([line[0], line[2], *more]) + ends for line in lines]


bad_lines = st.sampled_from(
    [
        "7",
        '1 "',
        '1 "2',
        '1 "2"3',
        '1 ""',
        "1 x",
        "-x 2",
        "1 -",
        "3 4.5",
        "1 18446744073709551616",
        "1 -9223372036854775809",
        "x 1",
        "1 \x01",
        "5,,7",
        "1,2 3",
        ",1,2",
        "1 2\r3",
    ]
)
line_ends = st.sampled_from(["\n", "\r\n"])


@SHORT
@given(good_lists(), line_ends, st.booleans(), st.integers(1, 60), st.integers(1, 3))
def test_edge_lists_are_read_alike_in_blocks_of_any_size(
    lines: list[str], end: str, last_end: bool, extra: int, workers: int
) -> None:
    content = "# begin" + end + end.join(lines) + (end if last_end else "")
    longest = max(map(len, content.split("\n"))) + 1
    expected = read_rows(content.encode())
    with blocks_of(longest + extra):
        for name in ("g.txt", "g.txt.gz"):
            with file_of(content, name) as path:
                found = edges_of(open_edge_list(FileRequest(path, MEMORY, workers)))
                assert found == [(u, v, None) for u, v, _ in expected]
                labels = pairs_of(LabelList(FileRequest(path, MEMORY, workers, columns=ColumnRequest(LABELS))))
                assert labels == [(u, v, f"line {number}") for u, v, number in expected]


@SHORT
@given(wide_ids.flatmap(lambda kind: st.lists(st.tuples(kind, kind), min_size=1, max_size=40)), st.integers(1, 3))
def test_ids_are_any_integers_of_64_bits(edges: list[tuple[int, int]], workers: int) -> None:
    content = "".join(f"{u} {v}\n" for u, v in edges)
    with blocks_of(max(map(len, content.split("\n"))) + 9), file_of(content) as path:
        assert edges_of(open_edge_list(FileRequest(path, MEMORY, workers))) == [(u, v, None) for u, v in edges]


def rows_or_fault(content: bytes) -> list[tuple[int, int, int]] | int:
    try:
        return read_rows(content, wide=2)
    except BadLine as bad:
        return bad.number


@SHORT
@given(st.lists(st.tuples(*2 * (st.integers(-(2**63) - 2, 2**64 + 1),)), min_size=1, max_size=6), st.booleans())
def test_ids_of_two_signs_or_out_of_range_are_refused(edges: list[tuple[int, int]], gap: bool) -> None:
    content = ("\n# c\n" if gap else "\n").join(f"{u},{v}" for u, v in edges)
    with blocks_of(max(map(len, content.split("\n"))) + 9), file_of(content) as path:
        expected = rows_or_fault(content.encode())
        if isinstance(expected, int):
            with pytest.raises(InputError, match=re.escape(f"{path}, line {expected}: ")):
                edges_of(open_edge_list(FileRequest(path, MEMORY, 2)))
        else:
            assert edges_of(open_edge_list(FileRequest(path, MEMORY, 2))) == [(u, v, None) for u, v, _ in expected]


@SHORT
@given(good_lists(), bad_lines, st.lists(bad_lines, max_size=30), line_ends)
def test_the_first_bad_line_is_named_whatever_follows(good: list[str], bad: str, rest: list[str], end: str) -> None:
    content = end.join([*good, bad, *rest, ""])
    with blocks_of(max(map(len, content.split("\n"))) + 9), file_of(content) as path:
        for workers in (1, 3):
            file = FileRequest(path, MEMORY, workers, columns=ColumnRequest(EDGES, ids="integers"))
            with pytest.raises(InputError) as caught:
                edges_of(open_edge_list(file))
            assert str(caught.value).startswith(f"{path}, line {len(good) + 1}: ")


@pytest.mark.parametrize("block", [8, 9, 13, 64, 2**20])
def test_a_csv_header_and_a_byte_order_mark_are_skipped_in_any_block(block: int) -> None:
    with blocks_of(block), file_of("\ufeffa,b\n1,2\n\n3,4\n", "g.csv") as path:
        assert edges_of(open_edge_list(FileRequest(path, MEMORY, 2))) == [(1, 2, None), (3, 4, None)]


@SHORT
@given(
    st.dictionaries(st.integers(0, 50), st.integers(0, 9), min_size=1, max_size=30),
    st.data(),
    st.integers(20, 90),
    st.integers(1, 3),
    st.booleans(),
)
def test_vertices_and_edges_may_be_mixed(
    labels: dict[int, int], data: st.DataObject, block: int, workers: int, labelled: bool
) -> None:
    vertices = sorted(labels)
    ends = st.sampled_from(vertices)
    edges = data.draw(st.lists(st.tuples(ends, ends, st.integers(0, 2**31 - 1)), max_size=30))
    lines = [f"v {v} {labels[v]} 0" for v in vertices]
    lines += [f"e {u} {v} {x}" if labelled else f"e {u} {v}" for u, v, x in edges]
    lines = data.draw(st.permutations(lines))
    of_line = {line: f"line {number}" for number, line in enumerate(lines, 2)}
    drawn = [tuple(map(int, line.split()[1:])) for line in lines if line.startswith("e")]
    declared = [line.split() for line in lines if line.startswith("v")]
    expected_labels = [(int(v), int(x), of_line[f"v {v} {x} 0"]) for _, v, x, _ in declared]
    with blocks_of(block):
        for kind, header in ((open_lg, "t # 1"), (open_graph, f"t {len(labels)} {len(edges)}")):
            with file_of("\n".join([header, *lines, *(["t # -1"] if kind is open_lg else [])])) as path:
                raw = kind(FileRequest(path, MEMORY, workers))
                has_labels = labelled and kind is open_lg
                assert edges_of(raw) == [(e[0], e[1], e[2] if has_labels else None) for e in drawn]
                assert raw.id_range == (vertices[0], vertices[-1])
                assert raw.vertex_labels is not None
                for _ in range(2):
                    assert pairs_of(raw.vertex_labels) == expected_labels


def test_matrix_market_entries_are_checked_and_counted_across_blocks() -> None:
    rows = [(i % 90 + 1, i * 7 % 90 + 1) for i in range(500)]
    header = "%%MatrixMarket matrix coordinate pattern general\n% c\n90 90 {}\n"
    body = "".join(f"{i} {j}\n" for i, j in rows)
    with blocks_of(70):
        with file_of(header.format(500) + body) as path:
            raw = open_matrix_market(FileRequest(path, MEMORY, 2))
            assert edges_of(raw) == [(i, j, None) for i, j in rows]
            assert raw.id_range == (1, 90)
        with file_of(header.format(501) + body) as path, pytest.raises(InputError, match="line 3: 501 entries are"):
            edges_of(open_matrix_market(FileRequest(path, MEMORY, 2)))
        bad = header.format(502) + body + "91 1\n0 1\n"
        with file_of(bad) as path, pytest.raises(InputError, match="line 504: entry 91 1 is outside"):
            edges_of(open_matrix_market(FileRequest(path, MEMORY, 2)))


def random_lines(count: int) -> bytes:
    rng = np.random.default_rng(5)
    return "".join(f"{u} {v}\n" for u, v in rng.integers(0, 10**6, (count, 2)).tolist()).encode()


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_damage_in_the_middle_comes_after_the_edges_and_the_bad_lines_before_it(tmp_path: Path, suffix: str) -> None:
    content = random_lines(50_000)
    path = tmp_path / f"g.txt{suffix}"

    def write(content: bytes) -> None:
        data = gzip.compress(content) if suffix == ".gz" else pa.compress(content, codec="zstd", asbytes=True)
        path.write_bytes(data[: len(data) * 9 // 10])

    with blocks_of(4096):
        write(content)
        sizes: list[int] = []
        with (
            open_edge_list(FileRequest(path, MEMORY, 2)) as raw,
            pytest.raises(InputError, match="truncated or damaged"),
        ):
            sizes.extend(len(block.src) for block in raw.blocks)
        assert sum(sizes) > 10_000
        write(b"1 2\n3\n" + content)
        with pytest.raises(InputError, match="line 2: too few columns"):
            edges_of(open_edge_list(FileRequest(path, MEMORY, 2)))


@pytest.mark.parametrize("reading", [open_parquet, ParquetLabels])
@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint64])
def test_parquet_of_many_row_groups_is_read_in_order(
    tmp_path: Path, reading: Callable[..., EdgeStream | LabelSource], kind: type
) -> None:
    path = tmp_path / "g.parquet"
    rng = np.random.default_rng(3)
    src, dst = rng.integers(0, 2**31, (2, 10_000)).astype(kind)
    names = ("src", "dst") if reading is open_parquet else ("vertex", "label")
    pq.write_table(pa.table({"x": src, names[0]: src, names[1]: dst}), path, row_group_size=700)
    # The smallest batches: 4096 rows, across row groups.
    opened = reading(FileRequest(path, 1, 2, columns=ColumnRequest(EDGES if reading is open_parquet else LABELS)))
    if isinstance(opened, EdgeStream):
        assert edges_of(opened) == list(zip(src.tolist(), dst.tolist(), [None] * len(src), strict=True))
    else:
        places = [f"row {row}" for row in range(1, len(src) + 1)]
        assert pairs_of(opened) == list(zip(src.tolist(), dst.tolist(), places, strict=True))


@pytest.mark.parametrize(("value", "says"), [(None, "is empty"), (-5, "holds -5")])
def test_the_first_bad_row_of_a_parquet_file_is_named(tmp_path: Path, value: int | None, says: str) -> None:
    path = tmp_path / "g.parquet"
    column: list[int | None] = list(range(9000))
    column[4321] = column[8765] = value
    src = pa.array(range(2**63, 2**63 + 9000), pa.uint64())
    pq.write_table(pa.table({"src": src, "dst": column}), path, row_group_size=1000)
    with pytest.raises(InputError, match=f"row 4322: column dst {says}"):
        edges_of(open_parquet(FileRequest(path, 1, 2)))


def test_parquet_that_is_damaged_in_the_middle_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "g.parquet"
    values = np.random.default_rng(1).integers(0, 2**40, 50_000)
    table = pa.table({"src": values, "dst": values})
    pq.write_table(table, path, row_group_size=5000, write_page_checksum=True)
    assert len(edges_of(open_parquet(FileRequest(path, 1, 2)))) == len(values)
    data = path.read_bytes()
    middle = len(data) // 2
    path.write_bytes(data[:middle] + bytes(50) + data[middle + 50 :])
    with pytest.raises(InputError, match="not a complete Parquet file"):
        edges_of(open_parquet(FileRequest(path, 1, 2)))


def test_arrays_of_a_block_belong_to_the_receiver(tmp_path: Path) -> None:
    table = tmp_path / "g.parquet"
    pq.write_table(pa.table({"src": np.arange(5000), "dst": np.arange(5000)}), table)
    plain = tmp_path / "g.txt"
    plain.write_text("".join(f"{i} {i}\n" for i in range(5000)))
    with blocks_of(4096):
        for raw in (open_parquet(FileRequest(table, 1, 2)), open_edge_list(FileRequest(plain, MEMORY, 2))):
            kept = []
            for block in raw.blocks:
                block.src[:] += 1
                kept.append(block)
            assert np.concatenate([block.src for block in kept]).tolist() == list(range(1, 5001))


def threads(before: set[threading.Thread]) -> set[threading.Thread]:
    """The threads of readers that were not there before."""
    return {thread for thread in threading.enumerate() if thread.name.startswith("ThreadPoolExecutor")} - before


def interrupt(raw: EdgeStream) -> None:
    with raw:
        for _ in raw.blocks:
            raise KeyboardInterrupt


@pytest.fixture
def long_file(tmp_path: Path) -> Path:
    path = tmp_path / "g.txt"
    path.write_bytes(random_lines(20_000))
    return path


def test_no_thread_outlives_the_iteration(long_file: Path) -> None:
    with blocks_of(4096):
        before = set(threading.enumerate())
        raw = open_edge_list(FileRequest(long_file, MEMORY, 3))
        raw.close()
        raw = open_edge_list(FileRequest(long_file, MEMORY, 3))
        next(raw.blocks)
        assert threads(before)
        raw.close()
        raw.close()
        assert not threads(before)
        assert list(raw.blocks) == []

        edges_of(open_edge_list(FileRequest(long_file, MEMORY, 3)))
        assert not threads(before)

        forgotten = open_edge_list(FileRequest(long_file, MEMORY, 3))
        next(forgotten.blocks)
        del forgotten
        assert not threads(before)

        with pytest.raises(KeyboardInterrupt):
            interrupt(open_edge_list(FileRequest(long_file, MEMORY, 3)))
        assert not threads(before)

        long_file.write_bytes(long_file.read_bytes() + b"x\n" + random_lines(20_000))
        raw = open_edge_list(FileRequest(long_file, MEMORY, 3))
        with pytest.raises(InputError, match="line 20001: "):
            deque(raw.blocks, maxlen=0)
        assert not threads(before)


def test_progress_is_reported_by_the_iterating_thread(long_file: Path) -> None:
    calls = []
    with blocks_of(4096):
        file = FileRequest(long_file, MEMORY, 2, lambda *call: calls.append((threading.current_thread(), *call)))
        edges_of(open_edge_list(file))
    size = long_file.stat().st_size
    assert {thread for thread, _, _ in calls} == {threading.current_thread()}
    assert [done for _, done, _ in calls] == sorted(done for _, done, _ in calls)
    assert calls[-1][1:] == (size, size)


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize(("reading", "line"), [(open_edge_list, "1 2\n"), (open_lg, "e 1 2\n"), (open_lg, "v 1 2\n")])
def test_a_reader_of_text_stays_under_its_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reading: Callable[..., EdgeStream], line: str, workers: int
) -> None:
    mapped = []  # tracemalloc does not see the buffers of text

    def map_memory(file: int, size: int, flags: int) -> mmap.mmap:
        mapped.append(size)
        return mmap.mmap(file, size, flags)

    # The shortest lines make the most of a block.
    path = tmp_path / "g.txt"
    path.write_text(line)
    edges_of(reading(FileRequest(path, MEMORY, 1)))  # compiled outside the measurement
    path.write_text(line * 1_000_000)
    memory = 8 * 2**20
    monkeypatch.setattr(text_file, "mmap", SimpleNamespace(mmap=map_memory, MAP_PRIVATE=mmap.MAP_PRIVATE))
    tracemalloc.start()
    with reading(FileRequest(path, memory, workers)) as raw:
        count = sum(len(block.src) for block in raw.blocks)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == (0 if line.startswith("v") else 1_000_000)
    assert peak + sum(mapped) < memory


def test_a_reader_of_parquet_stays_under_its_memory(tmp_path: Path) -> None:
    path = tmp_path / "g.parquet"
    values = np.random.default_rng(1).integers(0, 2**62, 2_000_000)
    pq.write_table(pa.table({"src": values, "dst": values}), path, row_group_size=len(values))
    memory = 10 * 2**20
    before = pa.total_allocated_bytes()
    with open_parquet(FileRequest(path, memory, 2)) as raw:
        peak = max(pa.total_allocated_bytes() - before for _ in raw.blocks)
    assert 0 < peak < memory


class Table:
    """A vertex index: ranks are positions in a list of ids."""

    def __init__(self, vertices: list[int]) -> None:
        self.vertices = vertices
        self.rank = {vertex: rank for rank, vertex in enumerate(vertices)}

    def lookup(self, ids: np.ndarray, unsigned: bool = False) -> np.ndarray:
        return np.array([self.rank.get(vertex, -1) for vertex in ids.tolist()], np.int64)

    def vertex(self, rank: int) -> str:
        return self.vertices[rank]


def naive_labels(pairs: list[tuple[int, int]], vertices: list[int], known: tuple[int, int]) -> list[int] | str:
    """Return the labels by rank, or the beginning of the error."""
    labels: dict[int, int] = {}
    for line, (vertex, value) in enumerate(pairs, 1):
        if value >= 2**31:
            return f"line {line}: label {value} is out of range"
        if not known[0] <= vertex <= known[1]:
            return f"line {line}: vertex {vertex} does not exist"
        if vertex in vertices and labels.setdefault(vertex, value) != value:
            return f"line {line}: vertex {vertex} is labelled a second time"
    if pairs and not labels:
        return f"none of its vertices, such as {pairs[0][0]}, has an edge in the graph"
    missing = [vertex for vertex in vertices if vertex not in labels]
    return f"vertex {missing[0]} has an edge but no label" if missing else [labels[vertex] for vertex in vertices]


@SHORT
@given(
    st.lists(st.integers(3, 15), unique=True, min_size=1, max_size=8).flatmap(st.permutations),
    st.lists(st.tuples(st.integers(2, 16), st.sampled_from([0, 1, 2**31 - 1, 2**31])), max_size=12),
    st.dictionaries(st.integers(3, 15), st.integers(0, 1)),
    st.integers(16, 50),
)
def test_labels_are_placed_by_rank(
    vertices: list[int], stray: list[tuple[int, int]], more: dict[int, int], block: int
) -> None:
    for pairs in (stray, [*more.items(), *stray], [(v, v % 2) for v in range(3, 16)] + stray[:1]):
        expected = naive_labels(pairs, vertices, (3, 15))
        content = "".join(f"{vertex} {value}\n" for vertex, value in pairs) or "#\n"
        with blocks_of(block), file_of(content) as path:
            budget = MemoryBudget("memory.host", 10_000)
            opened = LabelList(FileRequest(path, MEMORY, 2, columns=ColumnRequest(LABELS)))
            if isinstance(expected, str):
                with pytest.raises(InputError, match=expected):
                    place_labels(opened, Table(vertices), (3, 15), len(vertices), budget)
            else:
                found = place_labels(opened, Table(vertices), (3, 15), len(vertices), budget)
                assert found.dtype == np.int32
                assert found.tolist() == expected
            assert budget.used == 0


def test_labels_in_memory_are_matched_within_the_account() -> None:
    labels = LabelArrays(np.arange(10)[::-1], np.arange(10))
    found = place_labels(labels, Table([4, 2]), (0, 9), 2, MemoryBudget("memory.host", 1000))
    assert found.tolist() == [5, 7]
    with pytest.raises(BudgetExceeded, match=r"no room for matching the labels of labels .* raise memory\.host"):
        place_labels(labels, Table([4, 2]), (0, 9), 2, MemoryBudget("memory.host", 10))


def test_a_graph_that_is_held_whole_is_checked_in_all_its_blocks() -> None:
    vertices = [f"v {v} {v % 3} 0" for v in range(0, 60, 2)]
    edges = [f"e {v} {v + 2}" for v in range(0, 58, 2)]
    header = "t {} {}"

    def refusal(lines: list[str]) -> str:
        with file_of("\n".join(lines)) as path, pytest.raises(InputError) as caught:
            read_graph(path)
        return str(caught.value).removeprefix(f"{path}")

    with blocks_of(40):
        with file_of("\n".join([header.format(30, 29), *edges, *vertices])) as path:
            graph = read_graph(path)
        assert graph.src.tolist() == list(range(0, 58, 2))
        assert graph.dst.tolist() == list(range(2, 60, 2))
        assert graph.vertex_labels.ids.tolist() == list(range(0, 60, 2))
        assert graph.vertex_labels.values.tolist() == [v % 3 for v in range(0, 60, 2)]
        twice = refusal([header.format(31, 29), *vertices, vertices[20], *edges])
        assert twice.startswith(", line 32: vertex 40 is declared a second time")
        unknown = refusal([header.format(30, 31), *vertices, *edges, "e 7 7", "e 9 9"])
        assert unknown.startswith(", line 61: vertex 7 is not declared")
