"""The phases of maximal cliques, which count them, count them per vertex, or list them."""
