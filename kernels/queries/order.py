"""Which query vertices are searched for, and which are only counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MOST_OF_A_GROUP = 6  # counted vertices of one label: the sets of them are looked at


@dataclass(frozen=True)
class Split:
    """A query in two parts.

    Attributes
    ----------
    root
        The vertex that is matched first.
    cover
        The vertices that are matched one by one, as bits: a connected vertex cover.
    groups
        The others, no two of which are adjacent, by their labels, small groups first: vertices of two groups cannot be
        the same one.
    """

    root: int
    cover: int
    groups: tuple[tuple[int, ...], ...]


def split_query(adjacent: Sequence[int], kinds: Sequence[int], sizes: Sequence[int], *, induced: bool = False) -> Split:
    """Choose what is counted: vertices of few neighbours first, and among those the ones with many candidates.

    Parameters
    ----------
    adjacent
        Bit set of the neighbours of each query vertex.
    kinds
        A number for the label of each; vertices of different kinds are never the same one.
    sizes
        Number of candidates of each.
    induced
        Whether non-edges matter: then all vertices are matched one by one.
    """
    number = len(adjacent)
    cover, counted = (1 << number) - 1, 0
    groups: dict[int, list[int]] = {}
    order = sorted(range(number), key=lambda v: (adjacent[v].bit_count(), -sizes[v], v))
    for v in () if induced else order:
        group = groups.setdefault(kinds[v], [])
        without = cover & ~(1 << v)
        if adjacent[v] & counted or len(group) == MOST_OF_A_GROUP or not _is_connected(without, adjacent):
            continue
        cover, counted = without, counted | 1 << v
        group.append(v)
    matched = [v for v in range(number) if cover >> v & 1]
    root = min(matched, key=lambda v: (sizes[v], -adjacent[v].bit_count(), v))
    counted_ones = sorted((tuple(sorted(group)) for group in groups.values() if group), key=lambda one: (len(one), one))
    return Split(root, cover, tuple(counted_ones))


def _is_connected(members: int, adjacent: Sequence[int]) -> bool:
    """Whether a set of vertices, as bits, is connected and not empty."""
    reached = frontier = members & -members
    while frontier:
        low = frontier & -frontier
        new = adjacent[low.bit_length() - 1] & members & ~reached
        reached |= new
        frontier = (frontier ^ low) | new
    return reached == members != 0
