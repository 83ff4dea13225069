"""Motifs: by triangles (`of_three`), `by_enumeration`, pattern by pattern (`by_counting`), or per vertex (`orbits`)."""
