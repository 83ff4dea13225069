"""Lists of vertices, each in ascending order of the ids of its members."""

from longwall.kernels.jit.compile import compiled


@compiled(
    "i8[::1], u4[::1], const(i8[::1]), i8[::1]",
    "i8[::1], u4[::1], const(u8[::1]), u8[::1]",
)
def sort_lists(offsets, members, ids, out):
    """Write the ids of members[offsets[i]:offsets[i + 1]] for each i, ascending, to the same places of `out`.

    Shellsort: lists are short, most of a few dozen members, and in no order of ids.
    """
    for row in range(offsets.size - 1):
        begin, end = offsets[row], offsets[row + 1]
        gap = 1
        while 3 * gap + 1 < end - begin:
            gap = 3 * gap + 1
        for at in range(begin, end):
            out[at] = ids[members[at]]
        while gap:
            for at in range(begin + gap, end):
                value = out[at]
                place = at
                while place >= begin + gap and out[place - gap] > value:
                    out[place] = out[place - gap]
                    place -= gap
                out[place] = value
            gap //= 3
