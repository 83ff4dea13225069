"""Real graphs, and queries on them whose counts were published."""

import tarfile
from functools import cache
from pathlib import Path

from longwall.pipeline.patterns.pattern import Pattern, make_pattern
from longwall.storage.graph.graph import Graph
from longwall.storage.ingest.ingest import load_graph


@cache
def load(data: Path, name: str, labels: str | None = None) -> Graph:
    """Load a graph, once, with the labels of that name."""
    found = data / "graphs" / f"{labels}.labels.gz" if labels else None
    return load_graph(data / "graphs" / f"{name}.edges.gz", found)


def queries(data: Path) -> list[tuple[str, Pattern, int]]:
    expected = {}
    for line in (data / "matching" / "hprd-expected.txt").read_text().splitlines():
        name, _, number = line.partition(":")
        expected[name] = int(number)
    found = []
    with tarfile.open(data / "matching" / "hprd-queries.tar.gz") as archive:
        for member in archive.getmembers():
            name = Path(member.name).stem
            if not member.name.endswith(".graph") or name not in expected:
                continue
            file = archive.extractfile(member)
            assert file is not None
            rows = [line.split() for line in file.read().decode().splitlines()]
            labels = [int(row[2]) for row in rows if row and row[0] == "v"]
            edges = [(int(row[1]), int(row[2])) for row in rows if row and row[0] == "e"]
            found.append((name, make_pattern(edges, labels), expected[name]))
    assert len(found) == len(expected) == 200
    return sorted(found, key=lambda item: item[0])
