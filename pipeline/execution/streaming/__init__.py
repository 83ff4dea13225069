"""Phases over a graph that stays in its store: what they reserve, and the worker that counts part after part."""
