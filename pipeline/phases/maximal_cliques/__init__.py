"""The phases of maximal cliques: counts by size, counts per vertex, and lists."""
