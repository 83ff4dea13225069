"""The separator of a table in which other fields hold separators, too: prices with decimal commas, free text."""

import csv
import io
import random
import warnings
from pathlib import Path

import pytest

import longwall

HEADER = ["Nr", "Auftraggeber", "Empfänger", "Betrag", "Zweck"]
PRICES = {
    ",": ["1.250;00", "3;50", "0;99"],
    ";": ["1.250,00", "3,50", "0,99"],
    "|": ["1.250,00", "3;50", "0,99"],
    "\t": ["1.250,00", "3;50", "0|99"],
}
TEXTS = {
    ",": ["rent; flat; May", "a|b"],
    ";": ["rent, flat, May", "a|b"],
    "|": ["rent, flat; May", "a; b"],
    "\t": ["rent, flat; May", "a|b"],
}


def payments(ends: str, separator: str, seed: int) -> list[list[str]]:
    rng = random.Random(seed)
    kinds = {
        "names": lambda: f"DE{rng.randrange(10, 30)} 5001 {rng.randrange(3)}",
        "integers": lambda: str(rng.randrange(20)),
    }
    pairs = [(kinds[ends](), kinds[ends]()) for _ in range(40)]
    rows = [
        [f"T{at}", a, b, rng.choice(PRICES[separator]), rng.choice(TEXTS[separator])] for at, (a, b) in enumerate(pairs)
    ]
    return [row for row in rows if row[1] != row[2]]


def edges_of(graph: longwall.Graph) -> set[frozenset[str]]:
    return {frozenset(map(str, row.values())) for row in graph.to_arrow().select(["source", "target"]).to_pylist()}


@pytest.mark.parametrize("separator", [",", ";", "|", "\t"])
@pytest.mark.parametrize("ends", ["names", "integers"])
@pytest.mark.parametrize("header", [True, False])
def test_separators_inside_of_other_fields_separate_nothing(
    tmp_path: Path, separator: str, ends: str, header: bool
) -> None:
    for seed in range(6):
        rows = payments(ends, separator, seed)
        text = io.StringIO()
        csv.writer(text, delimiter=separator, lineterminator="\r\n").writerows([HEADER, *rows] if header else rows)
        path = tmp_path / ("g.tsv" if separator == "\t" else "g.csv")
        path.write_text(text.getvalue(), encoding="utf-8-sig")
        read = list(csv.reader(io.StringIO(text.getvalue()), delimiter=separator))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", longwall.DataNote)
            graph = longwall.open_graph(path, columns=("Auftraggeber", "Empfänger") if header else (2, 3))
        assert edges_of(graph) == {frozenset(row[1:3]) for row in read[header:]}


def test_a_separator_in_the_names_of_columns(tmp_path: Path) -> None:
    path = tmp_path / "g.csv"
    path.write_text("Betrag, brutto;Von;An\n3,50;ann;bob\n4,50;bob;eve\n")
    assert edges_of(longwall.open_graph(path, columns=("Von", "An"))) == {
        frozenset(("ann", "bob")),
        frozenset(("bob", "eve")),
    }


def test_labels_with_commas_in_a_table_of_semicolons(tmp_path: Path) -> None:
    (tmp_path / "g.csv").write_text("source;target\n1;2\n2;3\n")
    (tmp_path / "labels.csv").write_text("id;label\n1;sales, north\n2;sales, south\n3;sales, north\n")
    graph = longwall.open_graph(tmp_path / "g.csv", labels=tmp_path / "labels.csv")
    assert longwall.count(graph, '(a:"sales, north")-(b:"sales, south")') == 2
