"""Counting cliques on the GPU: with bitmaps, or with pivots."""
