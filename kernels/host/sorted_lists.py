"""Lists of vertices, each in ascending order of the ids of its members."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.jit.compile import compiled

_SHORT = 64  # members of a list that are placed by counting: lists of 16 take 4 ns a member, 16 by Shellsort


def list_room(dtype: Any) -> NDArray[Any]:
    """Return the workspace of `sort_lists`, for ids of a type."""
    return np.empty(_SHORT, dtype)


@compiled(
    "i8[::1], u4[::1], const(i8[::1]), i8[::1], i8[::1]",
    "i8[::1], u4[::1], const(u8[::1]), u8[::1], u8[::1]",
)
def sort_lists(offsets, members, ids, out, room):
    """Write the ids of members[offsets[i]:offsets[i + 1]] for each i, ascending, to the same places of `out`.

    A member's place in a short list is the number of smaller members, which vector instructions count without
    mispredicted branches. Longer lists are sorted by Shellsort.

    Parameters
    ----------
    offsets, members, ids, out
        The lists, whose members differ, the id of each vertex, and what receives those of the members.
    room
        Workspace; see `list_room`.
    """
    for row in range(offsets.size - 1):
        own = members[offsets[row] : offsets[row + 1]]
        made = out[offsets[row] : offsets[row + 1]]
        if own.size > room.size:
            _shellsort(own, ids, made)
            continue
        found = room[: own.size]
        for i in range(own.size):
            found[i] = ids[own[i]]
        for i in range(own.size):
            value = found[i]
            place = np.int64(0)
            for j in range(found.size):
                place += found[j] < value
            made[np.uint64(place)] = value


@compiled
def _shellsort(members, ids, out):
    for i in range(members.size):
        out[i] = ids[members[i]]
    gap = 1
    while 3 * gap + 1 < out.size:
        gap = 3 * gap + 1
    while gap:
        for at in range(gap, out.size):
            value = out[at]
            place = at
            while place >= gap and out[place - gap] > value:
                out[place] = out[place - gap]
                place -= gap
            out[place] = value
        gap //= 3
