"""Count embeddings through homomorphisms, without enumerating anything.

The number of injective homomorphisms of a pattern is a fixed linear combination of the numbers of all
homomorphisms of its quotients, the patterns that arise when non-adjacent vertices are merged (Lovasz; Curticapean,
Dell and Marx, STOC 2017). Where a quotient becomes a forest once one vertex r is taken away, a row program counts
its homomorphisms: in time proportional to the sum of squared degrees where every edge of the forest (but those of
hanging trees) touches a neighbour of r, otherwise to vertices times edges. That covers, among others, every
pattern on four vertices but the clique, and houses, bowties, books, K(2,3), cycles and trees.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from math import factorial
from typing import Any

from longwall.kernels.interface.homomorphism_program import MAX_SCALARS, Op, RowProgram
from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.patterns.symmetry import isomorphic
from longwall.pipeline.planning.set_partitions import set_partitions

MAX_VERTICES = 7  # 877 set partitions; the next size has 4,140

# An expression is a nested tuple, so that equal vectors are found by comparing expressions:
#   weight  ("weight", children...)         message of a tree that holds no neighbour of r, to a vertex
#   local   ("local", factors...)           factors are ("pull", dense) or weights
#   dense   ("scatter", local) or ("spread", factors...), factors are ("push", local), ("widen", dense) or weights
#   scalar  ("sum", local) or ("sum", dense)
Expression = tuple[Any, ...]


@dataclass(frozen=True)
class HomomorphismSum:
    """How the number of injective homomorphisms of a pattern is put together.

    Attributes
    ----------
    program
        Counts the homomorphisms of every quotient.
    quotients
        (coefficient, quotient), in the order of the program's products.
    """

    program: RowProgram
    quotients: tuple[tuple[int, Pattern], ...]


@lru_cache(maxsize=256)
def plan_homomorphisms(pattern: Pattern) -> HomomorphismSum | None:
    """Find a row program for an unlabelled pattern; None where it has none."""
    if pattern.labels is not None or pattern.num_vertices > MAX_VERTICES:
        return None
    quotients = _quotients(pattern)
    builder = _Builder()
    products: list[tuple[int, ...]] = []
    for _, quotient in quotients:
        best: tuple[tuple[int, int], tuple[Expression, ...]] | None = None
        for scalars in _scalars(quotient):
            cost = _cost({pass_ for scalar in scalars for pass_ in _passes(scalar)} - builder.passes)
            if best is None or cost < best[0]:
                best = cost, scalars
        if best is None:
            return None
        products.append(tuple(builder.scalar(scalar) for scalar in best[1]))
    if builder.num_scalars > MAX_SCALARS:
        return None
    program = RowProgram(
        tuple(builder.ops),
        builder.num_local,
        builder.num_dense,
        builder.num_scalars,
        tuple(builder.weights),
        tuple(products),
        passes=sum(pass_[0] != "widen" for pass_ in builder.passes),
        wide_passes=sum(pass_[0] == "widen" for pass_ in builder.passes),
    )
    return HomomorphismSum(program, tuple(quotients))


def _quotients(pattern: Pattern) -> list[tuple[int, Pattern]]:
    """Distinct loop-free quotients with their coefficients, the largest first."""
    found: list[tuple[int, Pattern]] = []
    for partition in set_partitions(range(pattern.num_vertices)):
        if any(pattern.neighbours[v].intersection(block) for block in partition for v in block):
            continue
        coefficient = 1
        for block in partition:
            coefficient *= (-1) ** (len(block) - 1) * factorial(len(block) - 1)
        merged = {v: i for i, block in enumerate(partition) for v in block}
        ends = ((merged[u], merged[v]) for u, v in pattern.edges)
        edges = {(min(pair), max(pair)) for pair in ends}
        quotient = Pattern(len(partition), tuple(sorted(edges)))
        for i, (earlier, known) in enumerate(found):
            if isomorphic(known, quotient):
                found[i] = earlier + coefficient, known
                break
        else:
            found.append((coefficient, quotient))
    kept = [(c, q) for c, q in found if c]
    return sorted(kept, key=lambda item: -len(item[1].edges))


def _scalars(pattern: Pattern) -> Iterator[tuple[Expression, ...]]:
    """Ways to count homomorphisms: for each possible r, one scalar per tree of the forest that is left."""
    for r in range(pattern.num_vertices):
        near = pattern.neighbours[r]
        left = set(range(pattern.num_vertices)) - {r}
        if sum(1 for u, v in pattern.edges if r not in (u, v)) > len(left) - _num_trees(pattern, left):
            continue  # a cycle is left
        scalars: list[Expression] = []
        for tree in _trees(pattern, left):
            rooted = (_rooted(pattern, tree, near, root) for root in sorted(tree))
            scalars.append(min((one for one in rooted if one is not None), key=lambda one: _cost(_passes(one))))
        yield tuple(scalars)


def _trees(pattern: Pattern, left: set[int]) -> list[frozenset[int]]:
    trees, todo = [], set(left)
    while todo:
        tree, frontier = set(), [min(todo)]
        while frontier:
            v = frontier.pop()
            if v not in tree:
                tree.add(v)
                frontier.extend(pattern.neighbours[v] & left)
        todo -= tree
        trees.append(frozenset(tree))
    return trees


def _num_trees(pattern: Pattern, left: set[int]) -> int:
    return len(_trees(pattern, left))


def _rooted(pattern: Pattern, tree: frozenset[int], near: frozenset[int], root: int) -> Expression | None:
    """The scalar of a tree, computed towards `root`; None where nothing below the root holds a neighbour of r."""

    def children(v: int, parent: int | None) -> list[int]:
        return [w for w in pattern.neighbours[v] & tree if w != parent]

    def holds_near(v: int, parent: int) -> bool:
        return v in near or any(holds_near(w, v) for w in children(v, parent))

    def weight(v: int, parent: int) -> Expression:
        return ("weight", *sorted(weight(w, v) for w in children(v, parent)))

    def vector(v: int, parent: int | None) -> Expression | None:
        factors: list[Expression] = []
        for w in children(v, parent):
            if not holds_near(w, v):
                factors.append(weight(w, v))
                continue
            below = vector(w, v)
            assert below is not None, "a tree that holds a neighbour of r has a vector"
            if v not in near:
                factors.append(("push", below) if w in near else ("widen", below))
            else:
                factors.append(("pull", ("scatter", below) if w in near else below))
        if v in near:
            return ("local", *sorted(factors, key=repr))
        if all(factor[0] == "weight" for factor in factors):
            return None
        return ("spread", *sorted(factors, key=repr))

    top = vector(root, None)
    return None if top is None else ("sum", top)


def _passes(expression: Expression) -> set[Expression]:
    """The distinct pull, push and widen operations below an expression."""
    found = {expression} if expression[0] in ("pull", "push", "widen") else set()
    for part in expression[1:]:
        found |= _passes(part)
    return found


def _cost(passes: set[Expression]) -> tuple[int, int]:
    """Wide passes first: one costs more than many others."""
    wide = sum(pass_[0] == "widen" for pass_ in passes)
    return wide, len(passes) - wide


@dataclass
class _Builder:
    """Emits operations, every distinct vector once."""

    ops: list[tuple[int, int, int]] = field(default_factory=list)
    weights: list[tuple[int, ...]] = field(default_factory=list)
    passes: set[Expression] = field(default_factory=set)
    num_local: int = 0
    num_dense: int = 0
    num_scalars: int = 0
    _numbers: dict[Expression, int] = field(default_factory=dict)

    def scalar(self, expression: Expression) -> int:
        if expression not in self._numbers:
            inner = expression[1]
            if inner[0] == "local":
                self._emit(Op.SUM, self.num_scalars, self._local(inner))
            else:
                self._emit(Op.SUM_DENSE, self.num_scalars, self._dense(inner))
            self._numbers[expression] = self.num_scalars
            self.num_scalars += 1
        return self._numbers[expression]

    def _emit(self, op: Op, target: int, source: int) -> None:
        self.ops.append((int(op), target, source))

    def _new_local(self) -> int:
        self.num_local += 1
        return self.num_local - 1

    def _new_dense(self) -> int:
        self.num_dense += 1
        return self.num_dense - 1

    def _weight(self, expression: Expression) -> int:
        if expression not in self._numbers:
            entry = tuple(self._weight(child) for child in expression[1:])
            self._numbers[expression] = len(self.weights)
            self.weights.append(entry)
        return self._numbers[expression]

    def _local(self, expression: Expression) -> int:
        if expression not in self._numbers:
            sources = [
                (Op.WEIGH, self._weight(factor)) if factor[0] == "weight" else (Op.MULTIPLY, self._pull(factor))
                for factor in expression[1:]
            ]
            number = self._new_local()
            self._emit(Op.ONES, number, 0)
            for op, source in sources:
                self._emit(op, number, source)
            self._numbers[expression] = number
        return self._numbers[expression]

    def _pull(self, expression: Expression) -> int:
        if expression not in self._numbers:
            source = self._dense(expression[1])
            self._numbers[expression] = self._new_local()
            self._emit(Op.PULL, self._numbers[expression], source)
            self.passes.add(expression)
        return self._numbers[expression]

    def _push(self, expression: Expression) -> int:
        if expression not in self._numbers:
            source = self._local(expression[1])
            self._numbers[expression] = self._new_dense()
            self._emit(Op.PUSH, self._numbers[expression], source)
            self.passes.add(expression)
        return self._numbers[expression]

    def _widen(self, expression: Expression) -> int:
        if expression not in self._numbers:
            source = self._dense(expression[1])
            self._numbers[expression] = self._new_dense()
            self._emit(Op.WIDEN, self._numbers[expression], source)
            self.passes.add(expression)
        return self._numbers[expression]

    def _dense(self, expression: Expression) -> int:
        if expression not in self._numbers:
            if expression[0] == "scatter":
                source = self._local(expression[1])
                self._numbers[expression] = self._new_dense()
                self._emit(Op.SCATTER, self._numbers[expression], source)
            else:
                self._numbers[expression] = self._spread(expression[1:])
        return self._numbers[expression]

    def _spread(self, factors: tuple[Expression, ...]) -> int:
        vectors = [self._push(factor) for factor in factors if factor[0] == "push"]
        vectors += [self._widen(factor) for factor in factors if factor[0] == "widen"]
        weights = [self._weight(factor) for factor in factors if factor[0] == "weight"]
        if len(vectors) == 1 and not weights:
            return vectors[0]
        number = self._new_dense()
        self._emit(Op.COPY_DENSE, number, vectors[0])
        for source in vectors[1:]:
            self._emit(Op.MULTIPLY_DENSE, number, source)
        for source in weights:
            self._emit(Op.WEIGH_DENSE, number, source)
        return number
