"""Spill files of a session: how long they live, who shares their folder, and what if one is damaged."""

from __future__ import annotations

import subprocess
import sys

import pyarrow.parquet as pq
import pytest

import longwall


@pytest.mark.slow
def test_files_go_with_the_objects(lab, graph, tmp_path):
    folder = tmp_path / "spill"
    table = longwall.edges(graph, memory="100KiB", spill=folder)
    longer = longwall.extend_edges(longwall.extend_edges(table))
    assert list(folder.rglob("table-*"))
    longer.close()
    assert sum(path.stat().st_size for path in folder.rglob("table-*")) == table.table.stored
    del table, longer
    lab.settle()
    assert not folder.exists()


def test_files_go_when_the_session_is_closed(graph, tmp_path):
    folder = tmp_path / "spill"
    table = longwall.extend_edges(longwall.extend_edges(longwall.edges(graph, memory="100KiB", spill=folder)))
    resident = longwall.vertices(graph, memory="100KiB", spill=folder)
    resident.session.close()
    table.session.close()
    assert not folder.exists()
    for use in (table.to_arrow, lambda: longwall.extend_vertices(resident), lambda: longwall.aggregate(table)):
        with pytest.raises(longwall.InputError, match="the session was closed"):
            use()
    with pytest.raises(longwall.InputError, match="the session was closed"):
        table.session.pool.reserve(table.session.host.free + 1, "what must spill")
    assert not folder.exists()


@pytest.mark.slow
def test_files_go_when_the_program_ends(tmp_path):
    program = """
import sys, longwall
graph = longwall.generate_graph("erdos-renyi", seed=1, vertices=60, edges=300)
table = longwall.extend_edges(longwall.edges(graph, memory="200KiB", spill=sys.argv[1]))
table = longwall.extend_edges(table)
assert table.table.stored
"""
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "spill")], check=True, timeout=120)
    assert not (tmp_path / "spill").exists()


@pytest.mark.slow
def test_a_table_may_outlive_its_session(lab, graph, tmp_path):
    folder = tmp_path / "spill"
    grown = longwall.extend_edges(longwall.extend_edges(longwall.edges(graph, memory="100KiB", spill=folder)))
    rows_in_all, table = len(grown), grown.table
    del grown
    lab.settle()
    assert table.stored
    assert sum(len(chunk) for chunk in table.stream()) == rows_in_all
    del table
    lab.settle()
    assert not folder.exists()


def test_two_sessions_share_a_spill_folder(graph, tmp_path):
    folder = tmp_path / "spill"
    tables = [
        longwall.extend_edges(longwall.extend_edges(longwall.edges(graph, memory="100KiB", spill=folder)))
        for _ in range(2)
    ]
    assert len(list(folder.iterdir())) == 2
    tables[0].session.close()
    assert sum(batch.num_rows for batch in tables[1].batches()) == len(tables[1])
    tables[1].session.close()
    assert not folder.exists() or not list(folder.iterdir())


@pytest.mark.slow
def test_a_failing_call_leaves_no_files(lab, graph, tmp_path):
    folder = tmp_path / "spill"
    table = longwall.extend_edges(longwall.edges(graph, memory="100KiB", spill=folder))
    seen = []

    def broken(columns, graph, xp):
        seen.append(len(columns[0]))
        if len(seen) > 3:
            raise ValueError("the user's own")
        return xp.ones(seen[-1], dtype=bool)

    before = table.session.host.used
    with pytest.raises(ValueError, match="the user's own"):
        longwall.filter(longwall.extend_edges(table), broken)
    lab.settle()
    assert table.session.host.used <= before
    assert table.session.resources.disk.used == table.table.stored


def test_a_damaged_file_is_named(graph, tmp_path):
    table = longwall.extend_edges(longwall.edges(graph, memory="100KiB", spill=tmp_path / "spill"))
    table = longwall.extend_edges(table)
    for path in (tmp_path / "spill").rglob("table-*"):
        path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(longwall.RunError, match="damaged or gone"):
        longwall.aggregate(table)


def test_export_streams_and_is_whole_or_not_at_all(graph, tmp_path):
    table = longwall.extend_edges(
        longwall.extend_edges(longwall.edges(graph, memory="100KiB", spill=tmp_path / "spill"))
    )
    target = longwall.export(table, tmp_path / "rows.parquet")
    file = pq.ParquetFile(target)
    assert file.num_row_groups > 1
    assert file.read().equals(table.to_arrow())
    for path in (tmp_path / "spill").rglob("table-*"):
        path.unlink()
    with pytest.raises(longwall.RunError, match="damaged or gone"):
        longwall.export(table, tmp_path / "again.parquet")
    assert not list(tmp_path.glob("*again*"))
    with pytest.raises(longwall.InputError, match="does not exist"):
        longwall.export(table, tmp_path / "nowhere" / "rows.parquet")
