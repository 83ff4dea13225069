"""Row programs with fewer dense vectors: products that are summed need none, and pairs of neighbours rarely do."""

from collections import Counter
from dataclasses import dataclass

from longwall.kernels.cuda.runtime.constants import FusedOp
from longwall.kernels.interface.homomorphism_program import Op, RowProgram

SUM_PRODUCT, SUM_EDGES = int(FusedOp.SUM_PRODUCT), int(FusedOp.SUM_EDGES)
_Operation = tuple[int, int, int, int]
_DENSE_SOURCE = {Op.PULL, Op.COPY_DENSE, Op.MULTIPLY_DENSE, Op.WIDEN, Op.SUM_DENSE, Op.GATHER}
_DENSE_TARGET = {Op.SCATTER, Op.PUSH, Op.COPY_DENSE, Op.MULTIPLY_DENSE, Op.WEIGH_DENSE, Op.WIDEN, Op.PUSH_EDGES}


@dataclass(frozen=True)
class FusedRows:
    """The operations that kernels run for a row.

    Attributes
    ----------
    ops
        As of a row program. Besides, SUM_PRODUCT: scalar[target] = sum of a product of dense vectors, and SUM_EDGES:
        the same, each vertex as many times as PUSH_EDGES has pairs there.
    num_dense
        How many dense vectors they use.
    products
        The dense vectors of the products, which are the sources of these operations.
    """

    ops: tuple[_Operation, ...]
    num_dense: int
    products: tuple[tuple[int, ...], ...]


def fuse(program: RowProgram) -> FusedRows:
    """Sum products of dense vectors, without one for the product, and without one for the pairs of neighbours."""
    ops, products = _with_sums(program.ops)
    ops, products = _without_pairs(ops, products)
    used = {vector for op in ops for vector in _dense_of(op)} | {one for product in products for one in product}
    places = {vector: place for place, vector in enumerate(sorted(used))}
    return FusedRows(
        tuple(_renamed(op, places) for op in ops),
        len(places),
        tuple(tuple(places[one] for one in product) for product in products),
    )


def _with_sums(ops: tuple[_Operation, ...]) -> tuple[list[_Operation], list[tuple[int, ...]]]:
    """Replace copies that are multiplied and summed, and not read again."""
    found: list[_Operation] = []
    products: list[tuple[int, ...]] = []
    at = 0
    while at < len(ops):
        code, vector, source, _ = ops[at]
        factors, end = [source], at + 1
        while code == Op.COPY_DENSE and ops[end : end + 1] and ops[end][:2] == (Op.MULTIPLY_DENSE, vector):
            factors.append(ops[end][2])
            end += 1
        ends = code == Op.COPY_DENSE and ops[end : end + 1] and ops[end][0::2][:2] == (Op.SUM_DENSE, vector)
        if ends and vector not in factors and not _read(ops[end + 1 :], vector):
            found.append((SUM_PRODUCT, ops[end][1], len(products), -1))
            products.append(tuple(factors))
            at = end + 1
        else:
            found.append(ops[at])
            at += 1
    return found, products


def _read(ops: tuple[_Operation, ...], vector: int) -> bool:
    """Return whether a dense vector is read before something else is copied to it."""
    for code, target, source, _ in ops:
        if code in _DENSE_SOURCE and source == vector:
            return True
        if code in _DENSE_TARGET and target == vector:
            return code != Op.COPY_DENSE
    return False


def _without_pairs(
    ops: list[_Operation], products: list[tuple[int, ...]]
) -> tuple[list[_Operation], list[tuple[int, ...]]]:
    """Sum over pairs of neighbours, instead of writing how many there are, where that is read once."""
    written = Counter(op[1] for op in ops if op[0] in _DENSE_TARGET)
    read = Counter(op[2] for op in ops if op[0] in _DENSE_SOURCE) + Counter(
        one for product in products for one in product
    )
    pairs = {op[1] for op in ops if op[0] == Op.PUSH_EDGES and written[op[1]] == 1 and read[op[1]] == 1} & {
        one for product in products if len(product) > 1 for one in product
    }
    left = [tuple(one for one in product if one not in pairs) for product in products]
    # Of two in a product one stays; and vertices within two steps are listed by another pass.
    if not any(op[0] == Op.PUSH for op in ops) or any(
        len(product) - len(rest) > 1 for product, rest in zip(products, left, strict=True)
    ):
        return ops, products
    found = [
        (SUM_EDGES, *op[1:]) if op[0] == SUM_PRODUCT and len(left[op[2]]) < len(products[op[2]]) else op
        for op in ops
        if op[0] != Op.PUSH_EDGES or op[1] not in pairs
    ]
    return found, left


def _dense_of(op: _Operation) -> set[int]:
    return ({op[1]} if op[0] in _DENSE_TARGET else set()) | ({op[2]} if op[0] in _DENSE_SOURCE else set())


def _renamed(op: _Operation, places: dict[int, int]) -> _Operation:
    code, target, source, weight = op
    return (
        code,
        places[target] if code in _DENSE_TARGET else target,
        places[source] if code in _DENSE_SOURCE else source,
        weight,
    )
