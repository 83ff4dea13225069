"""Counting cliques on the CPU: with bitmaps, or with pivots."""
