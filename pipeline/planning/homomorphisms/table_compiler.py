"""Compile sums of homomorphisms to a table program: every table, and every vector of a row, is made once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from longwall.kernels.interface.homomorphism_program import (
    MAX_SCALARS,
    Domain,
    Make,
    Op,
    RowProgram,
    Step,
    TableProgram,
    TotalRows,
)
from longwall.pipeline.planning.homomorphisms.pattern_core import (
    Expression,
    NoDecomposition,
    Sum,
    Table,
    passes_of,
    product,
    reversed_table,
)


def compile_sums(sums: list[Sum], *, lists: bool) -> tuple[TableProgram, list[int]]:
    """Compile sums.

    Parameters
    ----------
    sums
        What is summed over rows.
    lists
        Whether something else reads the lists of common neighbours.

    Returns
    -------
    program : TableProgram
        The program.
    places : list of int
        The number of each sum among the totals of the program.

    Raises
    ------
    NoDecomposition
        If there are too many scalars for the engines.
    """
    tables = _Tables()
    totals: list[TotalRows] = []
    numbers: dict[Sum, int] = {}
    domains: tuple[Domain, ...] = ("vertices", "arcs", "common")
    for domain in domains:
        for part in _parts([one for one in dict.fromkeys(sums) if one.domain == domain]):
            totals.append(TotalRows(domain, tables.rows(domain, [one.scalars for one in part])))
            for one in part:
                numbers[one] = len(numbers)
    made = tables.number
    program = TableProgram(
        made["vertices"], made["arcs"], tuple(tables.steps), tuple(tables.programs), tuple(totals), lists
    )
    return program, [numbers[one] for one in sums]


def _parts(sums: list[Sum]) -> list[list[Sum]]:
    """Divide sums over the rows of a domain among row programs, each of which has room for its scalars.

    Sums with passes over all rows get programs of their own, whose dense vectors have an entry for every vertex.
    """

    def kinds(one: Sum) -> set[str]:
        return {found[0] for found in passes_of(("", *one.scalars))}

    wide = [one for one in sums if "widen" in kinds(one)]
    others = [one for one in sums if one not in wide]
    others.sort(key=lambda one: not kinds(one))  # passes are shared, so the sums that have any are together
    parts: list[list[Sum]] = []
    for some in (others, wide):
        scalars: set[Expression] = set()
        for number, one in enumerate(some):
            if number == 0 or len(scalars | set(one.scalars)) > MAX_SCALARS:
                parts.append([])
                scalars = set()
            parts[-1].append(one)
            scalars |= set(one.scalars)
    return parts


def compile_vertex_tables(wanted: Sequence[Table]) -> tuple[TableProgram, list[int]]:
    """Compile tables over vertices, of which no sum is taken.

    Returns
    -------
    program : TableProgram
        The program.
    numbers : list of int
        The number of each table.
    """
    tables = _Tables()
    numbers = [tables.vertex(table) for table in wanted]
    made = tables.number
    program = TableProgram(made["vertices"], made["arcs"], tuple(tables.steps), tuple(tables.programs))
    return program, numbers


@dataclass
class _Tables:
    """Numbers tables, and makes each from others."""

    steps: list[Step] = field(default_factory=list)
    programs: list[RowProgram] = field(default_factory=list)
    number: dict[Domain, int] = field(default_factory=lambda: {"vertices": 0, "arcs": 0})
    _numbers: dict[tuple[Domain, Table], int] = field(default_factory=dict)

    def vertex(self, table: Table) -> int:
        """Return the number of a vertex table."""
        return self._find("vertices", table)

    def arc(self, table: Table) -> int:
        """Return the number of an arc table."""
        return self._find("arcs", table)

    def of(self, domain: Domain, table: Table) -> int:
        """Return the number of a table over the rows of a domain."""
        return self._find("vertices" if domain == "vertices" else "arcs", table)

    def of_dense(self, domain: Domain, table: Table) -> int:
        """Return the number of a table over what the dense vectors of a domain have entries for."""
        return self._find("arcs" if domain == "arcs" else "vertices", table)

    def rows(
        self, domain: Domain, products: list[tuple[Expression, ...]], table: int | None = None, local: Any = None
    ) -> RowProgram:
        """Return the row program for some products, or for a table that is stored: one of products, or over arcs."""
        emitter = _Emitter(self, domain, passes_of(("", *(scalar for one in products for scalar in one), local)))
        found = tuple(tuple(emitter.scalar(scalar) for scalar in one) for one in products)
        if local is not None:
            assert table is not None
            emitter.store_local(table, local)
        return emitter.program(found, () if table is None or local is not None else ((0, table),))

    def _new(self, domain: Domain) -> int:
        self.number[domain] += 1
        return self.number[domain] - 1

    def _find(self, domain: Domain, table: Table) -> int:
        key = domain, table
        if key not in self._numbers:
            make = self._make_vertex if domain == "vertices" else self._make_arc
            self._numbers[key] = make(table)
        return self._numbers[key]

    def _step(self, domain: Domain, make: Make, *sources: int) -> int:
        target = self._new(domain)
        self.steps.append(Step(make, target, sources))
        return target

    def _make_vertex(self, table: Table) -> int:
        if table is None:
            return self._step("vertices", Make.MULTIPLY_VERTICES)
        kind = table[0]
        if kind == "given":
            return self._step("vertices", Make.GIVEN, table[1])
        if kind == "label":
            return self._step("vertices", Make.LABEL, table[1])
        if kind == "vprod":
            return self._step("vertices", Make.MULTIPLY_VERTICES, *map(self.vertex, table[1:]))
        if kind == "nsum":
            sources = (
                -1 if table[1] is None else self.vertex(table[1]),
                -1 if table[2] is None else self.arc(table[2]),
            )
            return self._step("vertices", Make.SUM_NEIGHBOURS, *sources)
        assert kind == "vrow", kind
        return self._by_rows("vertices", Make.VERTEX_ROWS, table[1:])

    def _make_arc(self, table: Table) -> int:
        if table is None:
            return self._step("arcs", Make.MULTIPLY_ARCS)
        kind = table[0]
        plain = {"triangles": Make.ARC_TRIANGLES, "paths": Make.PATHS, "cliques": Make.CLIQUES}
        if kind in plain:
            return self._step("arcs", plain[kind])
        if kind == "inner":
            return self._step("arcs", Make.INNER, table[1])
        if kind in ("head", "tail"):
            return self._step("arcs", Make.HEADS if kind == "head" else Make.TAILS, self.vertex(table[1]))
        if kind == "rev":
            return self._step("arcs", Make.REVERSE, self.arc(table[1]))
        if kind == "aprod":
            return self._step("arcs", Make.MULTIPLY_ARCS, *map(self.arc, table[1:]))
        if kind == "vlocal":
            target = self._new("arcs")  # before those that the program needs, which are made first
            self.programs.append(self.rows("vertices", [], target, table[1]))
            self.steps.append(Step(Make.VERTEX_ROWS, target, (len(self.programs) - 1,)))
            return target
        if kind == "tri":
            if ("arcs", reversed_table(table)) in self._numbers:
                return self._step("arcs", Make.REVERSE, self._numbers["arcs", reversed_table(table)])
            return self._by_rows("arcs", Make.ARC_ROWS, (_triangle_sum(*table[1:]),))
        assert kind == "arow", kind
        return self._by_rows("arcs", Make.ARC_ROWS, table[1:])

    def _by_rows(self, domain: Domain, make: Make, scalars: tuple[Expression, ...]) -> int:
        target = self._new(domain)
        self.programs.append(self.rows(domain, [scalars], target))
        self.steps.append(Step(make, target, (len(self.programs) - 1,)))
        return target


def _triangle_sum(left: Table, middle: Table, right: Table) -> Expression:
    """Return, for the arc (y, z), the sum of left[y, x] middle[x] right[z, x] over the common neighbours x."""
    factors: list[Expression] = []
    own = product("aprod", [part for part in (left, None if middle is None else ("head", middle)) if part is not None])
    if own is not None:
        factors.append(("weigh", own))
    if right is not None:
        factors.append(("across", right))
    return ("sum", ("local", *factors))


_SYMMETRIC = {
    Op.ONES, Op.WEIGH, Op.SUM, Op.LOAD,
    Op.PUSH, Op.PUSH_EDGES, Op.COPY_DENSE, Op.MULTIPLY_DENSE, Op.SUM_DENSE,
}  # fmt: skip
"""Operations that leave dense vectors symmetric: whatever is pushed depends on the entry alone."""


@dataclass
class _Emitter:
    """Emits the operations of a row program, every distinct vector once."""

    tables: _Tables
    domain: Domain
    all_passes: set[Expression]
    ops: list[tuple[int, int, int, int]] = field(default_factory=list)
    num_local: int = 0
    num_dense: int = 0
    num_scalars: int = 0
    _numbers: dict[Expression, int] = field(default_factory=dict)

    def program(self, products: tuple[tuple[int, ...], ...], stored: tuple[tuple[int, int], ...]) -> RowProgram:
        """Return the program."""
        if self.num_scalars > MAX_SCALARS:
            raise NoDecomposition
        codes = [op[0] for op in self.ops]
        return RowProgram(
            tuple(self.ops),
            self.num_local,
            self.num_dense,
            self.num_scalars,
            products,
            stored,
            not stored and self._is_symmetric(products),
            passes=codes.count(Op.PULL) + codes.count(Op.PUSH),
            edge_passes=codes.count(Op.PUSH_EDGES),
            wide_passes=codes.count(Op.WIDEN),
        )

    def _is_symmetric(self, products: tuple[tuple[int, ...], ...]) -> bool:
        """Return whether all dense vectors have the same number for z at v as for v at z, and only their sums count.

        The sum of one row is not that of the vertices up to v: a product that is stored needs all of them.
        """
        if self.domain == "common":
            return False
        summed = {target for code, target, _, _ in self.ops if code == Op.SUM_DENSE}
        alone = all(len(one) == 1 for one in products if summed & set(one))
        weighted = any(code == Op.PUSH and weight >= 0 for code, _, _, weight in self.ops)
        return bool(summed) and alone and not weighted and all(op[0] in _SYMMETRIC for op in self.ops)

    def scalar(self, expression: Expression) -> int:
        """Return the number of a scalar."""
        if expression not in self._numbers:
            inner = expression[1]
            if expression[0] == "load":
                self._emit(Op.LOAD, self.num_scalars, self.tables.of(self.domain, inner))
            elif inner[0] == "local":
                self._emit(Op.SUM, self.num_scalars, self._local(inner))
            else:
                self._emit(Op.SUM_DENSE, self.num_scalars, self._dense(inner))
            self._numbers[expression] = self.num_scalars
            self.num_scalars += 1
        return self._numbers[expression]

    def store_local(self, table: int, expression: Expression) -> None:
        """Store a local vector as a table over arcs."""
        self._emit(Op.STORE_LOCAL, table, self._local(expression))

    def _emit(self, op: Op, target: int, source: int = 0, weight: Table = None) -> None:
        number = -1 if weight is None else self.tables.arc(weight)
        self.ops.append((int(op), target, source, number))

    def _new_local(self) -> int:
        self.num_local += 1
        return self.num_local - 1

    def _new_dense(self) -> int:
        self.num_dense += 1
        return self.num_dense - 1

    def _local(self, expression: Expression) -> int:
        if expression not in self._numbers:
            sources = []
            for factor in expression[1:]:
                if factor[0] == "pull":
                    sources.append((Op.MULTIPLY, self._pull(factor)))
                elif factor[0] == "weigh":
                    sources.append((Op.WEIGH, self.tables.of(self.domain, factor[1])))
                else:
                    beside = Op.WEIGH_ARC if factor[0] == "warc" else Op.WEIGH_ACROSS
                    sources.append((beside, self.tables.arc(factor[1])))
            number = self._new_local()
            self._emit(Op.ONES, number)
            for op, source in sources:
                self._emit(op, number, source)
            self._numbers[expression] = number
        return self._numbers[expression]

    def _pull(self, expression: Expression) -> int:
        if expression not in self._numbers:
            _, inner, weight = expression
            # Summed over the entries that are neighbours, from either side: what is pushed anyway need not be pulled.
            pushed = ("push", inner[1], None) if inner[0] == "scatter" and weight is None else None
            if pushed in self.all_passes:
                source, op = self._push(pushed), Op.GATHER
            else:
                source, op = self._dense(inner), Op.PULL
            self._numbers[expression] = self._new_local()
            self._emit(op, self._numbers[expression], source, weight)
        return self._numbers[expression]

    def _push(self, expression: Expression) -> int:
        if expression not in self._numbers:
            source = self._local(expression[1])
            self._numbers[expression] = self._new_dense()
            self._emit(Op.PUSH, self._numbers[expression], source, expression[2])
        return self._numbers[expression]

    def _widen(self, expression: Expression) -> int:
        if expression not in self._numbers:
            source = self._dense(expression[1])
            self._numbers[expression] = self._new_dense()
            self._emit(Op.WIDEN, self._numbers[expression], source, expression[2])
        return self._numbers[expression]

    def _edges(self, expression: Expression) -> int:
        if expression not in self._numbers:
            self._numbers[expression] = self._new_dense()
            self._emit(Op.PUSH_EDGES, self._numbers[expression])
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
        makers = {"push": self._push, "edges": self._edges, "widen": self._widen}
        # Pushed ones first: where they are 0, so is the product.
        ordered = [factor for kind in makers for factor in factors if factor[0] == kind]
        vectors = [makers[factor[0]](factor) for factor in ordered]
        weights = [self.tables.of_dense(self.domain, factor[1]) for factor in factors if factor[0] == "weigh"]
        if len(vectors) == 1 and not weights:
            return vectors[0]
        number = self._new_dense()
        self._emit(Op.COPY_DENSE, number, vectors[0])
        for source in vectors[1:]:
            self._emit(Op.MULTIPLY_DENSE, number, source)
        for source in weights:
            self._emit(Op.WEIGH_DENSE, number, source)
        return number
