"""Rows that are searched for when they are asked for: which ones, when, and in how many forms."""

import pickle
from pathlib import Path

import networkx as nx
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from networkx.algorithms.isomorphism import GraphMatcher

import longwall
from longwall.pipeline.functions import one_run
from longwall.storage.errors import InputError


def rows_of(table):
    return [tuple(row.values()) for row in table.to_pylist()]


@pytest.fixture
def runs(monkeypatch):
    """The configs that were run."""
    seen = []
    run = one_run.answer
    monkeypatch.setattr(one_run, "answer", lambda spec, *others: seen.append(spec) or run(spec, *others))
    return seen


def test_columns_are_the_vertices_of_the_pattern(karate, graph):
    # A pattern whose text would number its vertices in another order.
    query = nx.Graph([("p", "r"), ("q", "r"), ("q", "s")])
    with longwall.match(graph, query, induced=True) as found:
        assert found.column_names == list(query)
        rows = rows_of(found.to_arrow())
    names = list(query)
    matcher = GraphMatcher(karate, query)
    wanted = {frozenset(mapping.items()) for mapping in matcher.subgraph_isomorphisms_iter()}
    assert len(rows) * 2 == len(wanted)  # the path has two symmetries
    assert all(frozenset(zip(row, names, strict=True)) in wanted for row in rows)


def test_every_way_out_has_the_same_rows(graph, folder):
    with longwall.match(graph, "diamond", threads=1) as found:  # in the same order each time
        rows = rows_of(found.to_arrow())
        assert len(rows) == len(set(rows)) == found.count() == 151
        assert [row for batch in found for row in rows_of(batch)] == rows
        assert [tuple(row) for row in found.to_pandas().itertuples(index=False)] == rows
        assert found.to_polars().rows() == rows
        assert polars.DataFrame(found).rows() == rows
        assert rows_of(pa.table(found)) == rows
        assert rows_of(pq.read_table(found.write_parquet("found.parquet"))) == rows
        assert rows_of(found.head(3)) == rows[:3]
        assert rows_of(found.head(1000)) == rows
        assert found.schema == found.to_arrow().schema
        assert isinstance(found.head(0), longwall.Table)
        with pytest.raises(InputError, match="exists: choose another name"):
            found.write_parquet("found.parquet")
        with pytest.raises(InputError, match="does not exist: create it first"):
            found.write_parquet("none/found.parquet")
    Path("found.parquet").unlink()


def test_nothing_is_searched_for_before_it_is_asked_for(graph, runs):
    found = longwall.match(graph, "diamond")
    assert "not searched for yet" in repr(found)
    assert not runs
    assert found.head(2).num_rows == 2
    assert runs.pop().export.limit == 2
    assert found.count() == found.count() == 151
    assert [run.workload.output for run in runs] == ["count"]
    assert "151 rows" in repr(found)


def test_each_way_out_searches_again(graph, runs):
    found = longwall.match(graph, "diamond")
    assert found.to_arrow().num_rows == found.count() == sum(batch.num_rows for batch in found) == 151
    assert [run.workload.output for run in runs] == ["embeddings", "embeddings"]
    assert "151 rows" in repr(found)
    found.close()
    assert found.to_arrow().num_rows == 151


def test_a_limit_ends_the_search(graph):
    with longwall.match(graph, "wedge", limit=10) as found:
        assert (found.count(), found.head(20).num_rows, found.to_arrow().num_rows, found.count()) == (10, 10, 10, 10)
    with longwall.match(graph, "diamond", limit=1000) as found:
        assert (found.count(), found.to_arrow().num_rows) == (151, 151)


def test_a_program_may_change_its_folder_before_it_asks_for_rows(tmp_path_factory, monkeypatch):
    there, elsewhere = tmp_path_factory.mktemp("there"), tmp_path_factory.mktemp("elsewhere")
    for folder, edges in ((there, "0 1\n1 2\n0 2\n"), (elsewhere, "0 1\n1 2\n0 2\n2 3\n1 3\n")):
        (folder / "graph.txt").write_text(edges)
    monkeypatch.chdir(there)
    matches = longwall.match("graph.txt", "triangle", engine="cpu")
    monkeypatch.chdir(elsewhere)
    assert matches.count() == len(matches.to_arrow()) == 1


def test_a_pattern_in_a_file_is_that_of_the_folder_in_which_it_was_named(graph, tmp_path_factory, monkeypatch):
    there, elsewhere = tmp_path_factory.mktemp("there"), tmp_path_factory.mktemp("elsewhere")
    for folder, edges in ((there, "e 0 1\ne 1 2\ne 0 2\n"), (elsewhere, "e 0 1\ne 1 2\n")):
        (folder / "one.graph").write_text("t # 0\nv 0 0\nv 1 0\nv 2 0\n" + edges)
    labelled = longwall.graph(nx.karate_club_graph(), dict.fromkeys(range(34), 0))
    monkeypatch.chdir(there)
    matches = longwall.match(labelled, "one.graph", engine="cpu")
    for folder in (elsewhere, there.parent):  # another pattern, and none, with this name
        monkeypatch.chdir(folder)
        rows = (len(matches.to_arrow()), len(matches.head(200)), matches.count())
        assert rows == (45, 45, 45)


def test_no_rows_are_a_table_without_rows(graph):
    with longwall.match(graph, "clique-6") as found:
        assert found.to_arrow().num_rows == found.head().num_rows == found.count() == 0
        assert found.to_pandas().columns.tolist() == [f"v{i}" for i in range(6)]


def test_maximal_cliques_are_those_of_networkx(karate, graph):
    with longwall.maximal_cliques(graph, min_size=3) as found:
        wanted = sorted(sorted(clique) for clique in nx.find_cliques(karate) if len(clique) >= 3)
        assert found.count() == len(wanted)
        table = found.to_arrow()
        assert sorted(map(sorted, table["clique"].to_pylist())) == wanted
        assert table["size"].to_pylist() == [len(clique) for clique in table["clique"].to_pylist()]
        assert found.schema == table.schema
        assert found.head(2).num_rows == 2
        assert isinstance(found.to_pandas(), pandas.DataFrame)


def test_an_interrupt_leaves_rows_that_can_be_asked_for_again(graph, monkeypatch):
    found = longwall.match(graph, "wedge")
    run = one_run.answer

    def interrupted(*arguments, **options):
        raise KeyboardInterrupt("a folder")

    monkeypatch.setattr(one_run, "answer", interrupted)
    with pytest.raises(KeyboardInterrupt) as error:
        found.to_arrow()
    assert not error.value.args
    assert not list(Path().iterdir())
    monkeypatch.setattr(one_run, "answer", run)
    assert found.to_arrow().num_rows == found.count()
    found.close()


@pytest.mark.parametrize("ask", [lambda g: longwall.match(g, "diamond", limit=9), longwall.maximal_cliques])
def test_matches_can_be_pickled(graph, ask):
    with ask(graph) as found:
        next(iter(found))
        again = pickle.loads(pickle.dumps(found))
        assert repr(again).removesuffix("not searched for yet>") in repr(found)
        assert again.head(3).to_pylist() == found.head(3).to_pylist()
        assert again.count() == found.count()
