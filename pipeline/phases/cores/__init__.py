"""Phases in a core of the graph, for patterns whose vertices all have several neighbours."""
