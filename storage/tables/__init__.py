"""Embedding tables: in memory, in chunks, and on disk."""
