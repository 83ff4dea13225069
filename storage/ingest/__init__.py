"""Build a graph of any size inside a memory budget, in memory or as a store."""
