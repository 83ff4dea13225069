"""Count induced stars: independent sets among the neighbours of each vertex. The work is done on the host."""
