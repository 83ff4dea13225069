"""A search program as C++ text: the kernels are compiled with the program as constants."""

from collections.abc import Iterable

from longwall.kernels.program import SearchProgram


def program_header(program: SearchProgram, columns: int, patience: int) -> str:
    """Write the ``generated.cuh`` that ``program.cuh`` includes.

    Parameters
    ----------
    program
        The program.
    columns
        Number of columns of the rows that the kernel is given.
    patience
        Clock cycles (below 2^31) after which a warp looks whether others want part of its work.

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
    }
    lines = [f"constexpr int {name} = {value};" for name, value in sizes.items()]
    lines += [
        f"constexpr u32 kPatience = {patience};",
        _array(
            "SetOp kSets",
            [
                (
                    op.depth,
                    op.kind.name,
                    op.source,
                    op.adjacent,
                    op.below,
                    op.above,
                    op.label,
                    op.required,
                    op.size_only,
                )
                for op in program.sets
            ],
        ),
        _array(
            "Level kLevels",
            [(x.candidates, x.below, x.above, x.distinct, x.label, x.degree) for x in program.levels],
        ),
        _array("Block kBlocks", [(b.candidates, b.below, b.above) for b in program.blocks]),
        _array("Member kMembers", members),
        "constexpr i64 kTerms[kNumTerms][kTermWidth + 1] = {"
        + ", ".join(
            _braces((coefficient, *blocks, *[-1] * (width - len(blocks)))) for coefficient, blocks in program.terms
        )
        + "};",
    ]
    return "\n".join(lines) + "\n"


def stored_sets(program: SearchProgram) -> tuple[int, int]:
    """Count the sets that need scratch.

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
        if (op.source < 0 and op.kind.name == "ADJACENCY") or op.size_only:
            continue
        adjacent, chain = 0, number
        while chain >= 0:
            link = program.sets[chain]
            adjacent |= (link.kind.name != "SUBTRACT") << link.adjacent
            chain = link.source
        if adjacent & op.below:
            oriented += 1
        else:
            plain += 1
    return plain, oriented


def _array(declaration: str, rows: Iterable[tuple[int | str, ...]]) -> str:
    # C++ has no empty arrays: a single zero element stands in, which the sizes keep from being read.
    body = ", ".join(_braces(row) for row in rows) or "{}"
    return f"constexpr {declaration}[] = {{{body}}};"


def _braces(row: Iterable[int | str]) -> str:
    return "{" + ", ".join(str(x).lower() if isinstance(x, bool) else str(x) for x in row) + "}"
