"""A search program as C++ text: the kernels are compiled with the program as constants."""

from dataclasses import astuple, dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from longwall.kernels.cuda.runtime.compile import array, constants
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.search_program import SearchProgram, SetKind

# With more sets than this the code of a set is a function of its own: inlined, 119 sets took 12 s to compile, and 271
# took 71 s; as functions 3.5 and 12 s.
_MOST_INLINED = 64


@dataclass(frozen=True)
class Variant:
    """Options that a program is compiled with.

    Attributes
    ----------
    patience
        Clock cycles (below 2^31) after which a warp looks whether others want part of its work.
    emitted
        The set that is emitted instead of stored, -1 for none.
    grouped
        Rows that follow each other share the sets of their common prefix.
    shared_room
        Elements of a set that a warp keeps in shared memory rather than in global memory.
    lists
        For each set, the index of the list of the rows that it reads; -1 if it reads the adjacency itself.
    pooled
        Warps have short stacks of sets, and borrow long ones.
    slice_stride
        `GraphArrays.slice_stride`; where it is not 0, the program is `in_slices`.
    residues
        Counts are taken modulo a prime.
    """

    patience: int = 1 << 18
    emitted: int = -1
    grouped: bool = True
    shared_capacity: int = 0
    lists: tuple[int, ...] = ()
    pooled: bool = False
    slice_stride: int = 0
    residues: bool = False


@lru_cache(maxsize=256)
def program_header(program: SearchProgram, columns: int, variant: Variant) -> str:
    """Write the ``generated.cuh`` that ``program.cuh`` includes.

    Parameters
    ----------
    program
        The program.
    columns
        Number of columns of the rows that the kernel is given.
    variant
        How it is run.

    Returns
    -------
    str
        C++ source text.
    """
    members = [(i, depth, mask) for i, block in enumerate(program.blocks) for depth, mask in block.members]
    width = max(len(blocks) for _, blocks in program.terms)
    sizes = {
        "kColumns": columns,
        "kDepth": program.depth,
        "kNumSets": len(program.sets),
        "kNumBlocks": len(program.blocks),
        "kNumMembers": len(members),
        "kNumTerms": len(program.terms),
        "kTermWidth": width,
        "kPatience": variant.patience,
        "kEmitted": variant.emitted,
        "kGrouped": int(variant.grouped),
        "kSharedRoom": variant.shared_capacity,
        "kPooled": int(variant.pooled),
        "kSliceStride": variant.slice_stride,
        "kResidues": int(variant.residues),
    }
    lists = variant.lists or (-1,) * len(program.sets)
    sets = [
        (s.depth, s.kind.name, s.source, s.adjacent, s.below, s.above, s.label, int(s.required), int(s.size_only))
        for s in program.sets
    ]
    levels = [astuple(level) for level in program.levels]
    blocks = [(b.candidates, b.below, b.above) for b in program.blocks]
    terms = [(factor, *numbers, *[-1] * (width - len(numbers))) for factor, numbers in program.terms]
    kept_apart = "__device__ __noinline__" if len(program.sets) > _MOST_INLINED else "DEVICE"
    return (
        f"#define PER_SET {kept_apart}\n"
        + constants(sizes)
        + array("SetOp kSets[]", sets)
        + array("int kListOf[]", [(number,) for number in lists])
        + array("Level kLevels[]", levels)
        + array("Block kBlocks[]", blocks)
        + array("Member kMembers[]", members)
        + array("i64 kTerms[kNumTerms][kTermWidth + 1]", terms)
    )


def graph_arguments(graph: GraphArrays) -> tuple[Any, ...]:
    """Return the arguments of the search's kernels that are the graph's arrays; null where there are no slices."""
    slices = np.uintp(0) if graph.slices is None else graph.slices
    return *graph.rows, graph.labels, slices


def stored_sets(program: SearchProgram, emitted: int = -1) -> tuple[int, int]:
    """Count the sets that need workspace; an emitted one does not.

    Returns
    -------
    plain : int
        Sets that may be as large as the largest degree.
    oriented : int
        Sets whose elements are smaller than a matched vertex that they are adjacent to: at most the largest
        out-degree.
    """
    plain = oriented = 0
    for number, op in enumerate(program.sets):
        if op.kind == SetKind.ADJACENCY or op.size_only or number == emitted:
            continue
        adjacent, chain = 0, number
        while chain >= 0:
            link = program.sets[chain]
            adjacent |= (link.kind != SetKind.SUBTRACT) << link.adjacent
            chain = link.source
        if adjacent & op.below:
            oriented += 1
        else:
            plain += 1
    return plain, oriented
