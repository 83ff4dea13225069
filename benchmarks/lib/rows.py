"""The rows of the table: what is counted on every graph. Standard library only."""

from dataclasses import dataclass
from typing import Any

FOUR_MOTIFS = ("star-3", "path-4", "tailed-triangle", "cycle-4", "diamond", "clique-4")


@dataclass(frozen=True)
class Row:
    """One row of the table.

    Attributes
    ----------
    name
        As the table prints it.
    workloads
        The ``[workload]`` sections of its runs; the row's time is the sum over them.
    """

    name: str
    workloads: tuple[dict[str, Any], ...]

    @property
    def patterns(self) -> tuple[str, ...]:
        """The name of each run's pattern."""
        return tuple(_pattern(section) for section in self.workloads)

    @property
    def induced(self) -> bool:
        """Whether the counts are of induced subgraphs."""
        return bool(self.workloads[0].get("induced", False))

    def known_counts(self, truth: dict[str, Any]) -> list[int] | None:
        """Look the row up in the known counts of a graph (an entry of ``counts.json``); None where absent."""
        table = dict(truth["induced" if self.induced else "non_induced"])
        table |= {f"clique-{k}": count for k, count in truth["cliques"].items()}
        table["triangle"] = table["clique-3"]
        if all(pattern in table for pattern in self.patterns):
            return [table[pattern] for pattern in self.patterns]
        return None


def _pattern(section: dict[str, Any]) -> str:
    if section["kind"] == "triangles":
        return "triangle"
    if section["kind"] == "cliques":
        return f"clique-{section['k']}"
    return str(section["pattern"])


ROWS = (
    Row("triangles", ({"kind": "triangles"},)),
    Row("4-clique", ({"kind": "cliques", "k": 4},)),
    Row("5-clique", ({"kind": "cliques", "k": 5},)),
    Row("diamond", ({"kind": "match", "pattern": "diamond"},)),
    Row("4-cycle", ({"kind": "match", "pattern": "cycle-4"},)),
    Row("house", ({"kind": "match", "pattern": "house"},)),
    Row(
        "induced 4-motifs",
        tuple({"kind": "match", "pattern": motif, "induced": True} for motif in FOUR_MOTIFS),
    ),
)
BY_NAME = {row.name: row for row in ROWS}
