"""Small text files made to take long or much: the work grows with the size of the text, the memory does not."""

import gzip
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from longwall.storage.errors import InputError
from longwall.storage.ingest.readers.edge_stream import EdgeStream, FileRequest
from longwall.storage.ingest.readers.gspan import open_transactions
from longwall.storage.ingest.readers.matrix_market import open_matrix_market
from longwall.storage.ingest.readers.vertex_edge_lines import open_graph, open_lg
from longwall.storage.ingest.tables.columns import EDGES, LABELS, MOST_COLUMNS, ColumnRequest, choose_columns
from longwall.storage.ingest.tables.edge_list import LabelList, open_edge_list
from longwall.storage.ingest.text.text_file import TextFile

MEMORY = 2**26


def refused(path: Path, read: Callable[[FileRequest], EdgeStream] = open_edge_list) -> str:
    with pytest.raises(InputError) as caught, read(FileRequest(path, MEMORY, 1)) as stream:
        list(stream.blocks)
    return str(caught.value)


def peak_of(path: Path, reason: str, read: Callable[[FileRequest], EdgeStream] = open_edge_list) -> int:
    """Return the bytes of Python's objects at their peak, while a file is refused."""
    refused(path, read)  # imports and kernels take memory, too
    tracemalloc.start()
    try:
        said = refused(path, read)
        assert reason in said
        assert len(said) < 1000
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_columns_of_one_name_are_not_paired_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "g.csv"
    path.write_text(",".join(["u"] * 3000 + ["v"] * 3000) + "\n")
    assert peak_of(path, "more than one pair of columns could be meant: u, u, ") < 2**24


@pytest.mark.parametrize("kinds", [("", "string"), ("string", ""), ("string", "string")])
def test_columns_that_cannot_be_read_make_no_pair(kinds: tuple[str, str]) -> None:
    names, types = ["u", "v"] * 2000, list(kinds) * 2000
    with pytest.raises(InputError, match="two columns of integers or texts are needed, the columns are u"):
        choose_columns(names, ColumnRequest(EDGES), InputError, types)
    assert choose_columns([*names, "u", "v"], ColumnRequest(EDGES), InputError, [*["string"] * 4000, "", ""]) == (
        4000,
        4001,
    )
    assert choose_columns(["id", "v", "label"], ColumnRequest(LABELS), InputError, ["string", "", ""]) == (1, 2)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("separator", [",", " "])
@pytest.mark.parametrize("field", ["a", "1"])
def test_a_table_of_too_many_columns_is_refused_before_they_are_looked_at(
    tmp_path: Path, separator: str, field: str
) -> None:
    path = tmp_path / "g.txt"
    path.write_text(separator.join([field] * 900_000) + "\n")
    assert peak_of(path, f"{path}, line 1: more than 16,384 columns; write a file with the two columns") < 2**24
    path.write_text(separator.join(["source", "target", *["w"] * (MOST_COLUMNS - 2)]) + "\n")
    with open_edge_list(FileRequest(path, MEMORY, 1)) as stream:
        assert [block.src.size for block in stream.blocks] in ([], [0])
    with pytest.raises(InputError, match="more than 16,384 columns"):
        choose_columns([field] * (MOST_COLUMNS + 1), ColumnRequest(EDGES), InputError)


@pytest.mark.parametrize(
    ("read", "beginning", "reason"),
    [
        (open_matrix_market, "", "this is not a Matrix Market header"),
        (open_matrix_market, "%%MatrixMarket matrix coordinate pattern general\n", "three sizes are needed"),
        (open_matrix_market, f"%%MatrixMarket matrix coordinate pattern {'x' * 10**6}\n", "cannot be read as a graph"),
        (open_lg, "t", "is not the header of a .lg file"),
        (open_graph, "t", "this is not the header of a .graph file"),
        (open_transactions, "t", "does not begin a transaction"),
    ],
)
def test_a_header_of_many_words_is_refused(
    tmp_path: Path, read: Callable[[FileRequest], EdgeStream], beginning: str, reason: str
) -> None:
    path = tmp_path / "g"
    path.write_text(beginning + " 1" * 900_000 + "\n")
    assert peak_of(path, reason, read) < 2**24


@pytest.mark.timeout(60)  # a search that begins anew at each of them takes half an hour
@pytest.mark.parametrize("ahead", ["", "#", "# a\n", "\n"])
def test_a_line_of_carriage_returns_is_looked_at_once(tmp_path: Path, ahead: str) -> None:
    path = tmp_path / "g.txt"
    returns = "\r" * 400_000
    path.write_bytes(f"{ahead}{returns}\n1 2\n".encode())
    with open_edge_list(FileRequest(path, MEMORY, 1)) as stream:
        assert [block.dst.tolist() for block in stream.blocks] == [[2]]
    path.write_bytes(f"{ahead}{returns}1 2\n".encode())
    assert "a carriage return without a newline" in refused(path)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("line", ["\n", "\r\n", "# a comment\n", " \t# 1 2\r\n", " \v\f\r\r\n", "%\n"])
@pytest.mark.parametrize("suffix", [".txt", ".tsv"])
def test_blank_lines_and_comments_ahead_of_the_rows_are_passed_block_by_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, suffix: str
) -> None:
    line = line.replace("\t", " ") if suffix == ".tsv" else line
    path = tmp_path / f"g{suffix}.gz"
    count = 10**6
    path.write_bytes(gzip.compress(line.encode() * count + b"1\t2\n"))
    looks = 0
    look = TextFile.look

    def counted(file: TextFile) -> str:
        nonlocal looks
        looks += 1
        return look(file)

    monkeypatch.setattr(TextFile, "look", counted)
    for source in (
        open_edge_list(FileRequest(path, MEMORY, 1)).blocks,
        LabelList(FileRequest(path, MEMORY, 1, columns=ColumnRequest(LABELS))).blocks(),
    ):
        assert len(list(source)) >= 1
    assert looks < 100
    for wrong in ("one\t2", "\r3\t4", "\x01"):
        path.write_bytes(gzip.compress(line.encode() * count + f"{wrong}\n".encode()))
        assert f"line {count + 1}: " in refused(path)


@pytest.mark.parametrize("text", ["# a\x01b\n1 2\n", "\n#\r#\n1 2\n", " \r \n1 2\n"])
def test_what_no_line_may_hold_is_found_in_comments_and_blank_lines(tmp_path: Path, text: str) -> None:
    path = tmp_path / "g.txt"
    path.write_bytes(text.encode())
    line = text[: max(text.find("\x01"), text.find("\r"))].count("\n") + 1
    assert f"{path}, line {line}: " in refused(path)


@pytest.mark.parametrize("text", ["#", "\n\n#", "#\n \n", "\r", "#a\n#b\n#c"])
def test_a_file_may_be_comments_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "g.txt"
    path.write_bytes(text.encode())
    with TextFile(path, MEMORY, 1) as file:
        assert file.peek() == (len(text.splitlines()) + 1, "")
        assert file.take()[1] == ""
