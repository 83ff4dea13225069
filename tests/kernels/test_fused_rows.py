"""Row programs as the device runs them: fewer dense vectors, the same sums."""

from __future__ import annotations

from typing import Any

import pytest

from longwall.kernels.cuda.homomorphisms import rows
from longwall.kernels.cuda.homomorphisms.fused_rows import SUM_EDGES, SUM_PRODUCT, fuse
from longwall.kernels.cuda.runtime import compile as compiler
from longwall.kernels.interface.homomorphism_program import Op, RowProgram
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.phases.homomorphisms.count import HomomorphismCount
from longwall.pipeline.planning.homomorphisms.pattern_core import PassCosts
from longwall.pipeline.planning.homomorphisms.sums import plan_homomorphisms
from longwall.storage.generators.kinds import generate

PASSES = [(Op.ONES, 0, 0, -1), (Op.PUSH, 0, 0, -1), (Op.PUSH_EDGES, 1, 0, -1)]
PAIRS = "0-1,0-2,0-3,1-2,1-3,2-4,3-4"


def program(*ops: tuple[int, int, int, int]) -> RowProgram:
    return RowProgram((*PASSES, *ops), 1, 3, 2, ((0,), (1,)), symmetric=True)


def test_products_that_are_summed_need_no_vector() -> None:
    own = [(Op.COPY_DENSE, 2, 0, -1), (Op.MULTIPLY_DENSE, 2, 1, -1), (Op.SUM_DENSE, 0, 2, -1)]
    cube = [(Op.COPY_DENSE, 2, 0, -1), *[(Op.MULTIPLY_DENSE, 2, 0, -1)] * 2, (Op.SUM_DENSE, 1, 2, -1)]
    fused = fuse(program(*own, *cube))
    assert fused.ops == (*PASSES[:2], (SUM_EDGES, 0, 0, -1), (SUM_PRODUCT, 1, 1, -1))
    assert (fused.num_dense, fused.products) == (1, ((0,), (0, 0, 0)))
    narrow = rows.narrow_vectors(fused, 10)
    assert narrow == [True]
    assert rows.ones_first(fused, narrow)


@pytest.mark.parametrize(
    "ops",
    [
        # the product is read again
        [(Op.COPY_DENSE, 2, 0, -1), (Op.MULTIPLY_DENSE, 2, 0, -1), (Op.SUM_DENSE, 0, 2, -1), (Op.GATHER, 0, 2, -1)],
        # it is multiplied with itself
        [(Op.COPY_DENSE, 2, 0, -1), (Op.MULTIPLY_DENSE, 2, 2, -1), (Op.SUM_DENSE, 0, 2, -1)],
        # something else stands between
        [(Op.COPY_DENSE, 2, 0, -1), (Op.WEIGH_DENSE, 2, 0, -1), (Op.SUM_DENSE, 0, 2, -1)],
    ],
)
def test_other_products_stay(ops: list[tuple[int, int, int, int]]) -> None:
    fused = fuse(program(*ops))
    assert fused.ops == (*PASSES, *ops)
    assert fused.num_dense == 3


def test_pairs_that_are_read_twice_are_written() -> None:
    square = [(Op.COPY_DENSE, 2, 1, -1), (Op.MULTIPLY_DENSE, 2, 1, -1), (Op.SUM_DENSE, 0, 2, -1)]
    fused = fuse(program(*square, (Op.SUM_DENSE, 1, 1, -1)))
    assert fused.ops == (*PASSES, (SUM_PRODUCT, 0, 0, -1), (Op.SUM_DENSE, 1, 1, -1))
    assert fused.products == ((1, 1),)


@pytest.mark.gpu
@pytest.mark.parametrize("threads", [256, 512])
@pytest.mark.parametrize("pattern", [PAIRS, "cycle-6"])
def test_rows_of_hubs_are_several_warps_work(
    lab: Any, monkeypatch: pytest.MonkeyPatch, pattern: str, threads: int
) -> None:
    """As if rows were long, and as if not all of the dense vectors were in shared memory."""
    graph = generate("rmat", seed=3, scale=6, edge_factor=5)
    sums = plan_homomorphisms((parse_pattern(pattern),), PassCosts(1.0, 1.0, 1.0))
    assert sums is not None
    expected = HomomorphismCount(sums).mappings(lab.context(graph, engine="cpu"))
    text = compiler.source_text

    def with_long_rows(name: str, generated: str = "") -> tuple[str, tuple[str, ...]]:
        code, options = text(name, generated)
        return code.replace("kLongRow = 1024, kLongThreads = 256", "kLongRow = 9, kLongThreads = 64"), options

    monkeypatch.setattr(compiler, "source_text", with_long_rows)
    monkeypatch.setattr(rows, "_VERTEX_THREADS", threads)
    compiler.forget()
    try:
        assert HomomorphismCount(sums).mappings(lab.context(graph, engine="cuda")) == expected
    finally:
        compiler.forget()
