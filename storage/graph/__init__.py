"""The data graph, and the graph store."""
