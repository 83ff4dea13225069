"""Graphs of other libraries, tables and arrays that are in memory, as streams of edges."""
