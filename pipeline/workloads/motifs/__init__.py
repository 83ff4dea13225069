"""Motifs: by enumeration, pattern by pattern (`counting`), or per vertex (`orbits`)."""
