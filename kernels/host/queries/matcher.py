"""The search of one worker for a query: its state lies in arrays, so that it can be put off and gone on with."""

from __future__ import annotations

import numpy as np

from longwall.kernels.host.queries.candidate_space import CandidateSpace
from longwall.kernels.host.queries.order import MOST_OF_A_GROUP
from longwall.kernels.host.queries.saturating import HUGE
from longwall.kernels.host.queries.search_kernel import DEPTH, LAST, ROOT, SATURATED, TOTAL, search


class QueryMatcher:
    """Counts mappings of a query below its roots.

    Parameters
    ----------
    space
        The candidates.

    Attributes
    ----------
    workspace_bytes
        What `bytes_for` says.
    """

    def __init__(self, space: CandidateSpace):
        lists, split, size = space.lists, space.split, space.query.size
        assert lists is not None
        assert split is not None
        self.workspace_bytes = bytes_for(space)
        positions = len(lists.vertices)
        self._state = np.array([0, 0, -1, 0, 0], np.int64)
        self._words = np.zeros((2, size + 1), np.uint64)
        self._owner = np.full(positions, -1, np.int8)
        self._values, self._level = np.full(size, -1, np.int64), np.zeros(size, np.int64)
        depths = np.zeros((6, size + 1), np.int64)
        depths[0, 0], depths[5, 0] = split.root, 1
        groups = np.zeros((len(split.groups), MOST_OF_A_GROUP), np.int64)
        for row, group in zip(groups, split.groups, strict=True):
            row[: len(group)] = group
        graph, alike = space.graph, space.alike
        rivals = [same & split.cover & ~near for same, near in zip(alike, space.near.tolist(), strict=True)]
        self._fixed = (
            space.near,
            np.uint64(split.cover),
            np.array(alike, np.uint64),
            np.array(rivals, np.uint64),
            groups,
            np.array([len(group) for group in split.groups], np.int64),
            space.query.induced,
            graph.indptr,
            graph.indices,
            lists.vertices,
            lists.first_of,
            lists.row_base,
            lists.starts,
            lists.lists,
            int(lists.starts[-1]),
            space.below_base,
            space.below,
        )
        self._work = (
            self._state,
            self._words,
            *depths,
            self._values,
            self._level,
            np.ones(size, np.float64),
            *np.zeros((3, size, size + 1), np.int64),
            np.zeros((size, size + 1), np.uint64),
            np.zeros((3, size), np.int64),
            np.empty(space.arena_size, np.int32),
            self._owner,
            np.zeros(positions, np.uint8),
            np.zeros((2, 1 << MOST_OF_A_GROUP), np.int64),
        )

    def begin(self, first: int, last: int) -> None:
        """Begin with the roots `first` to `last` - 1."""
        matched = self._values[self._values >= 0]
        self._owner[matched] = -1
        self._values[:] = -1
        self._level[:] = 0
        self._words[0, 0] = 0
        self._state[[ROOT, LAST, DEPTH]] = first, last, -1

    @property
    def over(self) -> bool:
        """Whether everything below the roots was found."""
        state = self._state
        return bool(state[DEPTH] < 0 and state[ROOT] == state[LAST])

    def advance(self, most: int | None, steps: int) -> int:
        """Try about `steps` more candidates, or stop once `most` mappings are found; return the number found.

        The number is exact, or a lower bound that is larger than `most`.

        Raises
        ------
        OverflowError
            If the number would be neither, since one of its parts does not fit 64-bit integers.
        """
        self._state[TOTAL] = 0
        wanted = int(HUGE) if most is None else min(most, int(HUGE))
        search(*self._fixed, *self._work, wanted, steps)  # type: ignore[call-arg]
        found = int(self._state[TOTAL])
        if self._state[SATURATED] and (most is None or found < most):
            raise OverflowError(f"a count of more than {found:.3g} does not fit 64-bit integers")
        return found


def bytes_for(space: CandidateSpace) -> int:
    """Return the bytes of a worker's workspace."""
    assert space.lists is not None
    size = space.query.size
    return 4 * space.arena_size + 2 * len(space.lists.vertices) + 32 * size * (size + 1) + 200 * size + 8192
