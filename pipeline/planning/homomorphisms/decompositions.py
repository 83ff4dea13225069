"""Decompose a pattern: write the number of its homomorphisms as tables over vertices and arcs, joined and summed.

What is left of a pattern shrinks step by step (variable elimination), and every part that was taken away is a factor
at what it was joined to: a leaf at its neighbour, a vertex between two adjacent ones at the edge between them, and so
is whatever a cut vertex or an edge separates from the rest. A core to which nothing of this applies becomes a forest
once the image of a vertex r is fixed, or, where r is adjacent to all others, inside r's neighbourhood once one more is
(see :mod:`longwall.kernels.interface.homomorphism_program`). The tables are those of ESCAPE (Pinar, Seshadhri and
Vishal, WWW 2017), found for any pattern instead of by hand.

Expressions are nested tuples, so that equal ones are found by comparing them:

- vertex tables: ("nsum", vertex table, arc table), ("vrow", scalars...), ("vprod", factors...), ("given", number),
  ("label", number)
- arc tables: ("triangles",), ("paths",), ("cliques",), ("inner", pattern), ("tri", left, middle, right),
  ("head", vertex table), ("tail", vertex table), ("rev", arc table), ("arow", scalars...), ("vlocal", local),
  ("aprod", factors...)
- scalars of a row: ("sum", local or dense), ("load", table)
- local vectors: ("local", factors...), factors ("pull", dense, weight), ("weigh", table), ("warc", arc table),
  ("across", arc table)
- dense vectors: ("scatter", local) or ("spread", factors...), factors ("push", local, weight),
  ("widen", dense, weight), ("edges",), ("weigh", table)

None in place of a table stands for ones.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from longwall.kernels.interface.homomorphism_program import Domain, Inner
from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.planning.homomorphisms.pattern_core import (
    Core,
    Expression,
    NoDecomposition,
    PassCosts,
    Sum,
    Table,
    passes_of,
    product,
    reversed_table,
)

_INNER = {
    (2, 2, 2): Inner.TRIANGLES,
    (1, 2, 2, 3): Inner.PAWS,
    (2, 2, 2, 2): Inner.CYCLES,
    (2, 2, 3, 3): Inner.DIAMONDS,
}
"""By the degrees of its vertices."""


class Decomposer:
    """Finds sums for the homomorphisms of several patterns, which share what they can.

    Parameters
    ----------
    costs
        What passes cost.

    Attributes
    ----------
    passes
        Those that the sums so far need, by domain.
    """

    def __init__(self, costs: PassCosts):
        self.costs = costs
        self.passes: dict[Domain, set[Expression]] = {"vertices": set(), "arcs": set(), "common": set()}

    def count(self, pattern: Pattern, weights: Mapping[int, Expression] | None = None) -> Sum:
        """Return a sum for the homomorphisms of a connected pattern, whose labels do not count.

        Parameters
        ----------
        pattern
            The pattern.
        weights
            By vertex, the vertex table that weighs its images, where one does.

        Raises
        ------
        NoDecomposition
            If there is none.
        """
        found = self._solve(Core.of(pattern, weights), ())
        assert isinstance(found, Sum)
        self.passes[found.domain] |= passes_of(("", *found.scalars))
        return found

    def _solve(self, core: Core, keep: tuple[int, ...]) -> Any:
        """Return a sum or, for the vertex or the edge that is kept, a table of the homomorphisms that map it there."""
        while len(core.near) > max(len(keep), 1):
            if not (self._leaf(core, keep) or self._middle(core, keep) or self._pair(core, keep)):
                if self._inner(core, keep) or self._split(core, keep):
                    continue
                return self._whole(core, keep)
        if len(keep) == 2:
            y, z = keep
            tails = [("tail", table) for table in core.vertex.get(y, [])]
            heads = [("head", table) for table in core.vertex.get(z, [])]
            return product("aprod", [*core.factors(y, z), *tails, *heads])
        (last,) = core.near
        table = product("vprod", core.vertex.get(last, []))
        return table if keep else Sum("vertices", (("load", table),))

    def _leaf(self, core: Core, keep: tuple[int, ...]) -> bool:
        """Take a leaf away."""
        for x, near in core.near.items():
            if len(near) == 1 and x not in keep:
                (y,) = near
                table = ("nsum", product("vprod", core.vertex.get(x, [])), core.table(y, x))
                core.remove([x])
                core.vertex.setdefault(y, []).append(table)
                return True
        return False

    def _middle(self, core: Core, keep: tuple[int, ...]) -> bool:
        """Take a vertex between two adjacent ones away."""
        if not self.costs.lists:
            return False
        found: tuple[int, Table, Table, Table] | None = None
        for x, near in core.near.items():
            if len(near) == 2 and x not in keep:
                y, z = sorted(near)
                if z in core.near[y]:
                    left, right = core.table(y, x), core.table(z, x)
                    found = x, left, product("vprod", core.vertex.get(x, [])), right
                    if found[1:] == (None, None, None):
                        break
        if found is None:
            return False
        x, left, middle, right = found
        y, z = sorted(core.near[x])
        core.remove([x])
        core.weigh(y, z, ("triangles",) if found[1:] == (None, None, None) else ("tri", left, middle, right))
        return True

    def _pair(self, core: Core, keep: tuple[int, ...]) -> bool:
        """Take two adjacent vertices away: the ends of a cycle of four with an edge, or of a clique of four with it."""
        for x, near in core.near.items():
            for w in near:
                others = (near | core.near[w]) - {x, w}
                if {x, w} & set(keep) or len(others) != 2:
                    continue
                y, z = sorted(others)
                outer = [core.factors(v, end) for v in (x, w) for end in (y, z)]
                if z not in core.near[y] or not core.is_bare(x, w) or any(outer):
                    continue
                degrees = len(near), len(core.near[w])
                # With two neighbours each, x has one of y and z, and w the other one.
                kind = {(2, 2): "paths", (3, 3): "cliques"}.get(degrees)
                if kind is not None:
                    core.remove([x, w])
                    core.weigh(y, z, (kind,))
                    return True
        return False

    def _inner(self, core: Core, keep: tuple[int, ...]) -> bool:
        """Take a part away of which every vertex is adjacent to both ends of an edge, and count it in a table."""
        if not self.costs.lists:
            return False
        for y, z in [(v, w) for v in core.near for w in core.near[v] if v < w]:
            for part in core.parts({y, z}):
                inner = _INNER.get(tuple(sorted(len(core.near[v] & part) for v in part)))
                outer = [core.factors(v, end) for v in part for end in (y, z)]
                if (
                    inner is not None
                    and part <= core.near[y] & core.near[z]
                    and core.is_bare(*part)
                    and not any(outer)
                    and not part & set(keep)
                ):
                    core.remove(part)
                    core.weigh(y, z, ("inner", inner))
                    return True
        return False

    def _split(self, core: Core, keep: tuple[int, ...]) -> bool:
        """Take a part away that a cut vertex, or an edge, separates from the rest."""
        edges = [(v, w) for v in core.near for w in core.near[v] if v < w]
        for cut in [*((v,) for v in core.near), *edges]:
            parts = core.parts(set(cut))
            if len(parts) < 2:
                continue
            for part in parts:
                if part & set(keep):
                    continue
                try:
                    table = self._solve(core.part(part | set(cut), cut), cut)
                except NoDecomposition:
                    continue
                core.remove(part)
                if len(cut) == 2:
                    core.weigh(*cut, table)
                elif table is not None:
                    core.vertex.setdefault(cut[0], []).append(table)
                return True
        return False

    def _whole(self, core: Core, keep: tuple[int, ...]) -> Any:
        """Return a sum or a table for a core that has to be counted as a whole."""
        best: tuple[float, Any] | None = None
        options = [*_vertex_rows(core, keep)]
        if self.costs.lists:
            options += [*_arc_rows(core, keep), *(() if keep else _common_rows(core))]
        for domain, passes, found in options:
            if domain == "vertices" and not self.costs.lists and any(one[0] == "edges" for one in passes):
                continue
            cost = self.costs.of(domain, passes - self.passes[domain])
            if best is None or cost < best[0]:
                best = cost, found
        if best is None:
            raise NoDecomposition
        return best[1]


_Option = tuple[Domain, set[Expression], Any]


def _vertex_rows(core: Core, keep: tuple[int, ...]) -> Iterator[_Option]:
    """Yield ways to count a core by rows of vertices: for each vertex r whose image is fixed, one."""
    for r in keep or core.near:
        rest = core.part(set(core.near))
        edges = _take_edges(rest, r, keep)
        scalars: list[Expression] = [("load", table) for table in core.vertex.get(r, [])]
        trees = rest.parts({r})
        roots = [v for v in keep if v != r]
        if any(sum(len(rest.near[v] - {r}) for v in tree) != 2 * (len(tree) - 1) for tree in trees):
            continue  # a cycle is left
        vectors = _Vectors(rest, r, rest.near[r], edges, lambda v: [("weigh", t) for t in core.vertex.get(v, [])])
        if roots:
            top = vectors.rooted(trees[0], roots[0]) if len(trees) == 1 else None
            if top is not None and not scalars:
                table: Expression = ("vlocal", top)
                yield "vertices", passes_of(top), table if keep[0] == r else reversed_table(table)
            continue
        found = [_best_root(vectors, tree) for tree in trees]
        if all(one is not None for one in found):
            scalars += [("sum", one) for one in found]
            passes = passes_of(("", *scalars))
            product_ = tuple(sorted(scalars, key=repr))
            yield "vertices", passes, ("vrow", *product_) if keep else Sum("vertices", product_)


def _arc_rows(core: Core, keep: tuple[int, ...]) -> Iterator[_Option]:
    """Yield ways to count a core inside neighbourhoods: r is adjacent to all others, and the image of s is fixed."""
    for r, near in core.near.items():
        if len(near) < len(core.near) - 1:
            continue
        for s in near:
            if keep and s not in keep and keep != (r,):
                continue
            if len(keep) == 2 and r not in keep:
                continue
            yield from _inside(core, keep, r, s)


def _inside(core: Core, keep: tuple[int, ...], r: int, s: int) -> Iterator[_Option]:
    rest = core.part(set(core.near) - {r})
    trees = rest.parts({s})
    if any(sum(len(rest.near[v] - {s}) for v in tree) != 2 * (len(tree) - 1) for tree in trees):
        return
    if any(core.factors(v, w) for v, w in core.arc if not {v, w} & {r, s}):
        return

    def weights(v: int) -> list[Expression]:
        return [*(("weigh", ("head", t)) for t in core.vertex.get(v, [])), *(("weigh", t) for t in core.factors(r, v))]

    scalars: list[Expression] = [("load", ("tail", table)) for table in core.vertex.get(r, [])]
    scalars += [("load", ("head", table)) for table in core.vertex.get(s, [])]
    scalars += [("load", table) for table in core.factors(r, s)]
    vectors = _Vectors(rest, s, rest.near[s], {}, weights, "across")
    found = [_best_root(vectors, tree) for tree in trees]
    if not all(one is not None for one in found):
        return
    scalars += [("sum", one) for one in found]
    passes = passes_of(("", *scalars))
    rows = tuple(sorted(scalars, key=repr))
    if not keep:
        yield "arcs", passes, Sum("arcs", rows)
        return
    table: Expression = ("arow", *rows)
    if keep == (r, s):
        yield "arcs", passes, table
    elif keep == (s, r):
        yield "arcs", passes, ("rev", table)
    elif keep == (r,):
        yield "arcs", passes, ("nsum", None, table)
    else:
        yield "arcs", passes, ("nsum", None, ("rev", table))


def _common_rows(core: Core) -> Iterator[_Option]:
    """Yield ways to count a core by its vertices that are adjacent to both r and s, and what is adjacent to neither."""
    for r, s in [(v, w) for v in core.near for w in core.near[v]]:
        both = core.near[r] & core.near[s]
        if core.near[r] | core.near[s] != both | {r, s}:
            continue
        rest = core.part(set(core.near) - {r})
        trees = rest.parts({s})
        if any(sum(len(rest.near[v] - {s}) for v in tree) != 2 * (len(tree) - 1) for tree in trees):
            continue
        scalars: list[Expression] = [("load", ("tail", table)) for table in core.vertex.get(r, [])]
        scalars += [("load", ("head", table)) for table in core.vertex.get(s, [])]
        scalars += [("load", table) for table in core.factors(r, s)]
        weights = partial(_common_weights, core, r, both)
        found = [_best_root(_Vectors(rest, s, both, {}, weights, "across"), tree) for tree in trees]
        if all(one is not None for one in found):
            scalars += [("sum", one) for one in found]
            passes = passes_of(("", *scalars))
            if passes and not any(one[0] == "widen" for one in passes):
                yield "common", passes, Sum("common", tuple(sorted(scalars, key=repr)))


def _common_weights(core: Core, r: int, both: set[int], v: int) -> list[Expression]:
    """Return the factors of a vertex: tables over arcs where it is adjacent to r and s."""
    found = core.vertex.get(v, [])
    if v not in both:
        return [("weigh", table) for table in found]
    return [*(("weigh", ("head", table)) for table in found), *(("weigh", table) for table in core.factors(r, v))]


def _take_edges(core: Core, r: int, keep: tuple[int, ...]) -> dict[int, int]:
    """Take adjacent pairs away that have the same two neighbours, r and a vertex z that is not adjacent to r.

    Returns
    -------
    dict[int, int]
        For every such z the number of its pairs.
    """
    found: dict[int, int] = {}
    pairs = [(v, w) for v in sorted(core.near[r]) for w in sorted(core.near[v]) if v < w]
    for x, w in pairs:
        if x not in core.near or w not in core.near or {x, w} & {r, *keep}:
            continue
        others = (core.near[x] - {w}) | (core.near[w] - {x})
        if len(others) != 2 or len(core.near[x]) != 3 or len(core.near[w]) != 3 or r not in others:
            continue
        (z,) = others - {r}
        outer = [core.factors(v, end) for v in (x, w) for end in (r, z)]
        if z not in core.near[r] and core.is_bare(x, w) and not any(outer):
            core.remove([x, w])
            found[z] = found.get(z, 0) + 1
    return found


class _Vectors:
    """Vectors for the forest that is left once the image of one vertex is fixed.

    Parameters
    ----------
    core
        What is left of the pattern, the fixed vertex included.
    fixed
        That vertex.
    near
        Its neighbours, whose vectors are local.
    edges
        For vertices of dense vectors, how often they have the factor ("edges",).
    weights
        Returns the factors of a vertex.
    beside
        What multiplies a local vector by a table over the arcs from the fixed vertex.
    """

    def __init__(
        self, core: Core, fixed: int, near: set[int], edges: dict[int, int], weights: Any, beside: str = "warc"
    ):
        self._core, self._fixed, self._near, self._edges = core, fixed, near, edges
        self._weights, self._beside = weights, beside

    def rooted(self, tree: set[int], root: int) -> Expression | None:
        """Return the vector of a tree, computed towards `root`; None where a vertex's images are not limited."""
        return self._vector(tree, root, None)

    def _vector(self, tree: set[int], v: int, parent: int | None) -> Expression | None:
        core, near = self._core, self._near
        factors: list[Expression] = list(self._weights(v))
        held = v in near
        if held:
            factors += [(self._beside, table) for table in core.factors(self._fixed, v)]
        edges = self._edges.get(v, 0)
        factors += [("edges",)] * edges
        held |= edges > 0
        for w in core.near[v] & tree - {parent}:
            below = self._vector(tree, w, v)
            if below is None:
                return None
            held = True
            if v in near:
                inner = ("scatter", below) if w in near else below
                factors.append(("pull", inner, core.table(v, w)))
            elif w in near:
                factors.append(("push", below, core.table(w, v)))
            else:
                factors.append(("widen", below, core.table(v, w)))
        if not held:
            return None
        return ("local" if v in near else "spread", *sorted(factors, key=repr))


def _best_root(vectors: _Vectors, tree: set[int]) -> Expression | None:
    """Return the vector of a tree towards the root that takes the fewest passes."""
    found = [one for one in (vectors.rooted(tree, root) for root in sorted(tree)) if one is not None]

    def cost(one: Expression) -> tuple[int, int, int, str]:
        kinds = [one[0] for one in passes_of(one)]
        # What is pushed is often needed by others, and may be symmetric.
        return kinds.count("widen"), len(kinds), kinds.count("pull"), repr(one)

    return min(found, key=cost) if found else None
