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


def hanging_vertices(adjacent: Sequence[int], kinds: Sequence[int]) -> list[tuple[int, int]]:
    """Return the vertices that hang from another one, and this one, in an order that begins at the far ends.

    Such a vertex has a label that no other one has, and one neighbour besides those that hang from it: what it is
    matched to does not matter to the others, and the ways to match it can be added up beforehand.
    """
    near = list(adjacent)
    found: list[tuple[int, int]] = []
    loose = [v for v in range(len(near)) if kinds.count(kinds[v]) == 1]
    while hanging := [v for v in loose if near[v].bit_count() == 1]:
        v = hanging[0]
        parent = near[v].bit_length() - 1
        near[v], near[parent] = 0, near[parent] & ~(1 << v)
        found.append((v, parent))
    return found


def split_query(
    adjacent: Sequence[int],
    kinds: Sequence[int],
    sizes: Sequence[int],
    hanging: Sequence[tuple[int, int]] = (),
    *,
    induced: bool = False,
) -> Split:
    """Choose what is counted: vertices of few neighbours first, and among those the ones with many candidates.

    Parameters
    ----------
    adjacent
        Bit set of the neighbours of each query vertex.
    kinds
        A number for the label of each; vertices of different kinds are never the same one.
    sizes
        Number of candidates of each.
    hanging
        Vertices that hang from others, which are in no part.
    induced
        Whether non-edges matter: then all vertices are matched one by one.
    """
    number = len(adjacent)
    cover, counted = (1 << number) - 1, 0
    for v, _ in hanging:
        cover &= ~(1 << v)
    loaded = {parent for _, parent in hanging}  # such a vertex is not counted together with others
    adjacent = [near & cover for near in adjacent]
    groups: dict[int, list[int]] = {}
    order = sorted(range(number), key=lambda v: (adjacent[v].bit_count(), -sizes[v], v))
    for v in () if induced else order:
        group = groups.setdefault(kinds[v], [])
        without = cover & ~(1 << v)
        most = 1 if loaded.intersection([v, *group]) else MOST_OF_A_GROUP
        if not cover >> v & 1 or adjacent[v] & counted or len(group) >= most or not _is_connected(without, adjacent):
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
