"""The plan of a run: plain data that says what will be executed, and can be printed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from longwall.pipeline.patterns.pattern import ANY_LABEL, Pattern

if TYPE_CHECKING:
    from longwall.kernels.interface.search_program import SearchProgram
    from longwall.stages.base import Stage
    from longwall.stages.counting import FusedCount
    from longwall.stages.filtering import Verify, VerifyLabels
    from longwall.stages.source import EdgeSource


@dataclass(frozen=True)
class MatchPlan:
    """How a pattern is searched for.

    Attributes
    ----------
    pattern
        The pattern.
    induced
        Whether the matching is induced.
    counting
        Whether only the number of embeddings is wanted.
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
    joined
        What is verified when levels are made. In a plan of edge joins, whose program has the edges of a spanning tree
        only: the other (non-)edges between the vertex of a depth and earlier ones. Labels of edges in any plan.
    """

    pattern: Pattern
    induced: bool
    counting: bool
    order: tuple[int, ...]
    suffix: int
    restrictions: tuple[tuple[int, int], ...]
    redundancy: int
    descending: bool
    automorphisms: int
    program: SearchProgram
    cost: float
    rows: tuple[float, ...]
    joined: tuple[Verify | VerifyLabels, ...] = ()

    @property
    def title(self) -> str:
        """What is searched for, as the phases of a run name it."""
        labels = "" if self.pattern.labels is None else f", labels {' '.join(map(_called, self.pattern.labels))}"
        if self.has_edge_labels:
            labels += f", edge labels {' '.join(map(_called, self.pattern.edge_labels or ()))}"
        return f"{self.pattern.edge_text}{labels}{', induced' if self.induced else ''}"

    @property
    def has_edge_labels(self) -> bool:
        """Whether labels of edges are verified."""
        return self.pattern.edge_labels is not None

    @property
    def reads_whole_lists(self) -> bool:
        """Whether more of lists is read than smaller neighbours."""
        from longwall.kernels.interface.frontier import reads_smaller_only

        return bool(self.joined) or self.has_edge_labels or not reads_smaller_only(self.program)

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data, for the manifest."""
        from longwall.stages.filtering import Verify

        return {
            "kind": "edge joins" if any(isinstance(one, Verify) for one in self.joined) else "search",
            "pattern": self.pattern.edge_text,
            "labels": self.pattern.labels,
            **({"names": self.pattern.names} if self.pattern.names else {}),
            **({"edge_labels": self.pattern.edge_labels} if self.has_edge_labels else {}),
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

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """The stages, one for each level that is enumerated, and one that counts or exports."""
        program = self.program
        stages: list[Stage] = []
        for depth in range(1, len(program.levels)):
            stages += self.level_stages(depth)
        if not self.counting:
            from longwall.stages.export import Export

            return (*stages, Export(program.depth))
        return (*stages, self.fused_count)

    def level_stages(self, depth: int) -> tuple[Stage, ...]:
        """Return the stages that make a level of the rows of the one before, or the first two of the graph's edges."""
        from longwall.stages.extension.planned import Extend

        verified = tuple(one for one in self.joined if one.level == depth)
        levels = self.program.levels
        if depth == 1:
            return self.edge_source, *verified
        return Extend(depth, self._called(self.order[depth]), levels[depth].candidates, self._sets(depth)), *verified

    @cached_property
    def edge_source(self) -> EdgeSource:
        """The first stage."""
        from longwall.stages.source import EdgeSource

        levels = self.program.levels
        return EdgeSource((levels[0], levels[1]), self._sets(0) + self._sets(1))

    @cached_property
    def fused_count(self) -> FusedCount:
        """The last stage of a plan that counts."""
        from longwall.stages.counting import FusedCount

        program = self.program
        terms = " + ".join(
            f"{c} " + " ".join(f"|set {program.blocks[b].candidates}|" for b in blocks) for c, blocks in program.terms
        )
        vertices = tuple(map(self._called, self.order[len(program.levels) :]))
        return FusedCount(self.pattern.num_vertices - 1, vertices, terms, self.redundancy)

    def describe(self) -> str:
        """The plan as text, a line per level."""
        pattern = self.pattern
        lines = [
            f"pattern      {pattern.name or pattern.edge_text}  ({pattern.edge_text}), "
            f"{pattern.num_vertices} vertices, {len(pattern.edges)} edges, {self.automorphisms} automorphisms",
            f"matching     {'induced' if self.induced else 'non-induced'}",
            f"order        {' '.join(map(self._called, self.order))}",
            f"restrictions {self._restriction_text()}",
            *(stage.describe() for stage in self.stages),
            f"estimate     {self.cost:.3g} elementary steps",
        ]
        return "\n".join(lines)

    def _sets(self, depth: int) -> tuple[str, ...]:
        """How the sets of a depth are computed, as text."""
        numbers = [number for number, op in enumerate(self.program.sets) if op.depth == depth]
        return tuple(f"set {number} = {self._set_text(number)}" for number in numbers)

    def _restriction_text(self) -> str:
        sign = ">" if self.descending else "<"
        vertices = self.pattern.columns
        return ", ".join(f"{vertices[a]} {sign} {vertices[b]}" for a, b in self.restrictions) or "none"

    def _called(self, vertex: int) -> str:
        """What a line of the plan calls a vertex: as the pattern does, or its number."""
        return self.pattern.names[vertex] if self.pattern.names else str(vertex)

    def _set_text(self, number: int) -> str:
        op = self.program.sets[number]
        vertices = [self.pattern.columns[vertex] for vertex in self.order]
        adjacency = f"N({vertices[op.adjacent]})"
        text = (
            adjacency,
            f"{adjacency} with label {op.label}",
            f"set {op.source} & {adjacency}",
            f"set {op.source} \\ {adjacency}",
        )[op.kind]
        for sign, mask in (("<", op.below), (">", op.above)):
            text += "".join(f", {sign} {vertex}" for d, vertex in enumerate(vertices) if mask >> d & 1)
        return text + (", size only" if op.size_only else "")


def _called(label: int | str | None) -> str:
    return "any" if label in (ANY_LABEL, None) else str(label)
