"""Which arcs have their cliques counted in root subgraphs: bitmaps of their candidates, numbered anew."""

ROOTED_FROM = 6
"""Vertices of the smallest cliques that are: below an arc, four are missing, which are counted by their complement."""
MOST_ROOTED = 2047
"""The most candidates: sums over their complement stay far below 2**63, and its bitmaps take half a MiB at most."""
ADJACENT, OF = 3, 10
"""The least number of adjacent pairs is size * (size - 1) * `ADJACENT` / `OF`: sparser subgraphs are searched as well
as they are."""
