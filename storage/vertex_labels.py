"""Match a list of (vertex, label) pairs with the vertices of a graph."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from longwall.storage.errors import InputError


@dataclass(frozen=True, eq=False)
class LabelList:
    """Labelled vertices in the order of the input."""

    ids: npt.NDArray[np.int64]
    """int64[k]: vertices, in the input's ids."""
    values: npt.NDArray[np.int64]
    """int64[k]: their labels."""
    source: str = "labels"
    """What they were read from, for messages."""
    place: Callable[[int], str] = "entry {}".format
    """Row -> where in the source it stands ("line 7"), for messages."""

    def where(self, row: int) -> str:
        """Name the place of a row."""
        return f"{self.source}, {self.place(row)}"


def match_labels(labels: LabelList, vertices: npt.NDArray[np.int64], known: tuple[int, int]) -> npt.NDArray[np.int32]:
    """Return each vertex's label.

    Parameters
    ----------
    labels
        What is labelled how.
    vertices : int64[n]
        The vertices that need a label, in ascending order.
    known
        Smallest and largest id of the graph: labels outside name vertices that do not exist, labels inside
        without a vertex belong to isolated vertices and are dropped.

    Returns
    -------
    int32[n]

    Raises
    ------
    InputError
        A label out of range, for an unknown vertex or in conflict with another; a vertex without a label.
    """
    ids, values = labels.ids, labels.values
    bad = np.flatnonzero((values < 0) | (values >= 2**31))
    if bad.size:
        row = int(bad[0])
        raise InputError(f"{labels.where(row)}: label {values[row]} is out of range; use labels from 0 to 2147483647")
    bad = np.flatnonzero((ids < known[0]) | (ids > known[1]))
    if bad.size:
        row = int(bad[0])
        raise InputError(
            f"{labels.where(row)}: vertex {ids[row]} does not exist, the graph's ids go from {known[0]} to "
            f"{known[1]}; remove the line or use the graph's own labels"
        )
    order = np.argsort(ids, kind="stable")
    ids, values = ids[order], values[order]
    clash = np.flatnonzero((ids[1:] == ids[:-1]) & (values[1:] != values[:-1])) + 1
    if clash.size:
        first = clash[np.argmin(order[clash])]
        raise InputError(
            f"{labels.where(int(order[first]))}: vertex {ids[first]} is labelled a second time, with a "
            "different label; keep one of them"
        )
    at = np.searchsorted(ids, vertices)
    found = at < len(ids)
    found[found] = ids[at[found]] == vertices[found]
    if not found.all():
        raise InputError(
            f"{labels.source}: vertex {vertices[np.argmin(found)]} has an edge but no label; "
            "label every vertex that has an edge"
        )
    return values[at].astype(np.int32)
