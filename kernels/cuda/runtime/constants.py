"""Numbers that both the CUDA sources and the Python code beside them need; ``constants.cuh`` is written from them.

Each number with a type below is a C++ constant of this type: ``BLOCK_VALUES`` becomes ``kBlockValues``. Numbers that
the CPU needs, too, are defined in `longwall.kernels.interface` and only named here. A number that one source alone
needs stays in that source, and one that depends on a run or a query goes to its ``generated.cuh``.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TypeAlias

from longwall.kernels.interface import graph_arrays, kcliques, maximal_cliques, pattern_growth, workspaces
from longwall.kernels.interface.homomorphism_program import CodegreePattern, Inner, Make, Op
from longwall.kernels.interface.pages import NeighbourRange
from longwall.kernels.interface.search_program import SetKind

I32: TypeAlias = int
U32: TypeAlias = int
I64: TypeAlias = int
_CPP_TYPES = {"I32": "int", "U32": "u32", "I64": "i64"}

WARP = 32
THREADS: I32 = 256  # of a block, where no other number is better

# Vertices and rows of adjacencies.
NO_VERTEX: U32 = graph_arrays.MAX_VERTICES  # larger than any vertex id
SMALLER: I64 = int(NeighbourRange.SMALLER)
LARGER: I64 = int(NeighbourRange.LARGER)
LAUNCH_STATE_WORDS: I32 = 3  # of 64 bits: LaunchState

# Lists that are staged on the device.
STAGING_SLOT_BITS: I32 = 30  # of an entry, for its slot of the table; its key has the others
STAGING_SEGMENT: I64 = 512  # arcs of the buffer that a warp fills at once

# Searches.
NOT_EXTENDED: I64 = -1  # in place of a row's new vertices: no room for them
TOO_LONG: I64 = -2  # the same: a set on the way may not fit the workspace
BLOCK_VALUES: U32 = 2048  # of a block of the pool: 8 KiB, as in GAMMA
USED_BITS: I32 = 12  # of a packed position in the pool; the others are the block's number
RING_SLOTS: U32 = 4096  # of the ring of tasks
RING_SLOT_WORDS: I32 = 8  # of 32 bits: RingSlot
TASK_CONTROL_WORDS: I32 = 3  # of 64 bits: TaskControl
EDGE_SEGMENT: I64 = 1024  # new edges that a warp writes at once
TREE_STEPS: I32 = 4  # levels of a prefix tree that one launch climbs
TREE_GROUP_BITS: I32 = 8  # a warp works on 256 nodes

# Local counts.
LIGHT_WEDGES: I64 = 512  # up to which a vertex is one warp's work
TABLE_SHARE: U32 = 4  # slots of a hash table for each of its entries
PREFIX_TASKS: I32 = 4  # that a block has at least, if there are enough
VERTEX_RANGES: I32 = 8  # whose reverse adjacency one launch places
PREFIX_BYTES: I32 = 40  # Prefix
PREFIX_CONTROL_WORDS: I32 = 16  # of 32 bits, before the prefixes of a block
NO_ROOT: U32 = 2**32 - 1  # in place of the first member of a motif
MOTIF_CONTROL_WORDS: I32 = 3  # words of 32 bits of `Control`
MOTIF_SLOT_WORDS: I32 = 8  # words of 32 bits of `Slot`
LABEL_TOTALS: I32 = 6  # numbers of Totals before those of the roles

# Homomorphisms.
WARP_COUNTERS: I64 = 512  # neighbours up to which an arc is one warp's work
TABLE_STEPS: I32 = 8  # steps of a table program that one launch does
MAKE_BITS: I32 = 4  # of a step's word, for what it does; the fields after it name tables
TABLE_BITS: I32 = 19


class FusedOp(IntEnum):
    """Operations of row programs that only this engine has; see `longwall.kernels.cuda.homomorphisms.fused_rows`."""

    SUM_PRODUCT = len(Op)
    SUM_EDGES = len(Op) + 1


# Cliques.
NARROW: I32 = workspaces.NARROW
PIVOT_LEVELS: I32 = kcliques.PIVOT_LEVELS
SHARED_HELD: I32 = 16  # held vertices, and pivots, of the leaves that are counted per block
SHARED_PIVOTS: I32 = 64
LEVEL_NUMBERS: I32 = 5  # of a wide level: held vertices, pivots, the pivot, words of its bitmaps, branches of all
EACH_LEVELS: I32 = 6  # the first levels, whose candidates may all be held one after the other
TABLE_QUEUE: I32 = 64  # members of a bitmap that wait until they are enough for a warp
WORD_ROOT_WORDS: I32 = 160  # of a WordRoot
BLOCK_COUNTER_WORDS: I32 = 8  # of 32 bits: BlockCounters

# Maximal cliques.
COUNT_CLIQUES: I32 = maximal_cliques.COUNT
COUNT_VERTICES: I32 = maximal_cliques.VERTICES
LIST_CLIQUES: I32 = maximal_cliques.LIST
FINDER_LEVELS: I32 = maximal_cliques.FINDER_LEVELS
WIDE_NUMBERS: I32 = 7  # of a level of a wide search
FILL_BITS: I32 = 36  # of a position in the list of cliques, for the ids; the others number the cliques
DONATION_HEAD_WORDS: I32 = 10  # of 32 bits, before the data of work that is handed over
NO_LEVEL: U32 = 2**32 - 1  # no degree that was seen
PEEL_CONTROL_WORDS: I32 = 8  # of 32 bits: PeelControl
PEEL_NEXT_LEVEL: I32 = 4  # the place of PeelControl.next_level

# Frequent patterns.
NO_EXTENSION: I64 = pattern_growth.NO_EXTENSION
NO_ROW: U32 = 2**32 - 1


def cpp_constants() -> dict[str, tuple[str, int]]:
    """Name the constants of the header: (type, value) each."""
    types = {name: _CPP_TYPES[kind] for name, kind in globals()["__annotations__"].items() if kind in _CPP_TYPES}
    return {"k" + name.title().replace("_", ""): (kind, globals()[name]) for name, kind in types.items()}


ENUMERATIONS: dict[str, tuple[type[IntEnum], ...]] = {
    "SetKind": (SetKind,),
    "Op": (Op, FusedOp),
    "Inner": (Inner,),
    "Make": (Make,),
    "CodegreePattern": (CodegreePattern,),
}
"""Codes of operations, by the name that their type has in C++."""


def constants_header() -> str:
    """Write ``constants.cuh``: it is part of every source text, and so of the keys of compiled kernels."""
    lines = [f"constexpr {kind} {name} = {_literal(value)};" for name, (kind, value) in cpp_constants().items()]
    for name, parts in ENUMERATIONS.items():
        codes = ", ".join(f"{code.name} = {code.value}" for part in parts for code in part)
        lines.append(f"enum {name} {{ {codes} }};")
    return "\n".join(lines) + "\n"


def _literal(value: int) -> str:
    """Write a number; that of -2**63 is none of C++."""
    return f"{value + 1}ll - 1" if value == -(2**63) else f"{value}u" if value >= 2**31 else str(value)
