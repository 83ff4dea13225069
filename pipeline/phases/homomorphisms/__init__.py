"""Counting through homomorphisms: tables, ranges of rows, exact sums."""
