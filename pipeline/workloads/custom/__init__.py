"""Algorithms of users' own."""
