"""The plan of a run: plain data that says what will be executed, and can be printed."""

from dataclasses import dataclass
from typing import Any

from longwall.kernels.interface.search_program import SearchProgram
from longwall.pipeline.patterns.pattern import Pattern


@dataclass(frozen=True)
class MatchPlan:
    """How a pattern is searched for.

    Attributes
    ----------
    pattern
        The pattern.
    induced
        Whether the matching is induced.
    order
        Matching order (pattern vertices).
    suffix
        Number of last vertices of the order that are counted, never enumerated.
    restrictions
        Pairs (first, second) of pattern vertices: symmetry-breaking bounds.
    redundancy
        How often each embedding is counted under the restrictions.
    descending
        Whether `first` of a restriction has the larger internal id.
    automorphisms
        Size of the automorphism group: mappings per embedding.
    program
        The compiled order.
    cost
        Estimated number of elementary steps.
    rows
        Estimated number of partial embeddings per enumerated depth.
    """

    pattern: Pattern
    induced: bool
    order: tuple[int, ...]
    suffix: int
    restrictions: tuple[tuple[int, int], ...]
    redundancy: int
    descending: bool
    automorphisms: int
    program: SearchProgram
    cost: float
    rows: tuple[float, ...]

    @property
    def title(self) -> str:
        """What is searched for, as the phases of a run name it."""
        labels = "" if self.pattern.labels is None else f", labels {' '.join(map(str, self.pattern.labels))}"
        return f"{self.pattern.edge_text}{labels}{', induced' if self.induced else ''}"

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data, for the manifest."""
        return {
            "kind": "search",
            "pattern": self.pattern.edge_text,
            "labels": self.pattern.labels,
            "induced": self.induced,
            "order": self.order,
            "counted_suffix": self.suffix,
            "restrictions": self.restrictions,
            "redundancy": self.redundancy,
            "direction": "descending" if self.descending else "ascending",
            "automorphisms": self.automorphisms,
            "estimated_cost": self.cost,
            "estimated_rows": self.rows,
        }

    def describe(self) -> str:
        """The plan as text, a line per level."""
        pattern = self.pattern
        lines = [
            f"pattern      {pattern.name or pattern.edge_text}  ({pattern.edge_text}), "
            f"{pattern.num_vertices} vertices, {len(pattern.edges)} edges, {self.automorphisms} automorphisms",
            f"matching     {'induced' if self.induced else 'non-induced'}",
            f"order        {' '.join(map(str, self.order))}",
            f"restrictions {self._restriction_text()}",
            "source       edges of the graph (levels 0 and 1)",
        ]
        for depth, level in enumerate(self.program.levels):
            if depth >= 2:
                text = f"extend to pattern vertex {self.order[depth]}: candidates are set {level.candidates}"
                lines.append(f"level {depth:<6} {text}")
            for number, op in enumerate(self.program.sets):
                if op.depth == depth:
                    lines.append(f"             set {number} = {self._set_text(number)}")
        if self.suffix:
            vertices = ", ".join(str(v) for v in self.order[-self.suffix :])
            how = " + ".join(
                f"{c} " + " ".join(f"|set {self.program.blocks[b].candidates}|" for b in blocks)
                for c, blocks in self.program.terms
            )
            lines.append(f"count        pattern vertices {vertices} (fused, never written): {how}")
            if self.redundancy > 1:
                lines.append(f"             divided by {self.redundancy}")
        else:
            lines.append("export       every row")
        lines.append(f"estimate     {self.cost:.3g} elementary steps")
        return "\n".join(lines)

    def _restriction_text(self) -> str:
        sign = ">" if self.descending else "<"
        return ", ".join(f"v{a} {sign} v{b}" for a, b in self.restrictions) or "none"

    def _set_text(self, number: int) -> str:
        op = self.program.sets[number]
        adjacency = f"N(v{self.order[op.adjacent]})"
        text = (
            adjacency,
            f"{adjacency} with label {op.label}",
            f"set {op.source} & {adjacency}",
            f"set {op.source} \\ {adjacency}",
        )[op.kind]
        for sign, mask in (("<", op.below), (">", op.above)):
            text += "".join(f", {sign} v{self.order[d]}" for d in range(len(self.order)) if mask >> d & 1)
        return text + (", size only" if op.size_only else "")
