"""Drawings of patterns: known ones look as in textbooks, no vertex lies on another or on an edge of others."""

from itertools import combinations, permutations
from math import dist
from xml.etree import ElementTree

import networkx as nx
import pytest

import longwall
from longwall.pipeline.patterns.parse import family_names, parse_pattern
from longwall.pipeline.patterns.pattern_drawing import frame, pattern_drawing
from longwall.pipeline.patterns.pattern_layout import layout
from longwall.storage.errors import InputError

ATLAS = [g for g in nx.graph_atlas_g() if 2 <= g.number_of_nodes() <= 6 and nx.is_connected(g)]


def away(point, one, other):
    """The distance of a point from the line between two."""
    length = dist(one, other) ** 2
    share = sum((p - a) * (b - a) for p, a, b in zip(point, one, other, strict=True)) / length
    share = min(max(share, 0), 1)
    return dist(point, [a + share * (b - a) for a, b in zip(one, other, strict=True)])


def clear(edges):
    """Whether vertices touch neither one another nor edges of others."""
    at = frame(edges, 160.0)
    apart = min(dist(one, other) for one, other in combinations(at.places, 2))
    lines = [
        away(at.places[v], at.places[a], at.places[b])
        for a, b in edges
        for v in range(len(at.places))
        if v not in (a, b)
    ]
    inside = all(
        at.radius <= x <= at.width - at.radius and at.radius <= y <= at.height - at.radius for x, y in at.places
    )
    return inside and apart > 2 * at.radius and min(lines, default=99) > at.radius


@pytest.mark.parametrize("number", range(2, 7))
def test_no_vertex_covers_anything(number):
    graphs = [g for g in ATLAS if g.number_of_nodes() == number]
    assert graphs
    assert [sorted(g.edges) for g in graphs if not clear(sorted(g.edges))] == []


def test_no_vertex_of_a_named_pattern_covers_anything():
    assert [name for name in family_names() if not clear(parse_pattern(name).edges)] == []


def places_of(name, order=None):
    """Where the vertices of a named pattern are; `order` is another numbering."""
    pattern = parse_pattern(name)
    if order is None:
        return layout(pattern.edges)
    found = layout(tuple((order[u], order[v]) for u, v in pattern.edges))
    return [found[order[v]] for v in range(pattern.num_vertices)]


@pytest.mark.parametrize("order", [None, (4, 2, 0, 1, 3), (1, 4, 3, 0, 2)])
def test_a_house_is_a_house(order):
    upper_left, upper_right, lower_right, lower_left, roof = places_of("house", order)
    left, right = sorted([(upper_left, lower_left), (upper_right, lower_right)])
    assert left[0][0] == left[1][0] < right[0][0] == right[1][0]
    assert roof[1] < left[0][1] == right[0][1] < left[1][1] == right[1][1]
    assert roof[0] == (left[0][0] + right[0][0]) / 2


def test_textbook_shapes():
    a, b, top, bottom = places_of("diamond")
    assert a[1] == b[1] == (top[1] + bottom[1]) / 2
    assert top[0] == bottom[0] == (a[0] + b[0]) / 2
    middle, *corners = places_of("bowtie")
    assert sorted(x < middle[0] for x, _ in corners) == [False, False, True, True]
    hub, *leaves = places_of("star-6")
    assert {round(dist(hub, leaf), 6) for leaf in leaves} == {1}
    hub, *rim = places_of("wheel-7")
    sides = {round(dist(one, other), 6) for one, other in zip(rim, [*rim[1:], rim[0]], strict=True)}
    assert len(sides) == 1
    ring = places_of("cycle-4")
    assert {tuple(abs(round(x, 6)) for x in corner) for corner in ring} == {(0.707107, 0.707107)}
    assert len({y for _, y in places_of("path-4")}) == 1
    columns = layout(parse_pattern("0-2,0-3,0-4,1-2,1-3,1-4").edges)
    assert len({y for _, y in columns[:2]}) == len({y for _, y in columns[2:]}) == 1


@pytest.mark.parametrize("name", ["house", "diamond", "bowtie", "wheel-5", "star-4", "path-5", "cycle-5"])
def test_the_shape_is_that_of_the_pattern_not_of_its_numbers(name):
    pattern = parse_pattern(name)
    shapes = set()
    for order in list(permutations(range(pattern.num_vertices)))[::7]:
        places = places_of(name, order)
        shapes.add(tuple(sorted((round(x, 6) + 0.0, round(y, 6) + 0.0) for x, y in places)))
    assert len(shapes) == 1


def test_drawings_have_the_colour_of_the_text_around_them():
    html = longwall.pattern("house")._repr_html_()
    assert 'stroke="currentColor"' in html
    assert "<style" not in html
    assert "#000" not in html
    assert "white" not in html


def test_files_are_light_or_dark_as_the_screen(tmp_path):
    pattern = longwall.pattern("(person:1)-[:2]-(friend:3)")
    root = ElementTree.fromstring(pattern.svg())
    assert "prefers-color-scheme:dark" in root.find("{*}style").text
    assert {"person", "friend", "1", "3", "2"} <= {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}
    pattern.savefig(tmp_path / "one.svg")
    pattern.savefig(str(tmp_path / "one.svg"))
    assert (tmp_path / "one.svg").read_text() == pattern.svg()


@pytest.mark.parametrize(
    ("name", "words"), [("house.png", r"house\.png.*\.svg"), ("none/house.svg", "cannot be written"), (3, "path")]
)
def test_what_cannot_be_written_is_refused(tmp_path, monkeypatch, name, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=words):
        longwall.pattern("house").savefig(name)
    assert not list(tmp_path.iterdir())


def test_damaged_patterns_are_drawn():
    assert pattern_drawing([(0, 1), (4, 5)], [1], [2]).shapes
    assert pattern_drawing([(0, 1), (1, 2)], [1, None, "a long label"]).shapes
