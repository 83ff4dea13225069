"""What objects show in a notebook: well-formed, escaped, what they hold; and progress where there is no terminal."""

import shutil
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
    """A process that is one of a notebook, as far as can be seen; what its cell has shown, picture by picture."""
    shown = []
    shell = SimpleNamespace(kernel=object(), get_ipython=None)
    handle = SimpleNamespace(update=shown.append)
    show = SimpleNamespace(HTML=str, display=lambda page, display_id: shown.append(page) or handle)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell, display=show))
    monkeypatch.setitem(sys.modules, "IPython.display", show)
    return shown


def test_progress_is_a_bar_of_the_cell(notebook, graph, capsys):
    longwall.count(graph, "house", progress=True)
    pages = [ElementTree.fromstring(f"<all>{page}</all>") for page in notebook]
    assert any(page.find(".//progress") is not None and "counting" in "".join(page.itertext()) for page in pages)
    assert pages[-1].find(".//progress") is None
    assert any(line.text.startswith("counting") for line in pages[-1])
    assert capsys.readouterr() == ("", "")


def test_the_bar_moves_and_its_texts_are_escaped(notebook, monkeypatch):
    monkeypatch.setattr(observers, "_BETWEEN", 0.0)
    bar = observers.choose_observer(quiet=False)
    bar.phase("mining <b>", 8, "tasks")
    bar.advance(2)
    bar.near_limit(0.5)
    bar.note("a <script> note")
    values = [ElementTree.fromstring(f"<all>{page}</all>").find(".//progress").get("value") for page in notebook]
    assert values == [None, "0.2500", "0.5000", "0.5000"]
    bar.phase("writing", None, "rows")
    bar.close()
    assert "mining &lt;b&gt;: 2 tasks in 0:00" in notebook[-1]
    assert "a &lt;script&gt; note" in notebook[-1]


def test_a_bar_that_shows_nothing_makes_no_output(notebook):
    observers.choose_observer(quiet=False).close()
    assert notebook == []


def test_results_link_their_report(graph, folder):
    config = {"graph": graph, "workload": {"kind": "triangles"}}
    found = longwall.run(config | {"run": {"name": "with"}})
    link = ElementTree.fromstring(found._repr_html_()).find(".//a")
    assert link.attrib["href"] == "runs/with/report.html"
    assert (folder / link.attrib["href"]).is_file()
    found = longwall.run(config | {"run": {"name": "without", "report": False}})
    assert "<a " not in found._repr_html_()
    found = longwall.run(config | {"run": {"name": "elsewhere", "directory": str(folder.parent / "other runs")}})
    assert (
        ElementTree.fromstring(found._repr_html_()).find(".//a").attrib["href"] == (found.path / "report.html").as_uri()
    )
    shutil.rmtree(folder / "runs")


def test_plans_fit_the_cell(graph):
    html = longwall.explain(graph, "house", all=True)._repr_html_()
    assert "white-space:pre-wrap" in html
    assert "overflow-x:auto" in html


def test_ipython_in_a_terminal_is_no_notebook(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace()))
    assert isinstance(observers.choose_observer(quiet=False).observer, observers.PlainObserver)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert isinstance(observers.choose_observer(quiet=False).observer, observers.PlainObserver)
