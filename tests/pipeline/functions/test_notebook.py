"""What objects show in a notebook: well-formed, escaped, what they hold; and progress where there is no terminal."""

import sys
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

import longwall
from longwall.pipeline.progress import observers


def text_of(item) -> str:
    """The text of what an object shows, which must be well-formed."""
    html = item._repr_html_()
    return " ".join(ElementTree.fromstring(f"<all>{html}</all>").itertext())


def test_graphs_show_their_sizes(graph):
    assert "34" in text_of(graph)
    assert "34 vertices, 78 edges" in repr(graph)
    labelled = longwall.graph([(0, 1)], labels={0: 1, 1: 2})
    assert "labels" in text_of(labelled)


def test_results_show_counts(graph, tmp_path):
    run = {"directory": str(tmp_path / "runs")}
    found = longwall.run({"graph": graph, "workload": {"kind": "triangles"}, "run": run})
    assert "45" in text_of(found)
    assert "1,098" in text_of(longwall.run({"graph": graph, "workload": {"kind": "motifs", "k": 4}, "run": run}))
    many = longwall.run({"graph": graph, "workload": {"kind": "motifs", "k": 5}, "run": run})
    assert "and 9 more patterns" in text_of(many)
    import shutil

    shutil.rmtree(tmp_path / "runs")


def test_embeddings_show_their_first_rows(graph):
    with longwall.edges(graph) as edges:
        assert "78 rows of 1 edge" in text_of(edges)
        assert "e0_u" in text_of(edges)
    with longwall.vertices(graph) as vertices, longwall.filter(vertices, lambda columns, *_: columns[0] < 0) as none:
        assert "34 rows of 1 vertex" in repr(vertices)
        assert "0 rows" in text_of(none)


@pytest.mark.parametrize("source", ["house", "clique-16", '(a:1)-[:"<b>&"]-(b:"</svg><script>")', "(a)-(b)"])
def test_patterns_are_drawn(source):
    found = longwall.pattern(source)
    html = found._repr_html_()
    assert html.count("<circle") == found.num_vertices
    assert html.count("<line") == len(found.edges)
    assert "<script>" not in html
    assert found.name in text_of(found)


def test_matches_show_no_rows_before_they_are_searched_for(graph):
    with longwall.match(graph, "(a)-(b)-(c), (a)-(c)") as found:
        assert "not searched for yet" in text_of(found)
        found.to_arrow()
        assert "45 rows" in text_of(found)
    with longwall.maximal_cliques(graph) as found:
        found.to_arrow()
        assert "36 rows" in text_of(found)


def test_plans_show_their_lines(graph):
    plan = longwall.explain(graph, "house")
    assert all(line[13:] in text_of(plan) for line in str(plan).splitlines())


@pytest.fixture
def notebook(monkeypatch):
    """A process that is one of a notebook, as far as can be seen."""
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))


def test_progress_is_output_of_the_cell(notebook, graph, monkeypatch, capsys):
    monkeypatch.setattr(observers, "find_spec", lambda name: None)
    longwall.count(graph, "house", progress=True)
    out, err = capsys.readouterr()
    assert out.splitlines()[0].startswith("counting")
    assert err == ""


def test_progress_is_a_bar_where_there_are_widgets(notebook, monkeypatch):
    from longwall.pipeline.progress.progress_bar import TerminalObserver

    monkeypatch.setattr(observers, "find_spec", lambda name: object())
    chosen = observers.choose_observer(quiet=False)
    assert isinstance(chosen.observer, TerminalObserver)
    chosen.close()


def test_ipython_in_a_terminal_is_no_notebook(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace()))
    assert isinstance(observers.choose_observer(quiet=False).observer, observers.PlainObserver)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert isinstance(observers.choose_observer(quiet=False).observer, observers.PlainObserver)
