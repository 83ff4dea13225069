"""Arrays of a graph that memory does not hold: in files that are mapped, whose pages come and go."""
